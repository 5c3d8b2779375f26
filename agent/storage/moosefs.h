// Shared by MooseFS' modules: names, folders and settings (agent/storage/moosefs*.cc).
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "agent/steps/files/file_modules.h"
#include "agent/storage/parts.h"

namespace muster::steps {

inline constexpr const char* kMooseFsUser = "mfs";

// Returns a serial number with only characters that are safe in a path.
inline std::string plain_serial(const std::string& serial) {
  std::string out;
  for (const char c : serial) out += isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '_';
  return out;
}
// Returns the file system label of a disk of this storage.
inline std::string moosefs_label(const std::string& serial) {
  const std::string name = plain_serial(serial);
  return "mfs-" + (name.size() > 8 ? name.substr(name.size() - 8) : name);
}

inline Part moosefs_own_folder(const std::string& path) {
  return {directory_module(),
          {{"path", path}, {"mode", "0750"}, {"owner", kMooseFsUser}, {"group", kMooseFsUser}}};
}
// Returns a daemon's settings. It runs as `mfs`; Debian's default is root.
inline std::string moosefs_config(const std::string& folder, const std::string& rest) {
  return fmt::format("{}WORKING_USER = {}\nWORKING_GROUP = {}\nDATA_PATH = {}\n{}", kHead, kMooseFsUser,
                     kMooseFsUser, folder, rest);
}

// Returns the output of `mfscli` for `what` ("-SCS", "-SIN", "-CM1/..."), fields separated by '|'. An error
// if the master does not answer.
Result<std::string> mfscli(StepContext& context, const std::string& master,
                           const std::vector<std::string>& what);

}  // namespace muster::steps
