// Whatever the bytes, parsing a spec and a playbook ends, without a crash, in a value or in errors with a
// place. Build and run: scripts/fuzz.sh.
#include <cstdint>
#include <cstdlib>

#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const muster::ParsedSpec spec = muster::parse_spec(text);
  for (const muster::SpecError& error : spec.errors)
    if (error.message.empty() || error.line < 0) std::abort();
  // What is accepted has what everyone after the parser relies on.
  if (spec.errors.empty() && (spec.spec.cluster.empty() || spec.spec.nodes.empty())) std::abort();
  (void)muster::parse_playbook(text);
  return 0;
}
