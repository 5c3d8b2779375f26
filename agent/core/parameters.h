// The parameters of a step module are the members that they fill. One list gives the reader, and the names,
// types, defaults and help texts of StepModule::parameters:
//
//   struct WantedSysctl {
//     std::string name = "base";
//     std::map<std::string, Json> values;
//     bool optional = false;
//   };
//   MUSTER_PARAMETERS(WantedSysctl, optional(name, "used in the file name: ..."),
//                     required(values, "parameter -> value"),
//                     optional(optional, "skip parameters that the kernel does not have"))
//
//   required(name, help)   an error if it is absent
//   optional(name, help)   the member keeps its initialiser, the default, if it is absent or an empty text
//   flat(name)             the parameters of this member's struct stand beside the others
//
// Behind the help text, kMayBeSecret declares what StepModule::parameters calls "secret".
//
// Members: what a record may have (base/record.h), and Texts. std::optional: a parameter without default.
// Json: a value of any form, or of the form of its initialiser (`Json options = Json::object()`). Other
// members are filled by `complete`, which also holds the rules that a type cannot express.
//
// What comes from a playbook has passed check_parameters(). Another module's call may be wrong, and gets an
// error of Code::invalid that names the module and the parameter.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/core/step.h"
#include "base/record.h"

#define MUSTER_PARAMETERS(W, ...)                       \
  template <typename Visitor>                           \
  void each_parameter(const W*, Visitor& visit) {       \
    using Self [[maybe_unused]] = W;                    \
    MUSTER_RECORD_X(MUSTER_PARAMETER_EACH(__VA_ARGS__)) \
  }
#define MUSTER_PARAMETER_EACH(p, ...) \
  visit.MUSTER_PARAMETER_##p;         \
  __VA_OPT__(MUSTER_PARAMETER_MORE MUSTER_RECORD_P(__VA_ARGS__))
#define MUSTER_PARAMETER_MORE() MUSTER_PARAMETER_EACH
#define MUSTER_PARAMETER_required(name, ...) parameter(#name, &Self::name, true, __VA_ARGS__)
#define MUSTER_PARAMETER_optional(name, ...) parameter(#name, &Self::name, false, __VA_ARGS__)
#define MUSTER_PARAMETER_flat(name) flat(&Self::name)

namespace muster {

// A list of texts. One text is a list of one, and elements that are no text are left out.
struct Texts : std::vector<std::string> {
  using std::vector<std::string>::vector;
};
Status read_own(const Json& json, Texts& out);
Json to_json(const Texts& texts);

inline constexpr bool kMayBeSecret = true;

namespace parameters {

template <typename T>
constexpr const char* type_of(const T& initial) {
  if constexpr (record::IsOptional<T>)
    return type_of(typename T::value_type{});
  else if constexpr (std::is_same_v<T, Json>)
    return initial.is_object() ? "object" : initial.is_array() ? "list" : "any";
  else if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_integral_v<T>)
    return "int";
  else if constexpr (std::is_floating_point_v<T>)
    return "number";
  else if constexpr (record::IsMap<T> || record::IsRecord<T>)
    return "object";
  else if constexpr (record::IsList<T>)
    return "list";
  else
    return "string";  // text, or an enum's word
}

// `initial` is left out if it is null or empty.
Json described(const char* name, const char* type, bool required, const char* help, Json initial);

template <typename W>
struct Describer {
  Json& out;
  const W& initial;
  template <typename T>
  void parameter(const char* name, T W::*member, bool required, const char* help, bool secret = false) {
    const T& value = initial.*member;
    Json one = described(name, type_of(value), required, help, required ? Json() : record::written(value));
    if (secret) one["secret"] = true;
    out.push_back(std::move(one));
  }
  template <typename T>
  void flat(T W::*member) {
    Describer<T> inner{out, initial.*member};
    each_parameter(&inner.initial, inner);
  }
};

template <typename W>
struct Filler {
  record::Object& object;
  W& out;
  template <typename T>
  void parameter(const char* name, T W::*member, bool required, const char*, bool = false) {
    const Json* found = object.find(name, required);
    if (!found || (!required && found->is_string() && found->template get_ref<const std::string&>().empty()))
      return;
    record::read(*found, record::Place{&object.at, name}, object.problems, out.*member);
  }
  template <typename T>
  void flat(T W::*member) {
    Filler<T> inner{object, out.*member};
    each_parameter(&inner.out, inner);
  }
};

}  // namespace parameters

template <typename W>
Json parameters_of() {
  Json out = Json::array();
  const W initial{};
  parameters::Describer<W> describer{out, initial};
  each_parameter(&initial, describer);
  return out;
}

// Code::invalid with all that is wrong.
template <typename W>
Result<W> read_parameters(const std::string& module, const Json& params) {
  static const Json none = Json::object();
  W out{};
  record::Problems problems;
  const record::Place at{nullptr, module};
  record::Object object(params.is_null() ? none : params, at, problems);
  parameters::Filler<W> filler{object, out};
  each_parameter(&out, filler);
  object.finish();
  TRY_(problems.status());
  return out;
}

// The functions of a module whose parameters fill a W; null ones as in StepModule.
template <typename W>
struct ModuleOf {
  std::string name;
  std::string help;
  Result<CheckResult> (*check)(StepContext&, const W&) = nullptr;
  Status (*apply)(StepContext&, const W&) = nullptr;
  Status (*verify)(StepContext&, const W&) = nullptr;
  Result<Json> (*measure)(StepContext&, const W&) = nullptr;
  // Fills the members that are no parameters, and refuses what cannot be meant. Before each of the others.
  Status (*complete)(const StepContext&, W&) = nullptr;
};

template <typename W>
StepModule step_module(const ModuleOf<W>& of) {
  const auto typed = [name = of.name, complete = of.complete](auto run) {
    return [name, complete, run](StepContext& context, const Json& params) -> decltype(run(context, W{})) {
      TRY(W want, read_parameters<W>(name, params));
      if (complete) TRY_(complete(context, want));
      return run(context, std::as_const(want));
    };
  };
  StepModule out;
  out.name = of.name;
  out.help = of.help;
  out.parameters = parameters_of<W>();
  if (of.check) out.check = typed(of.check);
  if (of.apply) out.apply = typed(of.apply);
  if (of.verify) out.verify = typed(of.verify);
  if (of.measure) out.measure = typed(of.measure);
  return out;
}

}  // namespace muster
