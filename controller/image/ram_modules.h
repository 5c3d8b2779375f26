// Kernel modules by name, with their dependencies. No I/O: works on the texts of modules.dep,
// modules.softdep, modules.alias and modules.builtin.
//
// A soft dependency is one that a module names but does not link to: r8169 does not probe cards without
// realtek, which modules.dep does not list.
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
  // Returns paths relative to /lib/modules/<release>, each once, preceded by their hard and soft
  // dependencies. Unknown names (built into the kernel, or absent from it) are left out.
  std::vector<std::string> closure(const std::vector<std::string>& names) const;
  bool has(const std::string& name) const;
  // Returns the names of the modules whose path begins with `folder`, in order of path.
  std::vector<std::string> below(const std::string& folder) const;
  std::string dep_lines(const std::vector<std::string>& paths) const;
  // Returns the lines of modules.softdep, such as "softdep r8169 pre: realtek", for these paths. Modules that
  // are not among the paths are left out.
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
// The names of the modules that a kernel has built in, from modules.builtin.
std::set<std::string> builtin_modules(const std::string& modules_builtin);
// Returns the lines of modules.alias that refer to one of `paths`.
std::string alias_lines(const std::string& modules_alias, const std::vector<std::string>& paths);

}  // namespace muster
