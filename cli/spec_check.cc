#include "cli/spec_check.h"

#include <fmt/format.h>

#include <utility>

#include "base/plural.h"
#include "controller/bringup/whole_spec.h"
#include "controller/spec/findings.h"
#include "controller/spec/lab_only.h"

namespace muster::cli {
namespace {

std::string with_code(const SpecError& e, const std::string& file) {
  return to_string(e, file) + (e.code.empty() ? "" : fmt::format(" [{}]", e.code));
}

}  // namespace

CheckedSpec check_spec(const std::string& file, const SpecFile& read, const SpecNames& names,
                       const Files& zones) {
  WholeSpec whole = read_whole_spec(read.text, names, zones, ZonesOf::operator_host);
  CheckedSpec out{.file = file, .spec = std::move(whole.spec), .errors = std::move(whole.errors)};
  out.errors.insert(out.errors.begin(), read.errors.begin(), read.errors.end());
  if (!out.errors.empty()) return out;
  out.warnings = std::move(whole.warnings.shown);
  out.silenced = std::move(whole.warnings.silenced);
  return out;
}

Json json_of(const CheckedSpec& checked) {
  return {{"file", checked.file},
          {"valid", checked.valid()},
          {"lab_only", !lab_only(checked.spec).empty()},
          {"errors", findings_json(checked.errors, checked.file)},
          {"warnings", findings_json(checked.warnings, checked.file)},
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
                                spec.cluster, counted(spec.nodes.size(), "node"));
  if (!checked.warnings.empty()) out += "; " + counted(checked.warnings.size(), "warning");
  std::string codes;
  for (const auto& [code, count] : checked.silenced)
    codes += fmt::format("{}{} ({})", codes.empty() ? "" : ", ", code, count);
  return codes.empty() ? out : out + "; silenced: " + codes;
}

}  // namespace muster::cli
