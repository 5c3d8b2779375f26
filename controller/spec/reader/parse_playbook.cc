#include "controller/spec/reader/parse_playbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/distribution.h"
#include "base/split.h"
#include "controller/report/verdict.h"
#include "controller/spec/schema.h"

namespace muster {

namespace {

std::string text_or(const YamlNode& map, const char* key, std::string fallback) {
  const YamlNode* value = map.find(key);
  return value && value->is_text() ? value->text : std::move(fallback);
}

Json json_or(const YamlNode& map, const char* key, Json fallback) {
  const YamlNode* value = map.find(key);
  return value && value->is_map() ? to_json(*value) : std::move(fallback);
}

PlaybookStep read_step(const YamlNode& map) {
  PlaybookStep step;
  step.line = map.line;
  step.column = map.column;
  step.name = text_or(map, "name", "");
  step.phase = text_or(map, "phase", "node");
  step.module = text_or(map, "module", "");
  step.when = text_or(map, "when", "");
  step.for_each = text_or(map, "for_each", "");
  step.otherwise = text_or(map, "otherwise", "");
  step.on = text_or(map, "on", "all");
  step.among = text_or(map, "among", "");
  step.params = json_or(map, "params", Json::object());
  step.verify = json_or(map, "verify", nullptr);
  if (step.verify.is_object() && !step.verify.contains("params")) step.verify["params"] = Json::object();
  step.expect = json_or(map, "expect", nullptr);
  if (const YamlNode* stage = map.find("stage"); stage && yaml_is_integer(*stage))
    step.stage = std::atoi(stage->text.c_str());
  if (const YamlNode* mandatory = map.find("mandatory"); mandatory && yaml_is_boolean(*mandatory))
    step.mandatory = yaml_boolean(*mandatory);
  if (const YamlNode* aspects = map.find("mandatory"); aspects && aspects->is_list()) {
    step.mandatory = false;
    for (const auto& aspect : aspects->items) step.blocks.push_back(aspect.text);
  }
  if (const YamlNode* needs = map.find("needs"); needs && needs->is_list())
    for (const auto& need : needs->items) step.needs.push_back(need.text);
  return step;
}

// Rules that the schema cannot express.
void check_step(const YamlNode& map, const PlaybookStep& step, const std::string& path,
                std::set<std::string>& names, std::vector<SpecError>& errors) {
  const auto add = [&](const char* key, std::string message) {
    const YamlNode* at = map.find(key);
    errors.push_back(
        {at ? at->line : map.line, at ? at->column : map.column, path + "." + key, std::move(message)});
  };
  if (!step.name.empty() && !names.insert(step.name).second)
    add("name", fmt::format("duplicate step name '{}'", step.name));
  if (step.phase != "cluster") {
    if (map.find("stage"))
      add("stage",
          fmt::format("only steps of phase cluster may have `stage`; this step has phase {}", step.phase));
    if (map.find("on"))
      add("on", fmt::format("only steps of phase cluster may have `on`; this step has phase {}", step.phase));
    if (map.find("among"))
      add("among",
          fmt::format("only steps of phase cluster may have `among`; this step has phase {}", step.phase));
  }
  if (!step.otherwise.empty() && step.for_each.empty() && step.among.empty() && step.when.empty())
    add("otherwise",
        "needs `for_each`, `among` or `when`: `otherwise` states why the list is empty, why there are too "
        "few nodes, or why the step does not apply to this node");
  if ((step.among == kGroup) != (step.module == kGroupModule) || step.module == "accept_group_serve")
    add("module",
        "`accept_group` and `among: group` require each other; do not list `accept_group_serve`, which the "
        "planner adds");
  if (step.among == kGroup && (step.on != "leader" || !step.for_each.empty()))
    add("among", "`among: group` requires `on: leader` and no `for_each`");
  if (step.when.find("{{") == std::string::npos && !step.when.empty() && !yaml_is_boolean(*map.find("when")))
    add("when",
        fmt::format("'{}' contains no {{{{variable}}}}, so the condition would always be true", step.when));
}

// Rejects limits that the schema accepts but that make no sense.
void check_expect(const YamlNode& map, const std::string& path, std::vector<SpecError>& errors) {
  const YamlNode* expect = map.find("expect");
  if (!expect || !expect->is_map()) return;
  for (const YamlEntry& entry : expect->entries) {
    const std::string where = path + ".expect." + entry.key;
    const bool said = std::any_of(errors.begin(), errors.end(),
                                  [&](const SpecError& error) { return error.path.starts_with(where); });
    if (said || !entry.value.is_map()) continue;
    if (const Status fine = check_limit(entry.key, to_json(entry.value)); !fine.ok())
      errors.push_back({entry.line, entry.column, where, fine.error().message});
  }
}

std::vector<NamedStep> named_steps(const YamlNode& root, const char* key) {
  std::vector<NamedStep> out;
  const YamlNode* list = root.find(key);
  for (size_t i = 0; list && i < list->items.size(); ++i)
    out.push_back({list->items[i].text, list->items[i].line, list->items[i].column});
  return out;
}

VarGroups var_groups(const YamlNode& root) {
  VarGroups out;
  const YamlNode* list = root.find("optional_vars");
  for (size_t i = 0; list && i < list->items.size(); ++i) out.push_back(split_words(list->items[i].text));
  return out;
}

void check_overlay(const YamlNode& root, const Playbook& playbook, std::vector<SpecError>& errors) {
  for (const char* key : {"replaces", "removes"})
    if (const YamlNode* list = root.find(key); list && !playbook.overlay)
      errors.push_back({list->line, list->column, key, "requires `overlay: true`"});
  for (const NamedStep& replaced : playbook.replaces) {
    const auto is_it = [&](const auto& other) { return other.name == replaced.name; };
    if (std::none_of(playbook.steps.begin(), playbook.steps.end(), is_it))
      errors.push_back(
          {replaced.line, replaced.column, "replaces",
           fmt::format(
               "this file has no step '{}' to replace the shipped step with; use `removes` to drop a step",
               replaced.name)});
    if (std::any_of(playbook.removes.begin(), playbook.removes.end(), is_it))
      errors.push_back({replaced.line, replaced.column, "replaces",
                        fmt::format("'{}' is also listed in `removes`", replaced.name)});
  }
}

void check_only_for(const YamlNode& root, const Playbook& playbook, std::vector<SpecError>& errors) {
  const YamlNode* id = root.find("distribution");
  const YamlNode* elsewhere = root.find("elsewhere");
  if (elsewhere && !id)
    errors.push_back({elsewhere->line, elsewhere->column, "elsewhere", "requires `distribution`"});
  if (!id || !id->is_text()) return;
  if (playbook.overlay)
    errors.push_back({id->line, id->column, "distribution",
                      "not allowed in an overlay: that of the shipped playbook counts"});
  else if (!find_distribution(id->text))
    errors.push_back({id->line, id->column, "distribution",
                      fmt::format("unknown distribution '{}'; known: {}", id->text, known_distributions())});
}

}  // namespace

ParsedPlaybook parse_playbook(const std::string& text) {
  ParsedPlaybook out;
  ParsedYaml yaml = parse_yaml(text);
  out.errors = std::move(yaml.errors);
  if (!out.errors.empty()) return out;
  check_schema(yaml.root, Json::parse(embedded::playbook_schema), out.errors);
  if (yaml.root.is_map()) {
    out.playbook.name = text_or(yaml.root, "playbook", "");
    out.playbook.help = text_or(yaml.root, "help", "");
    out.playbook.not_exercised = text_or(yaml.root, "not_exercised", "");
    if (const YamlNode* overlay = yaml.root.find("overlay"); overlay && yaml_is_boolean(*overlay))
      out.playbook.overlay = yaml_boolean(*overlay);
    out.playbook.only_for = {text_or(yaml.root, "distribution", ""), text_or(yaml.root, "elsewhere", "")};
    out.playbook.optional_vars = var_groups(yaml.root);
    out.playbook.replaces = named_steps(yaml.root, "replaces");
    out.playbook.removes = named_steps(yaml.root, "removes");
    const YamlNode* steps = yaml.root.find("steps");
    std::set<std::string> names;
    std::set<int> groups;  // stages
    for (size_t i = 0; steps && i < steps->items.size(); ++i) {
      const YamlNode& map = steps->items[i];
      if (!map.is_map()) continue;
      out.playbook.steps.push_back(read_step(map));
      check_step(map, out.playbook.steps.back(), fmt::format("steps[{}]", i), names, out.errors);
      check_expect(map, fmt::format("steps[{}]", i), out.errors);
      // The nodes of such a step serve for its whole stage, and only one server can use the port.
      if (const PlaybookStep& step = out.playbook.steps.back();
          step.among == kGroup && !groups.insert(step.stage).second)
        out.errors.push_back({map.line, map.column, fmt::format("steps[{}].stage", i),
                              fmt::format("stage {} already has a step with `among: group`", step.stage)});
    }
    check_overlay(yaml.root, out.playbook, out.errors);
    check_only_for(yaml.root, out.playbook, out.errors);
  }
  sort_errors(out.errors);
  return out;
}

}  // namespace muster
