#include "cli/carry.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "controller/spec/yaml.h"

namespace muster::cli {
namespace {

// A literal block: what is signed has to arrive byte for byte. Its indentation is said (2 more than the
// key's), not guessed from its first line; "+" keeps the newlines at its end, "-" adds none.
std::string block_of(const std::string& key, const std::string& text) {
  const bool ends = !text.empty() && text.back() == '\n';
  std::string out = fmt::format("  {}: {}\n", key, ends ? "|2+" : "|2-");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += line.empty() ? "\n" : "    " + line + "\n";
  return out;
}

}  // namespace

Result<std::string> with_carried_files(std::string spec, const std::string& folder, const Files& files) {
  const ParsedYaml yaml = parse_yaml(spec);
  if (!yaml.errors.empty() || !yaml.root.is_map()) return spec;
  const YamlNode* acceptance = yaml.root.find("acceptance");
  const YamlNode* already = yaml.root.find("carried");
  std::string carried;
  for (const char* key : {"gpu_results", "gpu_results_key"}) {
    const YamlNode* name = acceptance && acceptance->is_map() ? acceptance->find(key) : nullptr;
    if (!name || !name->is_text() || name->text.empty()) continue;
    const auto path = (std::filesystem::path(folder) / name->text).lexically_normal().string();
    const auto text = files.read(path);
    if (already) {
      // `muster spec show` gives a whole spec. A file that says other things now must not be passed over.
      const YamlNode* old = already->is_map() ? already->find(key) : nullptr;
      if (!old || (text.ok() && *text != old->text))
        return fail(Code::invalid,
                    fmt::format("acceptance.{}: {} is not what the section 'carried' has of it: "
                                "remove that section, which is written by muster",
                                key, path));
      continue;
    }
    if (!text.ok())
      return fail(Code::invalid, fmt::format("acceptance.{}: {}: {}", key, path, text.error().message));
    carried += block_of(key, *text);
  }
  if (carried.empty()) return spec;
  if (!spec.empty() && spec.back() != '\n') spec += '\n';
  return spec + "# Put here by muster from the files that `acceptance` names.\ncarried:\n" + carried;
}

}  // namespace muster::cli
