// `playbooks:` of the spec: paths in the operator's file, texts in what the controller keeps.
#include <fmt/format.h>

#include <algorithm>

#include "controller/spec/module_names.h"
#include "controller/spec/own_playbooks.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader.h"

namespace muster {
namespace {

constexpr size_t kMostPlaybooks = 64;

void check_modules(const YamlNode& root, std::vector<SpecError>& errors) {
  const YamlNode* steps = root.find("steps");
  const auto check = [&](const YamlNode* module, const std::string& path) {
    const auto& known = module_names();
    if (!module || !module->is_text() || std::find(known.begin(), known.end(), module->text) != known.end())
      return;
    const std::string near = nearest_spelling(module->text, known);
    errors.push_back({module->line, module->column, path,
                      near.empty()
                          ? fmt::format("unknown module '{}'; docs/playbooks.md lists them all", module->text)
                          : fmt::format("unknown module '{}', did you mean '{}'?", module->text, near)});
  };
  for (size_t i = 0; steps && i < steps->items.size(); ++i) {
    check(steps->items[i].find("module"), fmt::format("steps[{}].module", i));
    if (const YamlNode* verify = steps->items[i].find("verify"))
      check(verify->find("module"), fmt::format("steps[{}].verify.module", i));
  }
}

}  // namespace

ParsedPlaybook parse_own_playbook(const OwnPlaybook& own) {
  ParsedPlaybook parsed = parse_playbook(own.text);
  const ParsedYaml yaml = parse_yaml(own.text);
  if (yaml.errors.empty() && yaml.root.is_map()) {
    check_modules(yaml.root, parsed.errors);
    const YamlNode* name = yaml.root.find("playbook");
    if (name && name->text != playbook_of_file(own.file))
      parsed.errors.push_back({name->line, name->column, "playbook",
                               fmt::format("this file is that of playbook '{}', not of '{}': file and "
                                           "playbook have one name",
                                           playbook_of_file(own.file), name->text)});
  }
  sort_errors(parsed.errors);
  for (SpecError& error : parsed.errors) error.file = own.file;
  return parsed;
}

void SpecReader::read_playbook_path(const YamlNode& at, const std::string& path) {
  if (!at.is_text() || at.text.empty()) return;
  spec_.playbook_paths.push_back(at.text);
  if (at.text.find('\0') != std::string::npos) error(at, path, "a path cannot hold a zero byte");
}

void SpecReader::read_own_playbook(const YamlEntry& entry, std::map<std::string, std::string>& files) {
  if (!entry.value.is_text()) return;
  const OwnPlaybook own = {entry.key, entry.value.text};
  const auto [other, first] = files.emplace(playbook_of_file(own.file), own.file);
  if (!first)
    errors_.push_back({entry.line, entry.column, "playbooks." + entry.key,
                       fmt::format("{} is a playbook '{}' already", other->second, other->first)});
  for (SpecError& error : parse_own_playbook(own).errors) errors_.push_back(std::move(error));
  spec_.own_playbooks.push_back(own);
}

void SpecReader::read_playbooks() {
  const YamlNode* playbooks = child(&root_, "playbooks");
  if (!playbooks) return;
  read_playbook_path(*playbooks, "playbooks");
  for (size_t i = 0; i < playbooks->items.size(); ++i)
    read_playbook_path(playbooks->items[i], fmt::format("playbooks[{}]", i));
  std::map<std::string, std::string> files;  // by playbook
  for (const YamlEntry& entry : playbooks->entries) read_own_playbook(entry, files);
  if (playbooks->entries.size() > kMostPlaybooks)
    error(*playbooks, "playbooks", fmt::format("more than {} playbooks", kMostPlaybooks));
}

}  // namespace muster
