// Loads kernel modules the way udev would, without udev: by the names a device announces (modalias).
//
// Works on modules.dep and modules.alias of the RAM system, which hold only what was put there.
// Thread: one. Never: unloads anything.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/result.h"

namespace muster {

class ModuleLoader {
 public:
  // Inserts one module file; a module that is there already counts as inserted. Tests pass a recorder.
  using Insert = std::function<Status(const std::string& path)>;

  // `folder`: "/usr/lib/modules/<release>" within `files`.
  ModuleLoader(const Files& files, std::string folder, Insert insert);
  // Loads `name` and what it needs. Unknown names are built into the kernel or absent: no error.
  Status load(const std::string& name);
  // Loads what the devices of all buses ask for, again and again until nothing new is asked for (a bus driver
  // makes new devices appear). Failures are collected, not fatal: a broken NIC driver must not hide the
  // others.
  std::vector<std::string> load_for_devices();

 private:
  std::vector<std::string> aliases_of_devices() const;
  Status insert_once(const std::string& path);

  const Files& files_;
  std::string folder_;
  Insert insert_;
  std::map<std::string, std::string> path_of_ = {};
  std::map<std::string, std::vector<std::string>> needs_ = {};
  std::vector<std::pair<std::string, std::string>> aliases_ = {};  // pattern, module
  std::set<std::string> done_ = {};
};

// finit_module(2).
Status insert_module(const std::string& path);

}  // namespace muster
