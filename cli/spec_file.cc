#include "cli/spec_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "controller/spec/carry.h"
#include "controller/spec/yaml.h"
#include "lab/lab.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

// Editors on other systems end lines with CR LF, which has no meaning in YAML.
std::string without_cr(std::string text) {
  for (size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

class Reader {
 public:
  Reader(fs::path folder, SpecFile& out) : folder_(std::move(folder)), out_(out) {}

  void read(const YamlNode& at, const std::string& path) {
    if (!at.is_text() || at.text.empty()) return;
    const fs::path named = fs::path(at.text).lexically_normal();
    const fs::path place = named.is_absolute() ? named : folder_ / named;
    std::error_code failed;
    if (!fs::is_directory(place, failed)) return read_file(at, path, named.generic_string(), place);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(place, failed)) {
      const std::string name = entry.path().filename().string();
      if (name[0] == '.') continue;
      if (name.ends_with(".yaml")) names.push_back(name);
      if (name.ends_with(".yml"))
        complain(at, path, fmt::format("{}/{}: a playbook file must be named NAME.yaml", at.text, name));
    }
    if (failed) return complain(at, path, at.text + ": " + failed.message());
    if (names.empty()) complain(at, path, at.text + " contains no playbook (NAME.yaml)");
    std::sort(names.begin(), names.end());
    for (const auto& name : names)
      read_file(at, path, (named / name).lexically_normal().generic_string(), place / name);
  }
  const std::vector<OwnPlaybook>& files() const { return files_; }

 private:
  void complain(const YamlNode& at, const std::string& path, std::string message) {
    out_.errors.push_back({at.line, at.column, path, std::move(message)});
  }
  void read_file(const YamlNode& at, const std::string& path, const std::string& name,
                 const fs::path& place) {
    std::error_code failed;
    if (!fs::exists(place, failed)) return complain(at, path, name + ": no such file or folder");
    if (!name.ends_with(".yaml"))
      return complain(at, path, name + ": a playbook file must be named NAME.yaml");
    if (!fs::is_regular_file(place, failed)) return complain(at, path, name + ": not a file");
    if (fs::file_size(place, failed) > kLargestPlaybook)
      return complain(at, path, fmt::format("{}: larger than {} KiB", name, kLargestPlaybook / 1024));
    auto text = Files().read(fs::absolute(place).string());
    if (!text.ok()) return complain(at, path, name + ": " + text.error().message);
    const auto same = [&](const OwnPlaybook& other) { return other.file == name; };
    if (std::any_of(files_.begin(), files_.end(), same)) return complain(at, path, name + " is listed twice");
    files_.push_back({name, without_cr(std::move(text).value())});
  }

  const fs::path folder_;
  SpecFile& out_;
  std::vector<OwnPlaybook> files_;
};

}  // namespace

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
      // The output of `muster spec show` contains this section. A file that differs must not be ignored.
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

Result<SpecFile> read_spec_file(const std::string& path) {
  const fs::path absolute = fs::absolute(path);
  auto read = Files().read(absolute.string());
  if (!read.ok()) return fail(Code::invalid, path + ": " + read.error().message);
  return read_spec_text(std::move(read).value(), absolute.parent_path().string());
}

Result<SpecFile> read_spec_text(std::string text, const std::string& folder) {
  SpecFile out;
  TRY(out.text, with_carried_files(lab::with_any_lab_key(std::move(text)), folder, Files()));
  const ParsedYaml yaml = parse_yaml(out.text);
  const YamlNode* named = yaml.errors.empty() && yaml.root.is_map() ? yaml.root.find("playbooks") : nullptr;
  if (!named || named->is_map()) return out;
  Reader reader(folder, out);
  reader.read(*named, "playbooks");
  for (size_t i = 0; i < named->items.size(); ++i)
    reader.read(named->items[i], fmt::format("playbooks[{}]", i));
  if (!out.errors.empty() || reader.files().empty()) return out;
  auto carried = carry_playbooks(out.text, reader.files());
  if (carried.ok())
    out.text = std::move(carried).value();
  else
    out.errors.push_back({named->line, named->column, "playbooks", carried.error().message});
  return out;
}

}  // namespace muster::cli
