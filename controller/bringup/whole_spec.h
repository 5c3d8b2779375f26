// A spec read as a whole, on the operator's host (`muster spec check`) and by the controller to which it is
// offered: its errors, of the time zone and of signed results too, or, where there are none, its warnings.
// Of files it reads only the time zones. Thread safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "controller/spec/warnings/spec_warnings.h"
#include "sys/os.h"

namespace muster {

// Whose time zones are looked at. The controller's decide.
enum class ZonesOf { controller, operator_host };

struct ZoneCheck {
  std::optional<SpecError> error = {};    // there is no such zone
  std::optional<SpecError> warning = {};  // there are no zones
};
ZoneCheck check_time_zone(const std::string& text, const Files& zones, ZonesOf of);

struct WholeSpec {
  Spec spec = {};  // read as far as possible
  std::vector<SpecError> errors = {};
  SpecWarnings warnings = {};  // empty if there are errors
};
WholeSpec read_whole_spec(const std::string& text, const SpecNames& names, const Files& zones, ZonesOf of);

// [{code, file, line, column, path, message, remedy}]; `file`: that of the spec.
Json findings_json(const std::vector<SpecError>& found, const std::string& file);

}  // namespace muster
