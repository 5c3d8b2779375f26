// Kernel modules by name, with everything they need. Pure: works on the texts of modules.dep and
// modules.alias.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster {

class ModuleIndex {
 public:
  explicit ModuleIndex(const std::string& modules_dep);
  // Paths relative to /lib/modules/<release>, dependencies first, without repeats. Unknown names (built into
  // the kernel, or not in this one) are left out.
  std::vector<std::string> closure(const std::vector<std::string>& names) const;
  // The lines of modules.dep for these paths.
  std::string dep_lines(const std::vector<std::string>& paths) const;

 private:
  void add(const std::string& path, std::vector<std::string>& out) const;
  std::map<std::string, std::string> path_of_ = {};             // name with '_' -> path
  std::map<std::string, std::vector<std::string>> needs_ = {};  // path -> paths
};

// "kernel/drivers/nvme/host/nvme-core.ko" -> "nvme_core"
std::string module_name(const std::string& path);
// The lines of modules.alias that lead to one of `paths`.
std::string alias_lines(const std::string& modules_alias, const std::vector<std::string>& paths);

}  // namespace muster
