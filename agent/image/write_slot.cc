#include "agent/image/write_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/core/identity.h"
#include "agent/disk/block_device.h"
#include "agent/disk/disk.h"
#include "agent/image/efi_variables.h"
#include "agent/image/esp_files.h"
#include "agent/image/layout.h"
#include "agent/image/slot_seed.h"
#include "agent/image/writer.h"
#include "base/digest.h"

namespace muster {
namespace {

// The state of one order, from the checks to the final record in the marker.
struct SlotWork {
  const wire::SlotJob& job;
  const WriteSlotDeps& deps;
  const WriteOptions& options;
  OwnSlots own = {};
  std::string partition = {};  // kernel name of the slot's
  ImageManifest manifest = {};
  std::vector<ProgramFile> programs = {};
  std::string machine_id = {};
  std::map<std::string, std::string> network = {};
  std::map<std::string, std::string> files = {};

  SeedRequest request() const {
    return {job.image, manifest, own.device, own.layout, job.slot, false, files};
  }
  SlotSeed seed(const SeedRequest& r) const { return {r, machine_id, network, programs}; }
};

Status go_on(const SlotWork& w, std::string_view what) {
  if (w.deps.cancelled && w.deps.cancelled()) return fail(Code::cancelled, "stopped while writing the slot");
  return w.deps.before_write ? w.deps.before_write(what) : Status(Ok{});
}

void say(const SlotWork& w, const std::string& text) {
  if (w.deps.say) w.deps.say(text);
}

Result<std::unique_ptr<OpenFolder>> open_esp(const SlotWork& w, Mounted::Way way) {
  return open_own_esp(w.deps.files, w.own, kWriterEspPlace, way);
}

// ---- checks: reads only ----

// The job's disk must be the one that this system runs from, and both must belong to this node.
Status find_own_disk_of(SlotWork& w) {
  const wire::ImageJob& job = w.job.image;
  const std::string host = w.deps.files.read_line("/proc/sys/kernel/hostname");
  if (host != job.hostname)
    return fail(Code::denied, fmt::format("this host is {}, but the order is for {}", host, job.hostname));
  TRY(const DiskFacts disk, find_local_disk(job, w.deps.disks()));
  TRY(w.own, own_slots(w.deps.files));
  if (w.own.disk != disk.name)
    return fail(Code::conflict, fmt::format("this system runs from {}, but the order's disk {} is {}",
                                            w.own.disk, job.disk.serial, disk.name));
  if (!is_ours(job, w.own.marker))
    return fail(
        Code::denied,
        fmt::format("the system on disk {} belongs to node {} of cluster '{}', or to a different controller",
                    job.disk.serial, w.own.marker.node, w.own.marker.cluster));
  return Ok{};
}

Status check_slot(SlotWork& w) {
  if (w.job.slot != "a" && w.job.slot != "b") return fail(Code::invalid, "unknown root slot: " + w.job.slot);
  if (w.job.slot == w.own.running)
    return fail(Code::conflict,
                "this system runs from slot " + w.job.slot + ", and the running slot is never written");
  std::string standing;
  {
    TRY(const auto esp, open_esp(w, Mounted::Way::read));
    standing = standing_slot(esp->files());
    TRY_(esp->close());
  }
  TRY_(is_committed(w.own, standing));
  TRY(w.partition, partition_of(w.deps.files, w.own, w.own.slot(w.job.slot)));
  if (const std::string use = use_of_partition(w.deps.files, w.partition); !use.empty())
    return fail(Code::conflict, fmt::format("slot {} (/dev/{}) is {}", w.job.slot, w.partition, use));
  return Ok{};
}

// Checks what the boot that follows the write needs: later, the node would have been drained for nothing.
Status trial_may_follow(const SlotWork& w) {
  TRY_(efi::probe_variables(w.deps.files));
  TRY_(state_is_writable(w.deps.files));
  // Opened for writing, so that a read-only mount is rejected now and not halfway through.
  TRY(const auto esp, open_esp(w, Mounted::Way::write));
  TRY_(slot_is_startable(esp->files(), w.own.running, w.own.slot(w.own.running).guid,
                         w.own.note(w.own.running), Proof::digests));
  return esp->close();
}

// Collects what the new root takes over from the running one.
Status collect_own(SlotWork& w) {
  w.machine_id = w.deps.files.read_line(std::string(kInstalledIdentity) + "/machine-id");
  if (w.machine_id.size() != 32)
    return fail(Code::conflict, "this system's machine id is not in " + std::string(kInstalledIdentity));
  TRY(w.network, carried_network(w.deps.files, w.job.image));
  return check_program_paths(w.job.programs);
}

Status fetch_programs(SlotWork& w, BlobSource& source) {
  w.programs.clear();
  for (const auto& p : w.job.programs) {
    TRY(std::string content, source.whole("/programs/" + p.sha256));
    if (sha256(content) != p.sha256 || static_cast<int64_t>(content.size()) != p.size)
      return fail(Code::corrupt, p.path + " does not have the announced size and SHA-256");
    w.programs.push_back({p, std::move(content)});
  }
  return Ok{};
}

Status fetch(SlotWork& w) {
  TRY(const auto source, w.deps.source());
  const auto again = [&w](auto call) { return retry(w.deps.cancelled, w.options, call); };
  TRY(w.manifest, again([&] { return fetch_manifest(w.job.image, *source); }));
  if (!w.manifest.trial)
    return fail(Code::denied,
                "this image does not roll back automatically if its boot is not committed: install it "
                "through the RAM system");
  if (w.own.slot(w.job.slot).size < w.manifest.raw_size)
    return fail(Code::invalid, "the image does not fit into the root slot of this disk");
  TRY(w.files, again([&] { return fetch_files(w.job.image, w.manifest, *source); }));
  TRY_(again([&] { return fetch_programs(w, *source); }));
  TRY(const std::string entry, loader_entry(w.request()));
  return Ok{};
}

Result<EspRoom> measure_esp(const SlotWork& w) {
  TRY(const auto esp, open_esp(w, Mounted::Way::read));
  const EspRoom room = esp_room(esp->files(), w.job.slot, w.deps.space(esp->files().root()));
  TRY_(esp->close());
  return room;
}

// Repairs the ESP only if the space that would come back is needed.
Status check_room(const SlotWork& w) {
  const uint64_t needed = w.manifest.boot_size();
  TRY(const EspRoom room, measure_esp(w));
  const Status fits = has_room(room, needed);
  if (fits.ok() || room.repaired() < needed || !w.deps.repair_esp) return fits;
  say(w, "repairing the EFI system partition, whose free space is not complete");
  if (Status repaired = w.deps.repair_esp(w.own); !repaired.ok())
    return fail(Code::conflict, fits.error().message + "; it was not freed: " + repaired.error().message);
  {
    TRY(const auto esp, open_esp(w, Mounted::Way::write));
    TRY_(remove_salvaged(esp->files()));
    TRY_(esp->close());
  }
  TRY(const EspRoom after, measure_esp(w));
  return has_room(after, needed);
}

// ---- writing ----

Status note(SlotWork& w, const char* stage) {
  TRY(const BlockDevice disk, BlockDevice::open(w.own.device, BlockDevice::Access::shared_write));
  TRY(ImageMarker now, read_marker(disk));
  if (now.serial != w.own.marker.serial)
    return fail(Code::conflict, "the marker on this disk was changed in the meantime");
  now.slots[w.job.slot] = slot_note(w.job.image, w.manifest, stage, w.deps.order);
  now.slots[w.own.running] = running_note(w.deps.files, w.own);
  TRY_(go_on(w, std::string("note ") + stage));
  TRY_(write_marker(disk, now));
  TRY(w.own.marker, read_marker(disk));
  const SlotNote* noted = w.own.note(w.job.slot);
  return noted && noted->stage == stage && noted->digest == w.job.image.digest
             ? Status(Ok{})
             : fail(Code::failed, "the marker on the disk does not read back as written");
}

std::string slot_path(const SlotWork& w) { return w.deps.files.real("/dev/" + w.partition); }

// Opens the slot's partition exclusively, so that it cannot be mounted at the same time. Device number and
// size are compared as well, because a name in /dev may point elsewhere.
Result<BlockDevice> hold_slot(const SlotWork& w) {
  TRY(BlockDevice slot, BlockDevice::open(slot_path(w), BlockDevice::Access::exclusive_write));
  const std::string number = w.deps.files.read_line("/sys/class/block/" + w.partition + "/dev");
  if ((!slot.number().empty() && slot.number() != number) || slot.size() != w.own.slot(w.job.slot).size)
    return fail(Code::conflict, fmt::format("/dev/{} is not partition {} of {}", w.partition,
                                            w.own.slot(w.job.slot).number, w.own.disk));
  return slot;
}

Status write_frames(const SlotWork& w, const BlockDevice& slot, WriteSlotResult& result) {
  const FrameDeps deps{w.deps.source, w.deps.progress, w.deps.cancelled};
  SlotFrames frames(folder_of_path(w.job.image.manifest_path) + "frames.zst", w.manifest, slot, 0, deps,
                    w.options);
  TRY_(go_on(w, "frames"));
  TRY(static_cast<FrameCounts&>(result), frames.run(true));
  return Ok{};
}

Status seed_and_check(const SlotWork& w) {
  say(w, "writing the identity and network settings of the new system");
  const SeedRequest request = w.request();
  const uint64_t size = w.own.slot(w.job.slot).size;
  {
    TRY_(go_on(w, "root"));
    TRY(const auto root, w.deps.mount_slot(slot_path(w), size, Mounted::Way::write));
    TRY_(seed_slot_root(root->files(), w.seed(request)));
    TRY_(root->close());
  }
  TRY(const auto root, w.deps.mount_slot(slot_path(w), size, Mounted::Way::read));
  TRY_(check_slot_root(root->files(), w.seed(request)));
  return root->close();
}

// The slot's entries are removed before its content changes, so that a half-written slot cannot be booted.
Status write_all(SlotWork& w, WriteSlotResult& result) {
  const BeforeWrite before = [&w](std::string_view what) { return go_on(w, what); };
  {
    TRY(const BlockDevice slot, hold_slot(w));
    TRY_(note(w, kSlotWriting));
    TRY(const auto esp, open_esp(w, Mounted::Way::write));
    TRY_(remove_entries(esp->files(), w.job.slot, before));
    TRY_(esp->close());
    TRY_(write_frames(w, slot, result));
  }
  TRY_(seed_and_check(w));
  TRY(const auto esp, open_esp(w, Mounted::Way::write));
  TRY_(write_slot_files(esp->files(), w.request(), before));
  TRY_(check_slot_files(esp->files(), w.request()));
  if (standing_slot(esp->files()) != w.own.running)
    return fail(Code::conflict, "the loader's configuration changed while the slot was written");
  TRY_(esp->close());
  return note(w, kSlotWritten);
}

// True if this order had already finished, and everything that it wrote is unchanged.
bool is_complete(const SlotWork& w) {
  const SlotNote* noted = w.own.note(w.job.slot);
  if (!noted || noted->stage != kSlotWritten || noted->digest != w.job.image.digest ||
      noted->order != w.deps.order || noted->address != w.job.image.address_cidr || !noted->trial)
    return false;
  const auto esp = open_esp(w, Mounted::Way::read);
  if (!esp.ok() || !check_slot_files((*esp)->files(), w.request()).ok()) return false;
  const auto root = w.deps.mount_slot(slot_path(w), w.own.slot(w.job.slot).size, Mounted::Way::read);
  const SeedRequest request = w.request();
  return root.ok() && check_slot_root((*root)->files(), w.seed(request)).ok() && (*root)->close().ok() &&
         (*esp)->close().ok();
}

}  // namespace

Result<WriteSlotResult> write_slot(const wire::SlotJob& job, const WriteSlotDeps& deps,
                                   const WriteOptions& given) {
  WriteOptions options = given;
  // Jobs are running: each worker holds three frames in memory, and the unit's memory is limited.
  constexpr int kMostThreads = 8;
  if (options.threads == 0)
    options.threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, kMostThreads);
  SlotWork w{job, deps, options};
  WriteSlotResult result;
  result.slot = job.slot;
  TRY_(find_own_disk_of(w));
  TRY_(check_slot(w));
  TRY_(trial_may_follow(w));
  TRY_(collect_own(w));
  TRY_(fetch(w));
  TRY_(check_room(w));
  if (is_complete(w)) {
    result.finished_before = true;
    return result;
  }
  TRY_(write_all(w, result));
  return result;
}

