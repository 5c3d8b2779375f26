// A spec made by changing the text of another one, and the steps that came of it.
#pragma once

#include <string>
#include <vector>

#include "base/wire.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"

namespace muster::testing {

// The first `from`, which must be there, becomes `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

inline Spec parsed(const std::string& text) {
  const ParsedSpec out = parse_spec(text);
  for (const auto& e : out.errors) UNSCOPED_INFO(to_string(e, "spec"));
  REQUIRE(out.errors.empty());
  return out.spec;
}

// null when there is no such step.
inline Json params_of(const std::vector<wire::Step>& steps, const std::string& id) {
  for (const auto& s : steps)
    if (s.id == id) return s.params;
  return Json();
}

}  // namespace muster::testing
