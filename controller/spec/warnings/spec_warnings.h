// What a valid spec probably does not mean, and what would fail only when it is carried out. Each warning has
// a code (controller/spec/findings.h), which the spec can silence in `warnings.silence`. Pure, no I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"

namespace muster {

struct SpecWarnings {
  std::vector<SpecError> shown;            // in the order of the file
  std::map<std::string, size_t> silenced;  // how often, by code
};
// `spec`: what parse_spec() read from `text` with these names, without errors: what is read in part only
// gives wrong warnings. `more`: warnings from elsewhere, to be sorted and silenced like the rest.
SpecWarnings spec_warnings(const std::string& text, const Spec& spec, const SpecNames& names,
                           std::vector<SpecError> more = {});

}  // namespace muster
