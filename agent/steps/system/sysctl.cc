// sysctl: kernel parameters, now and at every boot. No process: /proc/sys and a file of our own in
// /etc/sysctl.d.
#include <algorithm>

#include "agent/steps/step_modules.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

std::string proc_path(std::string key) {
  std::replace(key.begin(), key.end(), '.', '/');
  return "/proc/sys/" + key;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

// "10240\t87380" and "10240 87380" are the same.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string file_path(const Json& params) {
  return "/etc/sysctl.d/60-muster-" + text_of(params, "name", "base") + ".conf";
}

std::string file_text(const Json& params) {
  std::string out = "# Written by muster.\n";
  for (const auto& [key, value] : object_of(params, "values").items())
    out += key + " = " + value_text(value) + "\n";
  return out;
}

// With `optional`, what this kernel does not have is not set either.
bool is_left_out(const StepContext& context, const Json& params, const std::string& key) {
  return bool_of(params, "optional", false) && !context.files.exists(proc_path(key));
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  Diff diff;
  bool any = false;
  for (const auto& [key, value] : object_of(params, "values").items()) {
    if (is_left_out(context, params, key)) continue;
    any = true;
    if (!context.files.exists(proc_path(key)))
      return fail(Code::not_found, "the kernel has no parameter " + key);
    const std::string have = squeezed(context.files.read_line(proc_path(key)));
    if (have != squeezed(value_text(value))) diff.add(key + ": " + have + " -> " + value_text(value));
  }
  if (!any && bool_of(params, "optional", false))
    return CheckResult{Holds::not_applicable, "this kernel has none of these parameters"};
  const auto text = context.files.read(file_path(params));
  if (!text.ok() || *text != file_text(params)) diff.add(file_path(params) + " differs");
  return diff.result();
}

Status apply(StepContext& context, const Json& params) {
  const auto have = context.files.read(file_path(params));
  if (!have.ok() || *have != file_text(params))
    TRY_(context.files.write(file_path(params), file_text(params)));
  for (const auto& [key, value] : object_of(params, "values").items()) {
    if (is_left_out(context, params, key)) continue;
    if (squeezed(context.files.read_line(proc_path(key))) == squeezed(value_text(value))) continue;
    if (auto written = context.files.write_raw(proc_path(key), value_text(value) + "\n"); !written.ok())
      return std::move(written).error().with(key);
  }
  return Ok{};
}

}  // namespace

StepModule sysctl_module() {
  StepModule m;
  m.name = "sysctl";
  m.help = "Kernel parameters, now and at every boot, in a file of muster's own.";
  m.parameters = Json::array(
      {parameter("name", "string", false, "names the file: /etc/sysctl.d/60-muster-NAME.conf", "base"),
       parameter("values", "object", true, "parameter -> value"),
       parameter("optional", "bool", false, "a parameter that the kernel does not have is left out", false)});
  m.check = check;
  m.apply = apply;
  return m;
}

}  // namespace muster::steps
