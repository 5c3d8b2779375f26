// Loads kernel modules as udev would, but without it: by the names that devices announce (modalias).
//
// Uses modules.dep, modules.softdep and modules.alias of the RAM system, which list only the packed modules.
// Thread safety: one thread. Never unloads anything.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

class ModuleLoader {
 public:
  // Inserts one module file; Ok if it is already loaded. Tests pass a recorder.
  using Insert = std::function<Status(const std::string& path)>;

  // `folder`: "/usr/lib/modules/<release>" within `files`.
  ModuleLoader(const Files& files, std::string folder, Insert insert);
  // Loads `name` with its dependencies, and its declared soft dependencies before or after it (such as a
  // network driver's PHY driver). An unknown name is not an error: the module is built in or absent.
  Status load(const std::string& name);
  // Loads the modules for the devices of all buses, repeatedly until nothing new appears (a bus driver can
  // add new devices). Failures are collected, not fatal: a broken NIC driver must not hide the others.
  std::vector<std::string> load_for_devices();

 private:
  std::vector<std::string> aliases_of_devices() const;
  using Soft = std::map<std::string, std::vector<std::string>>;  // module -> modules

  Status load_path(const std::string& path);
  void load_soft(const Soft& soft, const std::string& path);

  const Files& files_;
  std::string folder_;
  Insert insert_;
  std::map<std::string, std::string> path_of_ = {};
  std::map<std::string, std::vector<std::string>> needs_ = {};
  std::vector<std::pair<std::string, std::string>> aliases_ = {};  // pattern, module
  Soft before_ = {}, after_ = {};
  std::set<std::string> begun_ = {};
};

Status insert_module(const std::string& path);

}  // namespace muster
