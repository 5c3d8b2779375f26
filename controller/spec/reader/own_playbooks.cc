#include "controller/spec/reader/own_playbooks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "controller/spec/reader/parse_playbook.h"

namespace muster {
namespace {

template <typename List>
auto find_step(List& list, const std::string& name) {
  return std::find_if(list.begin(), list.end(), [&](const auto& step) { return step.name == name; });
}

std::vector<std::string> step_names(const Playbook& playbook) {
  std::vector<std::string> out;
  for (const auto& step : playbook.steps) out.push_back(step.name);
  return out;
}

std::string listed(const char* verb, const std::vector<NamedStep>& steps) {
  std::string out;
  for (const auto& step : steps) out += fmt::format("{}'{}'", out.empty() ? "" : ", ", step.name);
  return out.empty() ? out : fmt::format("{} {}", verb, out);
}

class Overlay {
 public:
  Overlay(std::string file, const Playbook& overlay, Playbook& shipped, std::vector<SpecError>& errors)
      : file_(std::move(file)), overlay_(overlay), shipped_(shipped), errors_(errors) {}

  void apply() {
    for (const auto& replaced : overlay_.replaces) must_be_shipped(replaced, "replaces");
    for (const auto& removed : overlay_.removes) must_be_shipped(removed, "removes");
    const Playbook before = shipped_;
    std::vector<NamedStep> added;
    for (const auto& step : overlay_.steps) {
      const auto old = find_step(shipped_.steps, step.name);
      if (find_step(overlay_.replaces, step.name) != overlay_.replaces.end()) {
        if (old != shipped_.steps.end()) *old = step;
      } else if (find_step(before.steps, step.name) != before.steps.end()) {
        add(step.line, step.column, "steps",
            fmt::format("the shipped playbook '{0}' already has a step '{1}': write `replaces: [ \"{1}\" ]`, "
                        "or rename this step",
                        before.name, step.name));
      } else {
        shipped_.steps.push_back(step);
        added.push_back({step.name});
      }
    }
    for (const auto& removed : overlay_.removes)
      if (const auto old = find_step(shipped_.steps, removed.name); old != shipped_.steps.end())
        shipped_.steps.erase(old);
    shipped_.optional_vars.insert(shipped_.optional_vars.end(), overlay_.optional_vars.begin(),
                                  overlay_.optional_vars.end());
    std::vector<std::string> what;
    for (auto& words :
         {listed("replaces", overlay_.replaces), listed("removes", overlay_.removes), listed("adds", added)})
      if (!words.empty()) what.push_back(words);
    shipped_.origin =
        fmt::format("the shipped one with the overlay {}, which {}", file_,
                    what.empty() ? "changes nothing" : fmt::format("{}", fmt::join(what, ", ")));
  }

 private:
  void add(int line, int column, const char* path, std::string message) {
    errors_.push_back({line, column, path, std::move(message), file_});
  }
  void must_be_shipped(const NamedStep& step, const char* path) {
    if (find_step(shipped_.steps, step.name) != shipped_.steps.end()) return;
    const std::string near = nearest_spelling(step.name, step_names(shipped_));
    add(step.line, step.column, path,
        fmt::format("the shipped playbook '{}' has no step '{}'{}", shipped_.name, step.name,
                    near.empty() ? "" : ", did you mean '" + near + "'?"));
  }

  const std::string file_;
  const Playbook& overlay_;
  Playbook& shipped_;
  std::vector<SpecError>& errors_;
};

}  // namespace

std::string playbook_of_file(const std::string& file) {
  const std::string suffix = ".yaml";
  const size_t slash = file.rfind('/');
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  const bool has =
      name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  return has ? name.substr(0, name.size() - suffix.size()) : name;
}

bool is_profile_file(const std::string& file) {
  const size_t slash = file.rfind('/');
  if (slash == std::string::npos) return false;
  const std::string folder = file.substr(0, slash);
  return folder.substr(folder.rfind('/') + 1) == "acceptance";  // npos + 1: the whole of it
}

std::string key_of_file(const std::string& file) {
  return (is_profile_file(file) ? "acceptance/" : "") + playbook_of_file(file);
}

std::vector<SpecError> add_own_playbooks(const std::vector<OwnPlaybook>& own,
                                         std::map<std::string, Playbook>& all) {
  std::vector<SpecError> errors;
  for (const OwnPlaybook& one : own) {
    ParsedPlaybook parsed = parse_own_playbook(one);
    errors.insert(errors.end(), parsed.errors.begin(), parsed.errors.end());
    if (!parsed.errors.empty()) continue;
    const std::string& name = parsed.playbook.name;
    const std::string key = key_of_file(one.file);
    const auto shipped = all.find(key);
    if (shipped == all.end() && parsed.playbook.overlay) {
      errors.push_back(
          {1, 1, "overlay", fmt::format("there is no shipped playbook '{}' to overlay", name), one.file});
    } else if (shipped == all.end()) {
      parsed.playbook.origin = "the spec's own, " + one.file;
      all[key] = std::move(parsed.playbook);
    } else if (!parsed.playbook.overlay) {
      errors.push_back({1, 1, "playbook",
                        fmt::format("there is a shipped playbook '{}': give this one a different name, or "
                                    "write `overlay: true` to change the shipped one step by step",
                                    name),
                        one.file});
    } else {
      Overlay(one.file, parsed.playbook, shipped->second, errors).apply();
    }
  }
  return errors;
}

}  // namespace muster
