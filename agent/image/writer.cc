#include "agent/image/writer.h"

#include <fmt/format.h>

#include <cstdlib>

#include "agent/disk/block_device.h"
#include "agent/disk/disk.h"
#include "agent/disk/marker.h"
#include "agent/image/layout.h"

namespace muster {
namespace {

// Removes leftovers that might still be recognized at their old positions.
Status clear_old_signatures(const BlockDevice& disk, const GptTable& layout) {
  constexpr uint64_t mib = 1 << 20;
  TRY_(disk.zero(0, kMarkerOffset));
  TRY_(disk.zero(kMarkersEnd, layout.partitions[0].start - kMarkersEnd));
  TRY_(disk.zero(disk.size() - mib, mib));
  for (const auto& p : layout.partitions) {
    TRY_(disk.zero(p.start, mib));
    TRY_(disk.zero(p.start + p.size - mib, mib));
  }
  return Ok{};
}

// The state of the work on one disk, from the first check to the finished marker.
struct ImageWork {
  const wire::ImageJob& job;
  const WriteDeps& deps;
  const WriteOptions& options;
  ImageManifest manifest = {};
  std::map<std::string, std::string> files = {};
  std::string path = {};
  std::string standing = {};  // the default slot in loader.conf
  std::optional<EspRoom> room = {};
  GptTable layout = {};
  ImageMarker marker = {};
  WriteResult result = {};
};

const ImageMarker* marker_of(const DiskContent& content) {
  return content.marker ? &*content.marker : nullptr;
}

// True if this order's work on a disk of this node was begun, and is to be continued.
bool is_unfinished(const wire::ImageJob& job, const ImageMarker& marker) {
  return marker.stage == "writing" && marker.digest == job.digest;
}

// Returns the slot to write on a disk of this node. The marker may be older than loader.conf, because a
// commit writes it last (commit_slot.h).
std::string slot_to_write(const wire::ImageJob& job, const ImageMarker& marker, const std::string& standing) {
  if (is_unfinished(job, marker)) return marker.slot;
  const bool fresh = marker.fresh && marker.stage == "writing";
  return (fresh || standing.empty() ? marker.current : standing) == "a" ? "b" : "a";
}

// Reads the ESP of a disk that already belongs to this node.
void read_esp(ImageWork& w) {
  ImageMarker found;
  {
    const auto disk = BlockDevice::open(w.path, BlockDevice::Access::read);
    const auto marker = disk.ok() ? read_marker(*disk) : Result<ImageMarker>(disk.error());
    if (!marker.ok() || !is_ours(w.job, *marker)) return;
    const auto table = read_gpt(*disk);
    if (!table.ok() || !is_layout(*table)) return;
    found = *marker;
  }
  w.standing = w.deps.seeder->standing(w.path);
  const bool fresh = found.fresh && found.stage == "writing";  // no file system yet
  if (w.job.allow_ours && !fresh)
    w.room = w.deps.seeder->room(w.path, slot_to_write(w.job, found, w.standing));
}

Status plan_work(ImageWork& w, const BlockDevice& disk) {
  TRY(const DiskContent content, probe_disk(disk));
  const ImageMarker* found = marker_of(content);
  TRY_(may_write(w.job, content, found));
  const bool ours = found && is_layout(content.gpt) && is_ours(w.job, *found);
  const bool unfinished = found && is_ours(w.job, *found) && is_unfinished(w.job, *found);
  w.marker = {w.job.hostname, "writing",     w.job.digest,    "a",          "", w.job.content_hash,
              false,          w.job.cluster, w.job.authority, w.deps.order, {}};
  if (ours) {
    w.layout = content.gpt;
    w.marker.slots = found->slots;
    w.marker.current = found->current;
    w.marker.fresh = found->fresh && found->stage == "writing";
    w.marker.slot = slot_to_write(w.job, *found, w.standing);
    w.result.resumed = unfinished;
  } else {
    const uint64_t root = w.job.root_size.empty() ? 0 : std::strtoull(w.job.root_size.c_str(), nullptr, 10);
    TRY(w.layout, make_layout(disk.size(), w.manifest.raw_size, root));
    w.marker.fresh = true;
    w.result.fresh_layout = true;
  }
  if (w.marker.fresh) w.room = EspRoom{0, w.layout.named("muster-esp")->size, 0};
  if (w.room) TRY_(has_room(*w.room, w.manifest.boot_size()));
  // A retry keeps the hash that the plan first approved, because the order is sent again with that hash.
  if (unfinished && w.marker.approved.empty()) w.marker.approved = found->approved;
  const GptPartition* slot = slot_partition(w.layout, w.marker.slot);
  if (slot->size < w.manifest.raw_size)
    return fail(Code::invalid, "the image does not fit into the root slot of this disk");
  w.result.slot = w.marker.slot;
  w.marker.slots[w.marker.slot] = slot_note(w.job, w.manifest, kSlotWriting, w.deps.order);
  return Ok{};
}

Status write_disk(ImageWork& w, const BlockDevice& disk) {
  TRY_(plan_work(w, disk));
  TRY_(w.deps.seeder->drop_overrides());
  TRY_(write_marker(disk, w.marker));  // intent, before the first effect
  if (w.result.fresh_layout) {
    TRY_(clear_old_signatures(disk, w.layout));
    TRY_(write_gpt(disk, w.layout));
  }
  const FrameDeps deps{w.deps.source, w.deps.progress, w.deps.cancelled};
  SlotFrames frames(folder_of_path(w.job.manifest_path) + "frames.zst", w.manifest, disk,
                    slot_partition(w.layout, w.marker.slot)->start, deps, w.options);
  // A disk that had no slots before contains no usable frames.
  TRY(static_cast<FrameCounts&>(w.result), frames.run(!w.result.fresh_layout));
  return disk.reread_partitions();
}

Status finish(ImageWork& w) {
  const SeedRequest request{w.job,          w.manifest,        w.path, w.layout, w.marker.slot,
                            w.marker.fresh, std::move(w.files)};
  TRY_(w.deps.seeder->seed(request));
  TRY_(w.deps.seeder->install_loader(request));
  TRY(const BlockDevice disk, BlockDevice::open(w.path, BlockDevice::Access::exclusive_write));
  w.marker.stage = "done";
  w.marker.current = w.marker.slot;
  w.marker.fresh = false;
  w.marker.slots[w.marker.slot].stage = kSlotWritten;
  return write_marker(disk, w.marker);
}

}  // namespace

SlotNote slot_note(const wire::ImageJob& job, const ImageManifest& manifest, const char* stage,
                   const std::string& order) {
  SlotNote out{job.image, job.digest, stage, job.address_cidr, order, manifest.trial};
  if (const ImageFile* kernel = manifest.file("kernel")) out.kernel = {kernel->size, kernel->sha256};
  if (const ImageFile* initrd = manifest.file("initrd")) out.initrd = {initrd->size, initrd->sha256};
  return out;
}

bool is_ours(const wire::ImageJob& job, const ImageMarker& marker) {
  const auto is_mine = [&job](const std::string& noted, const std::string& mine) {
    return noted == mine || (noted.empty() && job.allow_ours);
  };
  return marker.node == job.hostname && is_mine(marker.cluster, job.cluster) &&
         is_mine(marker.authority, job.authority);
}

Result<DiskFacts> find_local_disk(const wire::ImageJob& job, const std::vector<DiskFacts>& disks) {
  TRY(DiskFacts disk, find_disk(disks, job.disk));
  if (!is_local_transport(disk.transport))
    return fail(Code::denied, fmt::format("disk {} is not a local disk of this machine (transport {})",
                                          disk.serial, disk.transport));
  if (const std::string why = why_not_past_map(disk); !why.empty())
    return fail(Code::denied, fmt::format("disk {} ({}) is {}", disk.serial, disk.name, why));
  if (disk.read_only)
    return fail(Code::denied, fmt::format("disk {} ({}) is read-only: nothing can be written to it",
                                          disk.serial, disk.name));
  return disk;
}

bool is_finished(const wire::ImageJob& job, const std::string& order, const DiskContent& content,
                 const ImageMarker* marker) {
  if (!marker || marker->stage != "done" || marker->digest != job.digest || !is_ours(job, *marker) ||
      !is_layout(content.gpt))
    return false;
  const bool same_order = !order.empty() && marker->order == order;
  return same_order || (!job.content_hash.empty() && marker->approved == job.content_hash &&
                        content.hash != job.content_hash);
}

Status may_write(const wire::ImageJob& job, const DiskContent& content, const ImageMarker* marker) {
  if (!job.content_hash.empty()) {
    if (content.hash == job.content_hash) return Ok{};
    // This node's own unfinished work, which began on the approved content, may be continued.
    if (marker && marker->stage == "writing" && marker->approved == job.content_hash &&
        is_ours(job, *marker) && marker->digest == job.digest)
      return Ok{};
  }
  if (job.allow_ours && marker && is_ours(job, *marker) && is_layout(content.gpt)) return Ok{};
  std::string whose;
  if (marker && !is_ours(job, *marker))
    whose = fmt::format(" (the system of node {} of {}{})", marker->node,
                        marker->cluster.empty() ? "an unnamed cluster" : "cluster " + marker->cluster,
                        marker->authority == job.authority ? ""
                        : marker->authority.empty()        ? ", managed by an unknown controller"
                                                           : ", managed by a different controller");
  return fail(Code::denied,
              fmt::format("disk {}: its content changed since the plan was approved; current content: {}{}",
                          job.disk.serial, content.summary, whose));
}

Result<WriteResult> write_image(const wire::ImageJob& job, const WriteDeps& deps,
                                const WriteOptions& options) {
  ImageWork w{job, deps, options};
  // All checks come before any byte is fetched.
  TRY(const DiskFacts facts, find_local_disk(job, deps.disks()));
  if (facts.mounted)
    return fail(Code::conflict, fmt::format("disk {} is in use on this machine", facts.serial));
  w.path = deps.device(facts.name);
  // Read before the disk is opened exclusively, because the kernel mounts no partition of it after that.
  read_esp(w);
  {
    TRY(const BlockDevice disk, BlockDevice::open(w.path, BlockDevice::Access::exclusive_write));
    if (disk.size() != job.disk.size_bytes)
      return fail(Code::conflict, w.path + ": its size differs from the size in the order");
    TRY(const DiskContent content, probe_disk(disk));
    if (is_finished(job, deps.order, content, marker_of(content))) {
      w.result.slot = content.marker->current;
      w.result.finished_before = true;
      return w.result;
    }
    TRY_(may_write(job, content, marker_of(content)));
    TRY(const auto source, deps.source());
    TRY(w.manifest, retry(deps.cancelled, options, [&] { return fetch_manifest(job, *source); }));
    TRY(w.files, retry(deps.cancelled, options, [&] { return fetch_files(job, w.manifest, *source); }));
    TRY_(write_disk(w, disk));
  }
  TRY_(finish(w));  // the disk is no longer open exclusively
  return w.result;
}

}  // namespace muster
