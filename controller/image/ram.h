// The RAM system, which a node runs while its disks are examined and written: kernel and modules of the
// image, a few tools with their libraries, busybox, and the static muster-agent as /init.
//
// Its tree is collected once, when the image is built; build_ram_system() packs it with the current agent
// binary, so a new agent does not require a new image. Thread: blocking; for worker threads.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/image/firmware.h"

namespace muster {

struct RamPayload {    // a file for the node, which the agent copies into the installed system
  std::string source;  // on this machine
  std::string path;    // on the node, absolute: "/usr/lib/muster/muster-accept"
  unsigned mode = 0755;
};

struct RamRequest {
  std::string image_folder;  // ImageInfo::folder
  std::string agent;         // static muster-agent binary
  std::vector<RamPayload> payload = {};
  int level = 12;  // zstd
};

struct RamInfo {
  std::string kernel;  // path
  std::string kernel_sha256;
  std::string initrd;  // path
  std::string initrd_sha256;
  bool reused = false;
  std::string why = {};  // why an existing one was repacked: "muster-agent changed"
};

// Writes ram-vmlinuz, ram-initrd and ram.json into the image's folder unless they are up to date.
// Code::invalid when the agent is missing or needs shared libraries.
Result<RamInfo> build_ram_system(const RamRequest& request);

// Returns what was last packed into that folder, from its record; the files are not read. not_found, corrupt.
Result<RamInfo> packed_ram_system(const std::string& image_folder);

// Returns the release of the kernel in `tree`, the unpacked system of an image that is being built.
Result<std::string> kernel_release(const std::string& tree);
struct RamContents {
  size_t modules = 0;
  std::vector<std::string> absent = {};  // named here, common ones first, and neither a module nor built in
  uint64_t module_bytes = 0;             // unpacked
  FirmwareTaken firmware = {};
};
// Returns "342 kernel modules (65 MiB), 77 firmware files (40 of at most 64 MiB)", and what is missing.
std::string to_text(const RamContents& contents);
Result<RamContents> collect_ram_tree(const std::string& tree, const std::string& release,
                                     const std::string& out);
// True if the kernel has the NVMe driver or ext4 as a module: without an initrd it would not find its root.
bool needs_initrd(const std::string& tree, const std::string& release);
// Makes the initrd of the installed system.
Status make_boot_initrd(const std::string& tree, const std::string& release, const std::string& out);
// Returns /init of that initrd, a shell script.
std::string boot_init();
// Version of the tree's content. Must change whenever collect_ram_tree() would collect different files.
int ram_tree_version();

}  // namespace muster
