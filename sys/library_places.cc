#include "sys/library_places.h"

#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/cuda_driver.h"
#include "base/split.h"
#include "sys/account_files.h"

namespace muster {
namespace {

// Patterns of folders; '*' matches one path component or a part of it.
constexpr const char* kSystem[] = {"/usr/local/cuda/lib64",
                                   "/usr/local/cuda*/lib64",
                                   "/usr/local/cuda*/targets/x86_64-linux/lib",
                                   "/opt/nvidia/hpc_sdk/Linux_x86_64/*/comm_libs/nccl/lib",
                                   "/opt/nvidia/hpc_sdk/Linux_x86_64/*/comm_libs/*/nccl/lib",
                                   "/opt/nvidia/hpc_sdk/Linux_x86_64/*/math_libs/lib64",
                                   "/opt/nvidia/hpc_sdk/Linux_x86_64/*/math_libs/*/lib64",
                                   "/opt/hpcx*/*/lib",
                                   "/opt/nccl/lib",
                                   "/opt/nccl/build/lib",
                                   "/usr/local/lib",
                                   "/usr/lib/x86_64-linux-gnu",
                                   "/usr/lib64"};
// In an environment of Python or conda. Wheels: nvidia/cublas/lib, nvidia/nccl/lib; of CUDA 13
// nvidia/cu13/lib.
constexpr const char* kEnvironment[] = {"/lib/python3*/site-packages/nvidia/*/lib",
                                        "/lib64/python3*/site-packages/nvidia/*/lib", "/lib"};
// Folders of environments in a home folder.
constexpr const char* kOfHome[] = {"/miniconda3",
                                   "/anaconda3",
                                   "/miniforge3",
                                   "/mambaforge",
                                   "/.conda/envs/*",
                                   "/miniconda3/envs/*",
                                   "/miniforge3/envs/*",
                                   "/mambaforge/envs/*",
                                   "/anaconda3/envs/*",
                                   "/micromamba/envs/*",
                                   "/.local/share/mamba/envs/*"};
constexpr const char* kOfSystem[] = {"/opt/conda", "/opt/*", "/opt/conda/envs/*", "/opt/*/envs/*"};
constexpr const char* kSystemPython[] = {"/usr/local/lib/python3*/dist-packages/nvidia/*/lib",
                                         "/usr/local/lib/python3*/site-packages/nvidia/*/lib",
                                         "/usr/local/lib64/python3*/site-packages/nvidia/*/lib",
                                         "/usr/lib/python3/dist-packages/nvidia/*/lib",
                                         "/usr/lib/python3*/site-packages/nvidia/*/lib",
                                         "/usr/lib64/python3*/site-packages/nvidia/*/lib"};

// The highest version first.
std::vector<std::string> matching(const Files& files, const std::string& pattern) {
  std::vector<std::string> out = {""};
  for (size_t at = 1; at < pattern.size();) {
    const size_t end = std::min(pattern.find('/', at), pattern.size());
    const std::string part = pattern.substr(at, end - at);
    std::vector<std::string> next;
    for (const auto& folder : out) {
      std::vector<std::string> names = {part};
      if (part.find('*') != std::string::npos) {
        names = files.list(folder);
        std::erase_if(names, [&](const auto& name) { return ::fnmatch(part.c_str(), name.c_str(), 0) != 0; });
        std::sort(names.begin(), names.end(),
                  [](const auto& a, const auto& b) { return ::strverscmp(a.c_str(), b.c_str()) > 0; });
      }
      for (const auto& name : names) next.push_back(folder + "/" + name);
    }
    out = std::move(next);
    at = end + 1;
  }
  return out;
}

std::vector<std::string> folder_patterns(const LibraryHomes& homes) {
  std::vector<std::string> out(std::begin(kSystem), std::end(kSystem));
  const auto add_environment = [&](const std::string& folder) {
    for (const char* inside : kEnvironment) out.push_back(folder + inside);
  };
  for (const auto& folder : homes.environments) add_environment(folder);
  for (const auto& home : homes.homes) {
    out.push_back(home + "/.local/lib/python3*/site-packages/nvidia/*/lib");
    for (const char* folder : kOfHome) add_environment(home + folder);
  }
  for (const char* folder : kOfSystem) add_environment(folder);
  out.insert(out.end(), std::begin(kSystemPython), std::end(kSystemPython));
  return out;
}

// The file of this name that ld.so's cache lists for x86-64; "": none, or a cache of another format. Format:
// struct cache_file_new of glibc's sysdeps/generic/dl-cache.h. An older header may stand before it; offsets
// of names count from the new one.
std::string in_loader_cache(const Files& files, const std::string& name) {
  static const std::string magic = "glibc-ld.so.cache1.1";
  constexpr size_t kHeader = 48, kEntry = 24;
  constexpr uint32_t kX8664 = 0x0303;  // FLAG_X8664_LIB64 | FLAG_ELF_LIBC6
  const std::string all = files.read("/etc/ld.so.cache").value_or("");
  const size_t start = all.find(magic);
  if (start == std::string::npos) return "";
  const std::string cache = all.substr(start);
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    if (at + sizeof value <= cache.size()) std::memcpy(&value, cache.data() + at, sizeof value);
    return value;
  };
  const auto text = [&](size_t at) {
    return at < cache.size() ? cache.substr(at, cache.find('\0', at) - at) : std::string();
  };
  const size_t most = cache.size() / kEntry;
  const size_t count = std::min<size_t>(number(magic.size()), most);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = kHeader + i * kEntry;
    if (number(at) == kX8664 && text(number(at + 4)) == name) return text(number(at + 8));
  }
  return "";
}

