#include "controller/spec/playbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/secrets.h"
#include "base/split.h"
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
        const auto words = split_words(says.get<std::string>());
        const auto says_so = [&](const char* word) {
          return std::find(words.begin(), words.end(), word) != words.end();
        };
        known[name] = {words.at(0), says_so("required"), says_so("secret")};
      }
    }
    return out;
  }();
  return all;
}

std::string why_no_secret(const std::string& module, const std::string& parameter, const Json& value) {
  if (!refers_to_secret(value)) return "";
  const auto called = module_list().find(module);
  if (called != module_list().end()) {
    const auto found = called->second.find(parameter);
    if (found != called->second.end() && found->second.secret) return "";
  }
  return fmt::format(
      "module '{}' takes no secret in '{}', where users of the node could read it: pass it to a program by "
      "`env` or `input` of module `command`, or write it to a file with module `file`",
      module, parameter);
}

Status check_secrets(const std::string& module, const Json& params) {
  if (params.is_object())
    for (const auto& [name, value] : params.items())
      if (const std::string why = why_no_secret(module, name, value); !why.empty())
        return fail(Code::invalid, why);
  return Ok{};
}

Status check_image_step(const Json& part) {
  if (!refers_to_secret(part)) return Ok{};
  return fail(Code::invalid,
              "an image can be read on the whole provisioning network, so its steps take no secrets: use "
              "phase node");
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
    if (const std::string why = why_no_secret(module->text, entry.key, to_json(entry.value)); !why.empty())
      errors.push_back({entry.value.line, entry.value.column, where, why});
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
