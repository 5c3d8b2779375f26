// The `image` order of the RAM system: write_image() with the real disks, HTTP and mounts.
// Thread: a worker thread of the agent.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/core/runner.h"
#include "agent/image/efi_variables.h"
#include "agent/image/boot_network.h"
#include "agent/image/writer.h"
#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

// The order's params: wire::ImageJob. Result: {slot, digest, disk, frames, fetched, kept, zero,
// fetched_bytes, resumed, fresh_layout, finished_before, write_ms, seed_ms}.
Result<Json> run_image_job(const Files& files, Process& process, const wire::WorkOrder& order,
                           const WorkRunner::Emit& emit, const std::function<bool()>& cancelled);

// Without the attempt: "7-18f/node01/image#2" -> "7-18f/node01/image". Pure function.
std::string work_of(const std::string& order);

// Mounts partitions, runs mkfs. `identity`: folder of the RAM system's agent (agent/core/identity.h).
std::unique_ptr<Seeder> make_linux_seeder(const Files& files, Process& process, std::string identity);

// The disk with the finished image `digest` of this node, found by its marker: the device, the number of its
// state partition, and its ESP. not_found; conflict: more than one.
struct OwnDisk {
  std::string device;
  uint32_t state = 0;
  EspPlace esp = {};
};
Result<OwnDisk> find_own_disk(const WriteDeps& deps, const std::string& node, const std::string& digest);
// Copies the current identity of the RAM system's agent to the system on that disk before it is started: an
// image order left the identity of its own boot there, which the join of a later boot revoked. Writes to the
// state partition, only what differs.
Status hand_over_identity(const Files& files, const std::string& identity, const std::string& node,
                          const std::string& digest);

// Makes the firmware start that disk from now on (agent/image/efi_variables.h).
Status start_own_disk_first(const Files& files, const std::string& node, const std::string& digest);

// Writes the content of a new root. `root` is the mounted slot; only files below it are accessed. `way`: see
// agent/image/boot_network.h.
Status seed_root(const Files& root, const SeedRequest& request, const std::string& machine_id,
                 const RamNetwork& way = {});
// Writes the ESP: kernel, initrd, loader, entry; the default entry changes last.
Status seed_esp(const Files& esp, const SeedRequest& request);

}  // namespace muster