std::string home_of(const Files& files, const std::string& name) {
  const auto user = find_user(files, name);
  return user ? user->home : "/home/" + name;  // a user of a directory service
}

// True if all members of the group are owners. A group of a directory service (not in /etc/group) is taken
// for the private group of the user with the same id.
bool is_group_of(const Files& files, uint32_t group, const std::set<uint32_t>& owners) {
  if (group == 0) return true;
  std::set<std::string> members;
  bool listed = false;
  for (const GroupEntry& entry : groups_of(files)) {
    if (entry.gid != group) continue;
    listed = true;
    members.insert(entry.members.begin(), entry.members.end());
  }
  if (!listed) return owners.count(group) > 0;
  for (const PasswdEntry& user : users_of(files)) {
    const bool owner = user.uid >= 0 && owners.count(static_cast<uint32_t>(user.uid)) > 0;
    if (!owner && user.gid == group) return false;
    if (owner) members.erase(user.name);
  }
  return members.empty();
}

// `own_folder`: the file, or the folder that it lies in.
bool only_owners_write(const Files& files, const std::string& real, bool own_folder,
                       const std::set<uint32_t>& owners) {
  struct stat status = {};
  if (::lstat(real.c_str(), &status) != 0 || !owners.count(status.st_uid)) return false;
  if (!own_folder && S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX)) return true;
  if (status.st_mode & S_IWOTH) return false;
  if (!(status.st_mode & S_IWGRP)) return true;
  // With an access control list, these bits are the mask of all users and groups in it.
  if (::lgetxattr(real.c_str(), "system.posix_acl_access", nullptr, 0) > 0) return false;
  return is_group_of(files, status.st_gid, owners);
}

// Every folder, link and file on the way of a path of this machine, and on those that its links lead: who
// could change a link later could have another file loaded.
bool is_way_of_owners(const Files& files, const std::string& path, const std::set<uint32_t>& owners,
                      int links) {
  const std::string root = files.real("/"), below = root == "/" ? root : root + "/";
  if (!path.starts_with(below) || !only_owners_write(files, root, false, owners)) return false;
  const size_t folder = path.rfind('/');  // here ends the name of the folder that the last component is in
  for (size_t end = path.find('/', below.size());; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    char target[4096];
    const ssize_t size = ::readlink(part.c_str(), target, sizeof target);
    struct stat status = {};
    if (size > 0) {
      std::string to(target, static_cast<size_t>(size));
      if (to[0] != '/') to = part.substr(0, part.rfind('/') + 1) + to;
      if (links == 0 || ::lstat(part.c_str(), &status) != 0 || !owners.count(status.st_uid) ||
          !is_way_of_owners(files, to, owners, links - 1))
        return false;
    } else if (!only_owners_write(files, part, part.size() >= folder, owners)) {
      return false;
    }
    if (end == std::string::npos) return true;
  }
}

