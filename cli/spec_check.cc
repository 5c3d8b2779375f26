#include "cli/spec_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/bringup/signed_gpu_results.h"
#include "controller/spec/findings.h"
#include "controller/spec/lab_only.h"
#include "controller/spec/warnings/spec_warnings.h"
#include "controller/spec/yaml.h"

namespace muster::cli {
namespace {

// Errors of a spec's own rules have none; each says itself what to do.
constexpr const char* kNoCode = "invalid";

std::string amount(size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Json json_of(const std::vector<SpecError>& found, const std::string& file) {
  Json out = Json::array();
  for (const SpecError& e : found) {
    const Finding* known = find_finding(e.code);
    out.push_back({{"code", e.code.empty() ? kNoCode : e.code},
                   {"file", e.file.empty() ? file : e.file},
                   {"line", e.line},
                   {"column", e.column},
                   {"path", e.path},
                   {"message", e.message},
                   {"remedy", known ? std::string(known->remedy) : std::string()}});
  }
  return out;
}

std::string with_code(const SpecError& e, const std::string& file) {
  return to_string(e, file) + (e.code.empty() ? "" : fmt::format(" [{}]", e.code));
}

}  // namespace

CheckedSpec check_spec(const std::string& file, const SpecFile& read, const SpecNames& names,
                       const Files& zones) {
  ParsedSpec parsed = parse_spec(read.text, names);
  CheckedSpec out{.file = file, .spec = std::move(parsed.spec), .errors = std::move(parsed.errors)};
  out.errors.insert(out.errors.begin(), read.errors.begin(), read.errors.end());
  if (out.errors.empty())
    if (const auto results = gpu_results_of(out.spec); !results.ok())
      out.errors.push_back({0, 0, "", results.error().message});
  ZoneCheck zone = check_time_zone(read.text, zones);
  const auto of_zone = [](const SpecError& error) { return error.path == "time_zone"; };
  if (zone.error && std::none_of(out.errors.begin(), out.errors.end(), of_zone))
    out.errors.push_back(std::move(*zone.error));
  if (!out.errors.empty()) return out;
  std::vector<SpecError> more;
  if (zone.warning) more.push_back(std::move(*zone.warning));
  SpecWarnings warnings = spec_warnings(read.text, out.spec, names, std::move(more));
  out.warnings = std::move(warnings.shown);
  out.silenced = std::move(warnings.silenced);
  return out;
}

Json json_of(const CheckedSpec& checked) {
  return {{"file", checked.file},
          {"valid", checked.valid()},
          {"lab_only", !lab_only(checked.spec).empty()},
          {"errors", json_of(checked.errors, checked.file)},
          {"warnings", json_of(checked.warnings, checked.file)},
          {"silenced", checked.silenced}};
}

std::string finding_lines(const CheckedSpec& checked) {
  std::string out;
  for (const SpecError& error : checked.errors) out += with_code(error, checked.file) + "\n";
  for (SpecError warning : checked.warnings) {
    warning.path = (checked.strict ? "error: " : "warning: ") + warning.path;
    out += with_code(warning, checked.file) + "\n";
    if (const Finding* known = find_finding(warning.code)) out += fmt::format("    {}\n", known->remedy);
  }
  return out;
}

std::string summary_line(const CheckedSpec& checked) {
  const Spec& spec = checked.spec;
  std::string out = fmt::format("{}: valid{}; cluster {}, {}", checked.file,
                                lab_only(spec).empty() ? "" : ", for a lab only (`muster lab up`)",
                                spec.cluster, amount(spec.nodes.size(), "node"));
  if (!checked.warnings.empty()) out += "; " + amount(checked.warnings.size(), "warning");
  std::string codes;
  for (const auto& [code, count] : checked.silenced)
    codes += fmt::format("{}{} ({})", codes.empty() ? "" : ", ", code, count);
  return codes.empty() ? out : out + "; silenced: " + codes;
}

}  // namespace muster::cli
