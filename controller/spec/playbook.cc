#include "controller/spec/playbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/value_type.h"

namespace muster {
namespace {

// The executor's own parameters, which are removed before an order is sent (controller/run/narrow.h).
const std::set<std::string> kOfTheExecutor = {"peers_live", "next_live", "peers_in_plan"};

template <typename Map>
std::string meant(const std::string& word, const Map& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) names.push_back(name);
  const std::string near = nearest_spelling(word, names);
  return near.empty() ? "" : fmt::format(", did you mean '{}'?", near);
}

void check_parameter(const YamlEntry& entry, const std::string& path, const ModuleParameter& parameter,
                     std::vector<SpecError>& errors) {
  const Json value = to_json(entry.value);
  // The value of a template is known only when it is rendered.
  if (value.is_string() && value.get<std::string>().find("{{") != std::string::npos) return;
  if (!has_type(value, parameter.type))
    errors.push_back({entry.value.line, entry.value.column, path,
                      fmt::format("must be of type {}, not {}{}", parameter.type, value.type_name(),
                                  parameter.type == "string" ? ": put it in quotes" : "")});
}

}  // namespace

const std::map<std::string, std::map<std::string, ModuleParameter>>& module_list() {
  static const auto all = [] {
    std::map<std::string, std::map<std::string, ModuleParameter>> out;
    const Json modules = parse_json(embedded::modules).value_or(Json::object());
    for (const auto& [module, parameters] : modules.items()) {
      auto& known = out[module];
      for (const auto& [name, says] : parameters.items()) {
        const std::string words = says.get<std::string>();
        const size_t space = words.find(' ');
        known[name] = {words.substr(0, space), space != std::string::npos};
      }
    }
    return out;
  }();
  return all;
}

void check_module_call(const YamlNode& step, const std::string& path, std::vector<SpecError>& errors) {
  const YamlNode* module = step.find("module");
  if (!module || !module->is_text()) return;
  const auto found = module_list().find(module->text);
  if (found == module_list().end()) {
    const std::string near = meant(module->text, module_list());
    errors.push_back({module->line, module->column, path + ".module",
                      fmt::format("unknown module '{}'{}", module->text,
                                  near.empty() ? "; docs/playbooks.md lists them all" : near)});
    return;
  }
  const YamlNode* params = step.find("params");
  if (params && !params->is_map()) return;
  const auto& known = found->second;
  for (const YamlEntry& entry : params ? params->entries : std::vector<YamlEntry>{}) {
    const std::string where = path + ".params." + entry.key;
    const auto parameter = known.find(entry.key);
    if (parameter != known.end())
      check_parameter(entry, where, parameter->second, errors);
    else if (!kOfTheExecutor.count(entry.key))
      errors.push_back({entry.line, entry.column, where,
                        fmt::format("module '{}' has no parameter '{}'{}", module->text, entry.key,
                                    meant(entry.key, known))});
  }
  for (const auto& [name, parameter] : known)
    if (parameter.required && (!params || !params->find(name))) {
      const YamlNode& at = params ? *params : *module;
      errors.push_back({at.line, at.column, path + ".params",
                        fmt::format("module '{}' needs the parameter '{}'", module->text, name)});
    }
}

}  // namespace muster