// LibraryHomes::owners.
bool is_of_owners(const Files& files, const std::string& path, const std::set<uint32_t>& owners) {
  constexpr int kMostLinks = 8;
  return is_way_of_owners(files, files.real(path), owners, kMostLinks);
}

bool is_absolute(const std::string& path) { return path.size() > 1 && path[0] == '/'; }

// The wheel that a library in SITE/nvidia/cublas/lib came with: SITE/nvidia_cublas_cu12-12.4.5.8.dist-info.
std::string version_of_wheel(const Files& files, const std::string& path) {
  const size_t at = path.rfind("/nvidia/");
  if (at == std::string::npos) return "";
  const std::string library = last_component(path).starts_with("libnccl") ? "nccl" : "cublas";
  const std::string start = "nvidia_" + library, end = ".dist-info";
  for (const std::string& name : files.list(path.substr(0, at))) {
    const size_t dash = name.find('-');
    if (!name.starts_with(start) || !name.ends_with(end) || dash == std::string::npos) continue;
    if (const char after = name[start.size()]; after != '-' && after != '_') continue;
    return name.substr(dash + 1, name.size() - end.size() - dash - 1);
  }
  return "";
}

}  // namespace

LibraryHomes library_homes(const Files& files, const Environment& environment) {
  LibraryHomes out;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string folder = environment(name); is_absolute(folder)) out.environments.push_back(folder);
  for (const auto& folder : split(environment("LD_LIBRARY_PATH"), ':'))
    if (is_absolute(folder)) out.first.push_back(folder);
  const std::string user = environment("SUDO_USER");
  const std::string home = user.empty() ? environment("HOME") : home_of(files, user);
  if (is_absolute(home)) out.homes.push_back(home);
  return out;
}

LibraryHomes own_library_homes(const Files& files) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  LibraryHomes out = library_homes(files, variable);
  if (files.real("/") != "/") return out;
  out.owners = {0, ::geteuid()};
  // A user of sudo may do what root may.
  if (const int64_t caller = account_id(variable("SUDO_UID")); caller >= 0 && ::geteuid() == 0)
    out.owners.insert(static_cast<uint32_t>(caller));
  return out;
}

std::vector<std::string> library_places(const Files& files, const std::string& name,
                                        const LibraryHomes& homes) {
  std::vector<std::string> out;
  if (name.find('/') != std::string::npos) return out;
  const auto add = [&](const std::string& path) {
    if (files.exists(path) && std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
  };
  for (const auto& folder : homes.first) add(folder + "/" + name);
  if (const std::string cached = in_loader_cache(files, name); is_absolute(cached)) add(cached);
  for (const auto& place : folder_patterns(homes))
    for (const auto& folder : matching(files, place))
      if (const std::string path = folder + "/" + name;
          homes.owners.empty() || is_of_owners(files, path, homes.owners))
        add(path);
  return out;
}

std::string library_version(const Files& files, const std::string& path) {
  const std::string name = last_component(path);
  const std::string file = last_component(files.read_link(path).value_or(name));
  const size_t at = file.find(".so.");
  if (file.size() > name.size() && at != std::string::npos) return file.substr(at + 4);
  return version_of_wheel(files, path);
}

std::vector<LibraryFacts> gpu_libraries(const Files& files, const LibraryHomes& homes) {
  std::vector<std::string> names = {kNcclLibrary};
  for (int major = kOldestCublaslt; major <= kNewestCublaslt; ++major) names.push_back(cublaslt_of(major));
  std::vector<LibraryFacts> out;
  for (const auto& name : names) {
    const auto places = library_places(files, name, homes);
    if (!places.empty()) out.push_back({name, library_version(files, places[0]), places[0]});
  }
  return out;
}

}  // namespace muster