WriteSlotDeps real_write_slot_deps(const Files& files, const wire::SlotJob& job) {
  WriteSlotDeps deps{files, [&files] { return scan_identities(files); },
                     [url = job.image.base_url] { return http_source(url); }};
  deps.mount_slot = [](const std::string& device, uint64_t size,
                       Mounted::Way way) -> Result<std::unique_ptr<OpenFolder>> {
    TRY(Mounted root, Mounted::mount(device, "ext4", kWriterSlotPlace, "errors=remount-ro", way));
    if (way == Mounted::Way::write) TRY_(grow_ext4(root.at(), size));
    return std::unique_ptr<OpenFolder>(std::make_unique<Mounted>(std::move(root)));
  };
  deps.space = space_of;
  deps.repair_esp = [&files](const OwnSlots& own) -> Status {
    TRY(const std::string esp, partition_of(files, own, own.esp()));
    return repair_vfat(*make_process(), files.real("/dev/" + esp));
  };
  return deps;
}

Json to_json(const WriteSlotResult& r, const wire::SlotJob& job) {
  return {{"slot", r.slot},
          {"digest", job.image.digest},
          {"disk", job.image.disk.serial},
          {"frames", r.frames},
          {"fetched", r.fetched},
          {"kept", r.kept},
          {"zero", r.zero},
          {"fetched_bytes", r.fetched_bytes},
          {"finished_before", r.finished_before}};
}

}  // namespace muster
