// A secret in the parameters of step modules, and modules that repeat what they are given. Thread: one.
#pragma once

#include <string>
#include <vector>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "base/digest.h"
#include "base/json_dump.h"

namespace muster::testing {

inline const std::string kApp = "the-app-secret", kOld = "the-old-secret";

inline bool shows(const std::string& text, const std::string& secret = kApp) {
  return text.find(secret) != std::string::npos || text.find(to_base64(secret)) != std::string::npos;
}

// Where a module can say something.
enum class Says { difference, error, failure, verification, note, result };
inline constexpr Says kAllSays[] = {Says::difference,   Says::error, Says::failure,
                                    Says::verification, Says::note,  Says::result};

// A module of the same name and parameters that repeats what it is given.
inline StepModule twin_of(const StepModule& module, Says says) {
  StepModule out;
  out.name = module.name;
  out.parameters = module.parameters;
  const auto repeats = [says](Says where, const Json& params) -> Status {
    if (says != where) return Ok{};
    return fail(Code::failed, dump_json(params) + to_base64(kApp));
  };
  if (says == Says::result) {
    out.measure = [](StepContext&, const Json& params) -> Result<Json> {
      return Json{{"check", "x"},
                  {"outcome", "measured"},
                  {"error", dump_json(params)},
                  {"metrics", {{"x", {{"value", 2}, {"unit", "x"}}}}},
                  {"detail", {{"given", params}}}};
    };
    return out;
  }
  out.check = [=](StepContext& context, const Json& params) -> Result<CheckResult> {
    steps::say(context, dump_json(params));
    TRY_(repeats(Says::error, params));
    if (says == Says::note) return CheckResult{Holds::yes, "", dump_json(params)};
    return CheckResult{Holds::no, dump_json(params)};
  };
  out.apply = [=](StepContext&, const Json& params) { return repeats(Says::failure, params); };
  out.verify = [=](StepContext&, const Json& params) { return repeats(Says::verification, params); };
  return out;
}

inline Json of_type(const std::string& type, const std::string& text) {
  if (type == "list") return Json::array({text});
  if (type == "object") return Json::object({{"key", text}});
  if (type == "bool") return Json(false);
  if (type == "int" || type == "number") return Json(0);
  return Json(text);
}

// The parameters of a call with this text in this one; null if its type holds no text.
inline Json planted(const StepModule& module, const std::string& name, const std::string& text = kApp) {
  Json params = Json::object();
  for (const Json& parameter : module.parameters) {
    const bool here = parameter.value("name", "") == name;
    const Json value = of_type(parameter.value("type", "any"), here ? text : "other");
    if (here && !shows(dump_json(value), text)) return Json();
    if (here || parameter.value("required", false)) params[parameter.value("name", "")] = value;
  }
  return params;
}

// A process that remembers what its programs could have shown.
struct Watched : Process {
  std::vector<Command> commands;
  Output output;
  Result<Output> run(const Command& command) override {
    commands.push_back(command);
    return output;
  }
};

}  // namespace muster::testing
