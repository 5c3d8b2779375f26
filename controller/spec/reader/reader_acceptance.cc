// Reads the keys of `acceptance:` other than the profile, and the texts of the files that they name (section
// `carried`). controller/report/gpu_results.h checks the texts themselves.
#include <fmt/format.h>

#include "controller/spec/drive_models.h"
#include "controller/spec/reader/reader.h"

namespace muster {

void SpecReader::read_acceptance() {
  const std::vector<std::string> known = known_profiles();
  if (!spec_.acceptance_profile.empty() && !known.empty())
    must_be_known(*child(child(&root_, "acceptance"), "profile"), "acceptance.profile", "profile",
                  spec_.acceptance_profile, known);
  read_gpu_acceptance();
  const YamlNode* drives = child(child(&root_, "acceptance"), "drives");
  if (drives && drives->is_list())
    spec_.drive_models = read_drive_models(*drives, "acceptance.drives", errors_);
}

void SpecReader::read_gpu_acceptance() {
  const YamlNode* acceptance = child(&root_, "acceptance");
  const YamlNode* carried = child(&root_, "carried");
  GpuAcceptance& out = spec_.gpu_acceptance;
  out.mandatory = text(acceptance, "gpu") == "mandatory";
  out.results_file = text(acceptance, "gpu_results");
  out.key_file = text(acceptance, "gpu_results_key");
  out.results = text(carried, "gpu_results");
  out.key = text(carried, "gpu_results_key");
  const auto check = [&](const char* key, const std::string& file, const std::string& content,
                         const char* what) {
    const std::string path = fmt::format("acceptance.{}", key);
    if (!out.mandatory && !file.empty())
      error(*child(acceptance, key), path, "has no effect without `gpu: mandatory`");
    if (!out.mandatory) return;
    if (file.empty())
      return error(*child(acceptance, "gpu"), "acceptance.gpu",
                   fmt::format("`gpu: mandatory` requires `{}: FILE`, {}", key, what));
    if (content.empty())
      error(*child(acceptance, key), path,
            fmt::format("the text of {} is not embedded in the spec: `muster up SPEC` and `muster spec check "
                        "SPEC` embed it as `carried.{}`",
                        file, key));
  };
  check("gpu_results", out.results_file, out.results,
        "the signed report.json of a run that measured GPUs of this model");
  check("gpu_results_key", out.key_file, out.key,
        "the public key for its signature, as printed by `muster report key`");
  if (out.mandatory && spec_.lab)
    error(*child(acceptance, "gpu"), "acceptance.gpu",
          "a lab's GPUs are SIMULATED: no speed can be required of them");
}

}  // namespace muster
