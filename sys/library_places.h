// Where a shared library for GPUs lies on a machine: the one place that knows. Used by the programs that load
// such libraries (kernels/common/library.h) and by the agent, which reports before any load what they would
// find. Reads folders and ld.so's cache below `files`; loads nothing. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/facts.h"
#include "sys/os.h"

namespace muster {

// The folders of this user, in addition to those of the system. With sudo: of the user who called it, whose
// Python environments are meant, not root's. No other user's: their files would be run by this one.
struct LibraryHomes {
  std::vector<std::string> homes = {};         // "/home/ops"
  std::vector<std::string> environments = {};  // of Python or conda, in use: $VIRTUAL_ENV, $CONDA_PREFIX
  std::vector<std::string> first = {};         // $LD_LIBRARY_PATH: the loader searches it before all others
  // User ids. A file counts only if it, every folder above it and every link on the way belong to one of
  // them, and no one else may write there; a group counts as its members. Others may write to a folder above
  // the file's own if it is sticky. What ld.so's cache lists always counts: the system loads it. Empty: all.
  std::set<uint32_t> owners = {};
};
using Environment = std::function<std::string(const char* name)>;
LibraryHomes library_homes(const Files& files, const Environment& environment);
// Of this process: root, its user and, with sudo, the user who called it are owners. If `files` is not this
// machine's root, files have no owners.
LibraryHomes own_library_homes(const Files& files);

// Returns the files of this name, in this order: in $LD_LIBRARY_PATH; from ld.so's cache; in the folders of
// CUDA toolkits, HPC SDK, HPC-X and the system; in Python environments (NVIDIA's wheels) and conda's, in use
// first, then the user's, then in /opt and the system's. Within a place the highest version comes first. No
// stubs, which toolkits have for linking only. None for a name that contains a slash.
std::vector<std::string> library_places(const Files& files, const std::string& name,
                                        const LibraryHomes& homes = {});

// "12.4.5.8" of /usr/lib/libcublasLt.so.12 -> libcublasLt.so.12.4.5.8, or as the wheel beside it is called;
// "": not known.
std::string library_version(const Files& files, const std::string& path);

// Returns cuBLASLt of each major version, and NCCL: the first place of each.
std::vector<LibraryFacts> gpu_libraries(const Files& files, const LibraryHomes& homes);

}  // namespace muster
