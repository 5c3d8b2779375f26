// What `muster spec check` finds in one spec: its errors, or, where there are none, its warnings; as JSON and
// as lines for people. Of files it reads only the time zones of the host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/spec_file.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "sys/os.h"

namespace muster::cli {

struct CheckedSpec {
  std::string file = {};  // as shown
  Spec spec = {};         // read as far as possible
  std::vector<SpecError> errors = {}, warnings = {};
  std::map<std::string, size_t> silenced = {};  // warnings that the spec leaves out, by code
  bool strict = false;                          // warnings count as errors

  bool valid() const { return errors.empty() && (!strict || warnings.empty()); }
};

// `zones`: where the host's time zones are.
CheckedSpec check_spec(const std::string& file, const SpecFile& read, const SpecNames& names,
                       const Files& zones);
// {file, valid, lab_only, errors, warnings, silenced}; errors and warnings are lists of {code, file, line,
// column, path, message, remedy}.
Json json_of(const CheckedSpec& checked);
// A line per error; per warning one with its code and one with its remedy. Each ends with a line feed.
std::string finding_lines(const CheckedSpec& checked);
// "cluster.yaml: valid; cluster gaggle, 4 nodes; 2 warnings"
std::string summary_line(const CheckedSpec& checked);

}  // namespace muster::cli
