// The part of `lab:` that the controller reads; the rest is the lab's own (lab/lab_spec.cc).
#include "controller/report/verdict.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

// What the schema does not cover.
bool is_well_formed(const Json& limit) {
  static const std::set<std::string> kKeys = {
      "min", "max", "degraded_below", "degraded_above", "of_raw_reads", "otherwise_min"};
  for (const auto& [key, value] : limit.items())
    if (!kKeys.count(key) || !value.is_number()) return false;
  return true;
}

}  // namespace

void SpecReader::read_lab() {
  for (const YamlEntry& section : root_.entries)
    if (section.key == "lab") {
      spec_.lab = true;
      spec_.lab_at = {section.line, section.column};
    }
  const YamlNode* acceptance = child(child(&root_, "lab"), "acceptance");
  if (!acceptance || !acceptance->is_map()) return;
  LabAcceptance& out = spec_.lab_acceptance.emplace();
  if (const YamlNode* scale = acceptance->find("time_scale"); scale && yaml_is_number(*scale)) {
    out.time_scale = std::strtod(scale->text.c_str(), nullptr);
    if (out.time_scale <= 0) error(*scale, "lab.acceptance.time_scale", "must be more than 0 and at most 1");
  }
  if (const YamlNode* compare = acceptance->find("compare"); compare && yaml_is_boolean(*compare))
    out.compare = yaml_boolean(*compare);
  const auto read = [&](const char* key, std::map<std::string, Json>& into) {
    const YamlNode* map = acceptance->find(key);
    if (!map || !map->is_map()) return;
    for (const YamlEntry& entry : map->entries)
      if (entry.value.is_map()) into[entry.key] = to_json(entry.value);
  };
  read("limits", out.limits);
  read("options", out.options);
  for (const auto& [name, limit] : out.limits) {
    const YamlNode& limits = *acceptance->find("limits");
    const std::string path = "lab.acceptance.limits." + name;
    if (name.find('/') == std::string::npos)
      error(limits, path, "must name the check and its metric, such as dgemm/gflops");
    else if (const Status fine = check_limit(name.substr(name.rfind('/') + 1), limit);
             is_well_formed(limit) && !fine.ok())
      error(*limits.find(name), path, fine.error().message);
  }
}

}  // namespace muster
