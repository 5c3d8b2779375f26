// Variables: those that muster itself reads are checked here; playbooks define what the others mean.
#include "base/kernel_line.h"
#include "controller/spec/gpu_software.h"
#include "controller/spec/reader/reader.h"

namespace muster {

std::map<std::string, std::string> SpecReader::read_vars(const YamlNode* map, const std::string& path) {
  std::map<std::string, std::string> out;
  if (!map) return out;
  for (const YamlEntry& entry : map->entries) {
    if (!entry.value.is_text()) continue;
    const std::string& value = out[entry.key] = entry.value.text;
    std::string wrong;
    if (entry.key == "kernel_options") wrong = wrong_kernel_options(value);
    if (entry.key == "console") wrong = wrong_console(value);
    if (!wrong.empty() && value.find('\n') != std::string::npos)
      wrong += "; in YAML, `>-` joins several lines into one";
    if (!wrong.empty()) error(entry.value, path + "." + entry.key, wrong);
  }
  if (const WrongVariable wrong = complete_driver_variables(out, spec_.vars); !wrong.name.empty()) {
    const YamlNode& at = *map->find(wrong.name);
    of_driver_.push_back({at.line, at.column, path + "." + wrong.name, wrong.reason});
  }
  return out;
}

}  // namespace muster
