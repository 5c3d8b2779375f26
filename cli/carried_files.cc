#include "cli/carried_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "controller/spec/carry.h"
#include "controller/spec/yaml.h"

namespace muster::cli {

Result<std::string> with_carried_files(std::string spec, const std::string& folder, const Files& files) {
  const ParsedYaml yaml = parse_yaml(spec);
  if (!yaml.errors.empty() || !yaml.root.is_map()) return spec;
  const YamlNode* acceptance = yaml.root.find("acceptance");
  const YamlNode* already = yaml.root.find("carried");
  std::vector<CarriedText> carried;
  for (const char* key : {"gpu_results", "gpu_results_key"}) {
    const YamlNode* name = acceptance && acceptance->is_map() ? acceptance->find(key) : nullptr;
    if (!name || !name->is_text() || name->text.empty()) continue;
    const auto path = (std::filesystem::path(folder) / name->text).lexically_normal().string();
    const auto text = files.read(path);
    if (already) {
      // The output of `muster spec show` contains this section. A file that differs from it must not be
      // ignored.
      const YamlNode* old = already->is_map() ? already->find(key) : nullptr;
      if (!old || (text.ok() && *text != old->text))
        return fail(Code::invalid, fmt::format("acceptance.{}: {} differs from its copy in the section "
                                               "'carried': remove that section; muster writes it again",
                                               key, path));
      continue;
    }
    if (!text.ok())
      return fail(Code::invalid, fmt::format("acceptance.{}: {}: {}", key, path, text.error().message));
    carried.push_back({fmt::format("acceptance.{}: {}", key, path), key, *text});
  }
  if (carried.empty()) return spec;
  return carry_section(spec, "carried", "Written by muster from the files that `acceptance` names.", carried);
}

}  // namespace muster::cli
