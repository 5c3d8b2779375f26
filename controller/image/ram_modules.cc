#include "controller/image/ram_modules.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace muster {

std::string module_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  name = name.substr(0, name.find('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

ModuleIndex::ModuleIndex(const std::string& modules_dep) {
  std::istringstream in(modules_dep);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string path = line.substr(0, colon);
    path_of_[module_name(path)] = path;
    std::istringstream rest(line.substr(colon + 1));
    for (std::string need; rest >> need;) needs_[path].push_back(need);
  }
}

void ModuleIndex::add(const std::string& path, std::vector<std::string>& out) const {
  if (std::find(out.begin(), out.end(), path) != out.end()) return;
  // modules.dep lists the nearest dependency first and is transitive: load it from the end.
  if (const auto it = needs_.find(path); it != needs_.end())
    for (auto need = it->second.rbegin(); need != it->second.rend(); ++need)
      if (std::find(out.begin(), out.end(), *need) == out.end()) out.push_back(*need);
  out.push_back(path);
}

std::vector<std::string> ModuleIndex::closure(const std::vector<std::string>& names) const {
  std::vector<std::string> out;
  for (const auto& name : names)
    if (const auto it = path_of_.find(module_name(name)); it != path_of_.end()) add(it->second, out);
  return out;
}

std::string ModuleIndex::dep_lines(const std::vector<std::string>& paths) const {
  std::string out;
  for (const auto& path : paths) {
    out += path + ":";
    if (const auto it = needs_.find(path); it != needs_.end())
      for (const auto& need : it->second) out += " " + need;
    out += "\n";
  }
  return out;
}

std::string alias_lines(const std::string& modules_alias, const std::vector<std::string>& paths) {
  std::set<std::string> names;
  for (const auto& p : paths) names.insert(module_name(p));
  std::string out;
  std::istringstream in(modules_alias);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string keyword, pattern, name;
    if (words >> keyword >> pattern >> name && keyword == "alias" && names.count(module_name(name)))
      out += line + "\n";
  }
  return out;
}

}  // namespace muster
