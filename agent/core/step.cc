#include "agent/core/step.h"

#include <set>

#include "agent/core/parameters.h"
#include "base/value_type.h"

namespace muster {

Status read_own(const Json& json, Texts& out) {
  if (!json.is_array() && !json.is_string())
    return fail(Code::invalid, std::string("wrong type (") + json.type_name() + ")");
  out.clear();
  for (const Json& text : json)  // a text is its own only element
    if (text.is_string()) out.push_back(text.get<std::string>());
  return Ok{};
}

Json to_json(const Texts& texts) {
  Json out = Json::array();
  for (const std::string& text : texts) out.push_back(text);
  return out;
}

Json parameters::described(const char* name, const char* type, bool required, const char* help,
                           Json initial) {
  Json out = {{"name", name}, {"type", type}, {"required", required}, {"help", help}};
  const bool empty = initial.is_null() || initial == Json("") || (initial.is_structured() && initial.empty());
  if (!empty) out["default"] = std::move(initial);
  return out;
}

Status check_parameters(const StepModule& module, const Json& params) {
  if (!params.is_object() && !params.is_null())
    return fail(Code::invalid, module.name + ": parameters must be an object");
  std::string problems;
  const auto complain = [&](const std::string& text) { problems += (problems.empty() ? "" : "; ") + text; };
  std::set<std::string> known;
  for (const auto& parameter : module.parameters) {
    const std::string name = parameter.value("name", "");
    const std::string type = parameter.value("type", "any");
    known.insert(name);
    const auto it = params.is_object() ? params.find(name) : params.end();
    if (!params.is_object() || it == params.end()) {
      if (parameter.value("required", false)) complain("'" + name + "' is missing");
    } else if (!has_type(*it, type)) {
      complain("'" + name + "' must be of type " + type + ", not " + it->type_name());
    }
  }
  if (params.is_object())
    for (const auto& [name, value] : params.items())
      if (!known.count(name)) complain("'" + name + "' is unknown");
  if (problems.empty()) return Ok{};
  return fail(Code::invalid, module.name + ": " + problems);
}

}  // namespace muster
