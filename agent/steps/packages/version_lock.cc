#include "agent/steps/packages/version_lock.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <sstream>

namespace muster::steps {
namespace {

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool covers(const VersionLock& lock, const std::string& package) {
  for (const auto& pattern : lock.packages)
    if (fits(pattern, package)) return true;
  return false;
}

std::string without_architecture(const std::string& name) { return name.substr(0, name.find(':')); }

}  // namespace

Result<std::vector<VersionLock>> version_locks(const Json& list) {
  const auto wrong = [] {
    return fail(Code::invalid, "package: a lock must be {packages: [patterns], version: pattern}");
  };
  std::vector<VersionLock> out;
  if (!list.is_array()) return wrong();
  for (const Json& item : list) {
    if (!item.is_object() || item.size() != 2 || !item.contains("packages") || !item.contains("version"))
      return wrong();
    const Json &packages = item["packages"], &version = item["version"];
    if (!packages.is_array() || packages.empty() || !version.is_string() ||
        version.get<std::string>().empty())
      return wrong();
    VersionLock lock{{}, version.get<std::string>()};
    for (const Json& name : packages) {
      if (!name.is_string() || name.get<std::string>().empty()) return wrong();
      lock.packages.push_back(name.get<std::string>());
    }
    out.push_back(std::move(lock));
  }
  return out;
}

bool is_locked(const std::vector<VersionLock>& locks, const std::string& package) {
  for (const auto& lock : locks)
    if (covers(lock, package)) return true;
  return false;
}

std::vector<std::string> outside_locks(const std::vector<VersionLock>& locks,
                                       const std::map<std::string, std::string>& packages) {
  std::vector<std::string> out;
  for (const auto& lock : locks)
    for (const auto& [name, version] : packages)
      if (covers(lock, name) && !fits(lock.version, version))
        out.push_back(fmt::format("{} has version {}, but its set requires {}", name, version, lock.version));
  return out;
}

std::map<std::string, std::string> after_simulation(std::map<std::string, std::string> installed,
                                                    const std::string& simulation) {
  // "Inst NAME[:ARCH] [old version] (new version archive... [arch])", "Remv NAME [version]"
  std::istringstream in(simulation);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string verb, name;
    words >> verb >> name;
    if (verb == "Remv") installed.erase(without_architecture(name));
    const auto open = line.find('(');
    if (verb == "Inst" && open != std::string::npos)
      installed[without_architecture(name)] =
          line.substr(open + 1, line.find_first_of(" )", open) - open - 1);
  }
  return installed;
}

}  // namespace muster::steps
