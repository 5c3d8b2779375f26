#include "controller/image/ram_modules.h"

#include <algorithm>
#include <sstream>

#include "base/split.h"

namespace muster {

std::string module_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  name = name.substr(0, name.find('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::set<std::string> builtin_modules(const std::string& modules_builtin) {
  std::set<std::string> out;
  for (const std::string& line : split_lines(modules_builtin)) out.insert(module_name(line));
  return out;
}

bool ModuleIndex::has(const std::string& name) const { return path_of_.count(module_name(name)) != 0; }

ModuleIndex::ModuleIndex(const std::string& modules_dep, const std::string& modules_softdep,
                         const std::string& modules_alias) {
  for (const std::string& line : split_lines(modules_dep)) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string path = line.substr(0, colon);
    path_of_[module_name(path)] = path;
    for (const std::string& need : split_words(line.substr(colon + 1))) needs_[path].push_back(need);
  }
  read_softdeps(modules_softdep, modules_alias);
}

// "softdep r8169 pre: realtek post: x". A name is that of a module or an alias ("crypto-crc32c"); words
// before `pre:` and `post:` are ignored, as by modprobe.
void ModuleIndex::read_softdeps(const std::string& modules_softdep, const std::string& modules_alias) {
  std::multimap<std::string, std::string> modules_of;  // alias -> name
  for (const std::string& line : split_lines(modules_alias)) {
    std::istringstream words(line);
    std::string keyword, alias, name;
    if (words >> keyword >> alias >> name && keyword == "alias") modules_of.emplace(alias, name);
  }
  for (const std::string& line : split_lines(modules_softdep)) {
    std::istringstream words(line);
    std::string keyword, name, word;
    if (!(words >> keyword >> name) || keyword != "softdep" || path_of_.count(module_name(name)) == 0)
      continue;
    Soft& soft = soft_[path_of_.at(module_name(name))];
    std::vector<std::string>* list = nullptr;
    const auto take = [&](const std::string& module) {
      const auto found = path_of_.find(module_name(module));
      if (list && found != path_of_.end()) list->push_back(found->second);
    };
    while (words >> word) {
      if (word == "pre:")
        list = &soft.before;
      else if (word == "post:")
        list = &soft.after;
      else if (path_of_.count(module_name(word)) != 0)
        take(word);
      else
        for (auto [at, end] = modules_of.equal_range(word); at != end; ++at) take(at->second);
    }
  }
}

void ModuleIndex::add(const std::string& path, std::vector<std::string>& out,
                      std::set<std::string>& begun) const {
  if (!begun.insert(path).second) return;
  const auto soft = soft_.find(path);
  if (soft != soft_.end())
    for (const auto& before : soft->second.before) add(before, out, begun);
  // modules.dep lists all transitive dependencies, the nearest first, so they are loaded from the end.
  if (const auto it = needs_.find(path); it != needs_.end())
    for (auto need = it->second.rbegin(); need != it->second.rend(); ++need) add(*need, out, begun);
  out.push_back(path);
  if (soft != soft_.end())
    for (const auto& after : soft->second.after) add(after, out, begun);
}

std::vector<std::string> ModuleIndex::closure(const std::vector<std::string>& names) const {
  std::vector<std::string> out;
  std::set<std::string> begun;
  for (const auto& name : names)
    if (const auto it = path_of_.find(module_name(name)); it != path_of_.end()) add(it->second, out, begun);
  return out;
}

std::vector<std::string> ModuleIndex::below(const std::string& folder) const {
  std::map<std::string, std::string> found;
  for (const auto& [name, path] : path_of_)
    if (path.compare(0, folder.size(), folder) == 0) found[path] = name;
  std::vector<std::string> out;
  for (const auto& [path, name] : found) out.push_back(name);
  return out;
}

std::string ModuleIndex::softdep_lines(const std::vector<std::string>& paths) const {
  const std::set<std::string> there(paths.begin(), paths.end());
  const auto names = [&](const char* when, const std::vector<std::string>& list) {
    std::string out;
    for (const auto& path : list)
      if (there.count(path) != 0) out += " " + module_name(path);
    return out.empty() ? out : std::string(" ") + when + out;
  };
  std::string out;
  for (const auto& path : paths) {
    const auto soft = soft_.find(path);
    if (soft == soft_.end()) continue;
    const std::string rest = names("pre:", soft->second.before) + names("post:", soft->second.after);
    if (!rest.empty()) out += "softdep " + module_name(path) + rest + "\n";
  }
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
  for (const std::string& line : split_lines(modules_alias)) {
    std::istringstream words(line);
    std::string keyword, pattern, name;
    if (words >> keyword >> pattern >> name && keyword == "alias" && names.count(module_name(name)))
      out += line + "\n";
  }
  return out;
}

}  // namespace muster
