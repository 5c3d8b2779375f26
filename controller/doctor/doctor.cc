#include "controller/doctor/doctor.h"

#include <algorithm>

namespace muster::doctor {

const std::vector<CheckKind>& check_kinds() {
  static const std::vector<CheckKind> all = {
      {Check::bmc_login, "bmc-login", "BMC logins"},
      {Check::dhcp_rival, "dhcp-rival", "other DHCP servers"},
      {Check::mirror_incomplete, "mirror-incomplete", "package mirrors"},
      {Check::disk_space, "disk-space", "disk space"},
      {Check::clock, "clock", "clock"},
      {Check::port_in_use, "port-in-use", "ports"},
      {Check::certificate, "certificate", "certificates"},
      {Check::gpu_program, "gpu-program", "GPU program"},
      {Check::package_version, "package-version", "packages"}};
  return all;
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::healthy:
      return "healthy";
    case Outcome::findings:
      return "findings";
    case Outcome::not_looked:
      break;
  }
  return "not-looked";
}

Outcome outcome_of(const Checked& checked) {
  if (!checked.findings.empty()) return Outcome::findings;
  return checked.not_looked.empty() ? Outcome::healthy : Outcome::not_looked;
}

Json to_json(const std::vector<Checked>& all) {
  Json checks = Json::array();
  bool found = false, left_out = false;
  for (const CheckKind& kind : check_kinds()) {
    const auto one = std::find_if(all.begin(), all.end(),
                                  [&kind](const Checked& checked) { return checked.check == kind.check; });
    if (one == all.end()) continue;
    const Outcome outcome = outcome_of(*one);
    found = found || outcome == Outcome::findings;
    left_out = left_out || outcome == Outcome::not_looked;
    Json findings = Json::array();
    for (const Finding& finding : one->findings)
      findings.push_back({{"at", finding.at}, {"what", finding.what}, {"next", finding.next}});
    checks.push_back({{"code", kind.code},
                      {"title", kind.title},
                      {"state", to_string(outcome)},
                      {"looked_at", one->looked_at},
                      {"findings", findings},
                      {"not_looked", one->not_looked}});
  }
  const Outcome worst = found ? Outcome::findings : left_out ? Outcome::not_looked : Outcome::healthy;
  return {{"state", to_string(worst)}, {"checks", checks}};
}

}  // namespace muster::doctor
