// Reads `playbooks:` of the spec: paths in the operator's file, texts in the stored spec.
#include <fmt/format.h>

#include <algorithm>

#include "controller/spec/playbook.h"
#include "controller/spec/reader/own_playbooks.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

constexpr size_t kMostPlaybooks = 64;

void check_image_parts(const YamlNode& step, const std::string& path, std::vector<SpecError>& errors) {
  for (const char* key : {"params", "verify"}) {
    const YamlNode* part = step.find(key);
    if (!part) continue;
    if (const Status fine = check_image_step(to_json(*part)); !fine.ok())
      errors.push_back({part->line, part->column, path + "." + key, fine.error().message});
  }
}

void check_calls(const YamlNode& root, std::vector<SpecError>& errors) {
  const YamlNode* steps = root.find("steps");
  for (size_t i = 0; steps && i < steps->items.size(); ++i) {
    const YamlNode& step = steps->items[i];
    const std::string path = fmt::format("steps[{}]", i);
    check_module_call(step, path, errors);
    if (const YamlNode* verify = step.find("verify")) check_module_call(*verify, path + ".verify", errors);
    if (const YamlNode* phase = step.find("phase"); phase && phase->text == "image")
      check_image_parts(step, path, errors);
  }
}

// Acceptance of a node relies on nothing being changed while it measures.
void check_profile(const YamlNode& root, std::vector<SpecError>& errors) {
  const YamlNode* steps = root.find("steps");
  for (size_t i = 0; steps && i < steps->items.size(); ++i) {
    const std::string path = fmt::format("steps[{}]", i);
    const YamlNode* module = steps->items[i].find("module");
    if (module && module->is_text() && !module->text.starts_with("accept"))
      errors.push_back(
          {module->line, module->column, path + ".module",
           fmt::format("an acceptance profile measures and changes nothing: module '{}' is not allowed; use "
                       "accept, accept_group, accept_links, accept_mpi or accept_rdma",
                       module->text)});
    const YamlNode* phase = steps->items[i].find("phase");
    if (phase && phase->is_text() && phase->text != "node" && phase->text != "cluster")
      errors.push_back({phase->line, phase->column, path + ".phase",
                        "steps of an acceptance profile must have phase node or cluster"});
  }
}

}  // namespace

ParsedPlaybook parse_own_playbook(const OwnPlaybook& own) {
  ParsedPlaybook parsed = parse_playbook(own.text);
  const ParsedYaml yaml = parse_yaml(own.text);
  if (yaml.errors.empty() && yaml.root.is_map()) {
    check_calls(yaml.root, parsed.errors);
    if (is_profile_file(own.file)) check_profile(yaml.root, parsed.errors);
    const YamlNode* name = yaml.root.find("playbook");
    if (name && name->text != playbook_of_file(own.file))
      parsed.errors.push_back(
          {name->line, name->column, "playbook",
           fmt::format(
               "this file must contain playbook '{}', not '{}': file and playbook must have the same name",
               playbook_of_file(own.file), name->text)});
  }
  sort_errors(parsed.errors);
  for (SpecError& error : parsed.errors) error.file = own.file;
  return parsed;
}

void SpecReader::read_playbook_path(const YamlNode& at, const std::string& path) {
  if (!at.is_text() || at.text.empty()) return;
  spec_.playbook_paths.push_back(at.text);
  if (at.text.find('\0') != std::string::npos) error(at, path, "a path must not contain a NUL byte");
}

void SpecReader::read_own_playbook(const YamlEntry& entry, std::map<std::string, std::string>& files) {
  if (!entry.value.is_text()) return;
  const OwnPlaybook own = {entry.key, entry.value.text};
  const auto [other, first] = files.emplace(key_of_file(own.file), own.file);
  if (!first)
    errors_.push_back(
        {entry.line, entry.column, "playbooks." + entry.key,
         fmt::format("duplicate playbook name '{}', already used by {}", other->first, other->second)});
  ParsedPlaybook parsed = parse_own_playbook(own);
  for (SpecError& error : parsed.errors) errors_.push_back(std::move(error));
  for (const PlaybookStep& step : parsed.playbook.steps)
    if (!step.among.empty() && step.among != kGroup)
      among_.push_back({step.among, own.file, step.line, step.column});
  if (const OnlyFor& only_for = parsed.playbook.only_for; !only_for.distribution.empty())
    only_for_[playbook_of_file(own.file)] = only_for;
  VarGroups& optional = optional_vars_[playbook_of_file(own.file)];
  optional.insert(optional.end(), parsed.playbook.optional_vars.begin(), parsed.playbook.optional_vars.end());
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
  const std::vector<std::string> known = known_playbooks();
  for (const Among& step : known.empty() ? std::vector<Among>{} : among_) {
    YamlNode at;
    at.line = step.line;
    at.column = step.column;
    const size_t before = errors_.size();
    must_be_known(at, "steps.among", "playbook", step.playbook, known);
    if (errors_.size() > before) errors_.back().file = step.file;
  }
}

std::vector<std::string> SpecReader::known_playbooks() const {
  if (names_.playbooks.empty() || !spec_.playbook_paths.empty()) return {};
  std::vector<std::string> known = names_.playbooks;
  for (const OwnPlaybook& own : spec_.own_playbooks)
    if (!is_profile_file(own.file)) known.push_back(playbook_of_file(own.file));
  return known;
}

std::vector<std::string> SpecReader::known_profiles() const {
  if (names_.profiles.empty() || !spec_.playbook_paths.empty()) return {};
  std::vector<std::string> known = names_.profiles;
  for (const OwnPlaybook& own : spec_.own_playbooks)
    if (is_profile_file(own.file)) known.push_back(playbook_of_file(own.file));
  return known;
}

}  // namespace muster
