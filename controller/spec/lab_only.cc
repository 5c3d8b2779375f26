#include "controller/spec/lab_only.h"

#include <fmt/format.h>

#include "controller/spec/yaml.h"

namespace muster {

bool is_lab_profile(const std::string& name) { return name == "lab" || name.starts_with("lab-"); }

bool is_simulated(const Spec& spec, const std::string& profile) {
  return spec.lab || is_lab_profile(profile);
}

std::vector<SpecError> lab_only(const Spec& spec, const std::string& profile) {
  std::vector<SpecError> out;
  if (is_lab_profile(profile)) {
    const SpecPlace at = spec.acceptance_profile == profile ? spec.profile_at : SpecPlace();
    out.push_back({at.line, at.column, at.line > 0 ? "acceptance.profile" : "profile",
                   fmt::format("'{}' is a profile for virtual machines and would accept broken servers: this "
                               "is not a lab's controller. Use quick, standard or burn",
                               profile)});
  }
  if (spec.lab)
    out.push_back(
        {spec.lab_at.line, spec.lab_at.column, "lab",
         "the section is for virtual machines, and this is not a lab's controller: its limits would apply to "
         "real servers. Remove it and run `muster up FILE`, or rehearse with `muster lab up FILE`"});
  sort_errors(out);
  return out;
}

Status refuse_lab_only(const Spec& spec, int64_t revision, const std::string& profile) {
  const auto errors = lab_only(spec, profile);
  if (errors.empty()) return Ok{};
  return fail(Code::invalid, to_string(errors, fmt::format("spec revision {}", revision)));
}

}  // namespace muster
