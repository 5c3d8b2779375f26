// Measurements of drives and file systems. Contract: kernels/common/kernels.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/kernels.h"

namespace muster::kernels {

// --- declared_mount.cc
struct MountRule {  // what must be mounted at a path before anything is written there
  std::string path = {};
  std::string fstype = {};  // as in mountinfo: "xfs", "fuse*"
  // "*10.20.0.11:9421", "/dev/disk/by-id/..." (links are followed), "disks:..." (base/disk_source.h)
  std::string source = {};
};
// Checks /proc/self/mountinfo below `files`. Code::denied, naming what is mounted instead, unless `rule.path`
// is itself a mount point whose topmost mount has that type and source.
Status check_mount(const Files& files, const MountRule& rule);
// "/dev/md127"; "" if nothing is mounted there.
std::string mounted_source(const Files& files, const std::string& path);

// --- fio.cc
struct FioOptions {
  MountRule mount = {};
  uint64_t size_bytes = 16 << 20;
  double random_seconds = 0;  // > 0: also 4 KiB random reads for this long
  double timeout = 60;
  // fio jobs per drive under the file system, each with its own part of the file; 0: one job in total. A
  // single job has one block in flight at a time, and so never keeps more than a drive or two busy.
  int jobs_per_drive = 0;
  // These make the file's name unique on storage that several nodes share: ".muster-fio.NODE@ORDER". With
  // an order, files left behind by ended orders of this node are removed first. Empty node: this host's name;
  // empty order: a random one.
  std::string node = {}, order = {};
};
// Metrics: write_mbps, read_mbps (1 MB = 10^6 bytes), with random_seconds also random_read_iops and
// random_read_p99_ms. Always removes its file. Errors are final: no read or write is retried.
// detail.drives: serials of the drives under the file system; detail.level: its RAID level; both for local
// drives only.
Measurement run_fio(const Files& files, Process& process, const FioOptions& options);

// --- declared_mount.cc
struct BackingDrives {                   // what a file system is stored on
  std::vector<std::string> drives = {};  // serials of whole disks, else kernel names; sorted
  std::string level = {};                // RAID level of an md array ("raid5"); empty: no md array
};
// Returns the drives that back this block device ("/dev/md127"); empty if it is not a block device.
BackingDrives drives_under(const Files& files, const std::string& device);

// --- checksum.cc
struct ChecksumOptions {
  MountRule mount = {};
  std::string name = {};  // file name inside the mount, no slash
  uint64_t size_bytes = 4 << 20;
  uint64_t seed = 1;
  // Reader: the writer's "sha256:<hex>"; empty: computed from size and seed, with the same result.
  std::string expect = {};
  bool remove_after = false;  // reader
};
// Writes content generated from the seed and syncs it; detail.sha256 is its digest. Metric: write_mbps.
Measurement run_checksum_write(const Files& files, const ChecksumOptions& options);
// Drops the file's cached pages, reads it, compares its digest with `expect`. Metric: read_mbps.
Measurement run_checksum_read(const Files& files, const ChecksumOptions& options);

// --- drives.cc
struct DrivesOptions {
  double seconds = 2.0;  // per drive
  int streams = 4;
  double parallel_seconds = 0;  // > 0: afterwards all drives of the same model and size in parallel
};
// One part per drive of this machine (host/real_drives.h), by serial. Metrics: read_mbps, read_p99_ms, and
// parallel_mbps for drives that were read in parallel (for others detail.absent names it). Opens disks for
// reading only.
Measurement run_drives(const Files& files, const DrivesOptions& options);

}  // namespace muster::kernels
