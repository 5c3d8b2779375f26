// Whatever the bytes, parsing a spec and a playbook ends in a value or in errors with a place.
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/fuzz/targets.h"

void muster::fuzz::spec_fuzz(std::string_view bytes) {
  const std::string text(bytes);
  const ParsedSpec spec = parse_spec(text);
  for (const SpecError& error : spec.errors)
    demand(!error.message.empty() && error.line >= 0, "an error without words or place");
  if (spec.errors.empty())
    demand(!spec.spec.cluster.empty() && !spec.spec.nodes.empty(), "a spec without cluster or nodes");
  (void)parse_playbook(text);
}
