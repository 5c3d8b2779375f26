// Kernel modules by name, with everything they need. Pure: works on the texts of modules.dep, modules.softdep
// and modules.alias.
//
// A soft dependency is one that a module names but does not link to: r8169 probes no card without realtek,
// and modules.dep does not list it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster {

class ModuleIndex {
 public:
  explicit ModuleIndex(const std::string& modules_dep, const std::string& modules_softdep = "",
                       const std::string& modules_alias = "");
  // Paths relative to /lib/modules/<release>, dependencies first, hard and soft, without repeats. Unknown
  // names (built into the kernel, or not in this one) are left out.
  std::vector<std::string> closure(const std::vector<std::string>& names) const;
  // Names of the modules whose path begins with this, in order of path.
  std::vector<std::string> below(const std::string& folder) const;
  // The lines of modules.dep for these paths.
  std::string dep_lines(const std::vector<std::string>& paths) const;
  // Those of modules.softdep, with modules by their names: "softdep r8169 pre: realtek". What is not among
  // the paths is left out.
  std::string softdep_lines(const std::vector<std::string>& paths) const;

 private:
  struct Soft {
    std::vector<std::string> before = {}, after = {};  // paths
  };
  void read_softdeps(const std::string& modules_softdep, const std::string& modules_alias);
  void add(const std::string& path, std::vector<std::string>& out, std::set<std::string>& begun) const;
  std::map<std::string, std::string> path_of_ = {};             // name with '_' -> path
  std::map<std::string, std::vector<std::string>> needs_ = {};  // path -> paths
  std::map<std::string, Soft> soft_ = {};                       // path -> its soft dependencies
};

// "kernel/drivers/nvme/host/nvme-core.ko" -> "nvme_core"
std::string module_name(const std::string& path);
// The lines of modules.alias that lead to one of `paths`.
std::string alias_lines(const std::string& modules_alias, const std::vector<std::string>& paths);

}  // namespace muster
