// The forms in which an operator may name a plan: "sha256:<64 digits>", the digits alone, or a prefix of at
// least 8 of them. All implementations of Store use this function. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// Returns the prefix to search for, which always begins with "sha256:". Code::invalid if it is too short or
// not hexadecimal.
inline Result<std::string> plan_prefix(const std::string& name) {
  constexpr std::string_view scheme = "sha256:";
  const std::string digits = name.starts_with(scheme) ? name.substr(scheme.size()) : name;
  if (digits.size() < 8)
    return fail(Code::invalid, "plan '" + name + "': give at least 8 digits of its digest");
  if (digits.find_first_not_of("0123456789abcdef") != std::string::npos || digits.size() > 64)
    return fail(Code::invalid, "plan '" + name + "': a digest has at most 64 lower-case hexadecimal digits");
  return std::string(scheme) + digits;
}

}  // namespace muster
