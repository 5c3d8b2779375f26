#include "controller/bringup/whole_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/bringup/signed_gpu_results.h"
#include "controller/spec/findings.h"
#include "controller/spec/yaml.h"
#include "sys/zone_files.h"

namespace muster {
namespace {

// Errors of a spec's own rules have none; each says itself what to do.
constexpr const char* kNoCode = "invalid";

}  // namespace

ZoneCheck check_time_zone(const std::string& text, const Files& zones, ZonesOf of) {
  const bool decides = of == ZonesOf::controller;
  const ParsedYaml yaml = parse_yaml(text);
  const YamlNode* named = yaml.errors.empty() && yaml.root.is_map() ? yaml.root.find("time_zone") : nullptr;
  if (!named || !named->is_text() || named->text.empty()) return {};
  if (!has_zones(zones))
    return {.warning = SpecError{named->line, named->column, "time_zone",
                                 fmt::format("not checked, since {} has no time zones (package tzdata)",
                                             decides ? "the controller" : "this host"),
                                 "", std::string(finding::kTimeZoneUnchecked)}};
  const auto zone = read_zone(zones, named->text);
  if (zone.ok()) return {};
  return {.error =
              SpecError{named->line, named->column, "time_zone",
                        fmt::format("no time zone of {}: {}{}", decides ? "the controller" : "this host",
                                    zone.error().message,
                                    decides ? " (package tzdata)"
                                            : "; the controller's count, which need the package tzdata")}};
}

WholeSpec read_whole_spec(const std::string& text, const SpecNames& names, const Files& zones, ZonesOf of) {
  ParsedSpec parsed = parse_spec(text, names);
  WholeSpec out{.spec = std::move(parsed.spec), .errors = std::move(parsed.errors)};
  if (out.errors.empty())
    if (const auto results = gpu_results_of(out.spec); !results.ok())
      out.errors.push_back({0, 0, "", results.error().message});
  ZoneCheck zone = check_time_zone(text, zones, of);
  const auto of_zone = [](const SpecError& error) { return error.path == "time_zone"; };
  if (zone.error && std::none_of(out.errors.begin(), out.errors.end(), of_zone))
    out.errors.push_back(std::move(*zone.error));
  if (!out.errors.empty()) return out;
  std::vector<SpecError> more;
  if (zone.warning) more.push_back(std::move(*zone.warning));
  out.warnings = spec_warnings(text, out.spec, names, std::move(more));
  return out;
}

Json findings_json(const std::vector<SpecError>& found, const std::string& file) {
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

}  // namespace muster
