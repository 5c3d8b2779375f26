// What `muster doctor` looks at before a first bring-up, and what it finds: one entry per check, in the order
// in which they are shown. A check that could not be made is not a healthy one. Plain values, no I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace muster::doctor {

enum class Check {
  bmc_login,
  dhcp_rival,
  mirror_incomplete,
  disk_space,
  clock,
  port_in_use,
  certificate,
  gpu_program,
  package_version
};

struct CheckKind {
  Check check;
  std::string_view code;   // of its findings; does not change
  std::string_view title;  // "BMC logins"
};
const std::vector<CheckKind>& check_kinds();

struct Finding {
  std::string at;    // a node or several ("gpu[01-04]"), an image, an address; "": this machine
  std::string what;  // is wrong, one sentence
  std::string next;  // the command that repairs it, with what must be done beside it
};

struct Checked {
  Check check = Check::bmc_login;
  std::string looked_at = {};  // "32 BMCs"; why there is nothing to look at
  std::vector<Finding> findings = {};
  std::vector<std::string> not_looked = {};  // what could not be looked at, and why
};

enum class Outcome { healthy, findings, not_looked };
std::string_view to_string(Outcome outcome);
// Findings count before what could not be looked at.
Outcome outcome_of(const Checked& checked);

// {state, checks: [{code, title, state, looked_at, findings: [{at, what, next}], not_looked: [text]}]}, with
// the worst state of all checks as its own.
Json to_json(const std::vector<Checked>& all);

}  // namespace muster::doctor
