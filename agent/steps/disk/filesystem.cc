// filesystem: creates a labelled file system on an array, on a partition or on one whole disk. An existing
// one with that label is kept.
//
// A new one is created only on a device that the probe finds empty (an array or a partition, which was wiped
// when it was made) or that the plan allows to be formatted (a disk, data_disks.h). mkfs gets no force
// option, so it fails, too, if the device is not empty.
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/disk/disk_probe.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedFilesystem {
  std::string fs = "xfs", label;
  bool array = false;
  std::string partition;
  int64_t chunk_kib = 512;
  std::vector<WantedDisk> disks;
};
MUSTER_PARAMETERS(WantedFilesystem, optional(fs, "xfs | ext4"),
                  required(label, "label of at most 12 characters (ext4: 16)"),
                  optional(array, "use the array on these disks, not the disk itself"),
                  optional(partition, "use the partition with this name on the one listed disk"),
                  optional(chunk_kib, "stripe unit of the array in KiB"),
                  required(disks, "[{serial, wwid, model, size_bytes, content_hash, policy}]"))

Status complete_filesystem(const StepContext&, WantedFilesystem& want) {
  if (want.fs != "xfs" && want.fs != "ext4")
    return fail(Code::invalid, "filesystem: '" + want.fs + "' is neither xfs nor ext4");
  if (want.label.empty() || want.label.size() > (want.fs == "xfs" ? 12u : 16u))
    return fail(Code::invalid, "filesystem: label '" + want.label + "' is empty or too long for " + want.fs);
  if (!want.array && want.disks.size() != 1)
    return fail(Code::invalid, "filesystem: without an array, list exactly one disk");
  if (want.array && !want.partition.empty())
    return fail(Code::invalid, "filesystem: use either an array or a partition, not both");
  return Ok{};
}

struct FormatTarget {
  std::string device;  // "/dev/md127"
  std::vector<DiskFacts> disks;
};

Result<FormatTarget> target(const Files& files, const WantedFilesystem& want) {
  FormatTarget out;
  TRY(out.disks, resolve_disks(files, want.disks));
  TRY(const std::string md, array_over(files, out.disks));
  if (want.array && md.empty()) return fail(Code::not_found, "there is no array on the disks");
  if (!want.array && !md.empty())
    return fail(Code::conflict, "disk " + title_of(want.disks[0]) + " is a member of array " + md);
  out.device = device_path(want.array ? md : out.disks[0].name);
  if (!want.partition.empty()) {
    TRY(out.device, find_partition(files, want.partition, out.disks[0]));
  }
  return out;
}

enum class Found { empty, ours, foreign };
struct Content {
  Found found = Found::empty;
  std::string summary;
};

Result<Content> look_at(const Files& files, const WantedFilesystem& want, const FormatTarget& on) {
  TRY(const auto device, BlockDevice::open(files.real(on.device), BlockDevice::Access::read));
  TRY(const auto content, probe_disk(device));
  if (content.blank) return Content{Found::empty, "blank"};
  const bool ours = content.gpt.partitions.empty() && !content.mbr && content.signatures.size() == 1 &&
                    content.signatures[0].start == 0 && content.signatures[0].type == want.fs &&
                    content.signatures[0].label == want.label;
  return Content{ours ? Found::ours : Found::foreign, content.summary};
}

Result<CheckResult> check_filesystem(StepContext& context, const WantedFilesystem& want) {
  auto on = target(context.files, want);
  // In mode "check" it may not exist yet; the step that creates it has already reported that difference.
  const bool made_by_a_step = want.array || !want.partition.empty();
  if (!on.ok() && on.error().code == Code::not_found && made_by_a_step) return differs(on.error().message);
  if (!on.ok()) return on.error();
  TRY(const Content content, look_at(context.files, want, *on));
  if (content.found == Found::ours) return holds();
  return differs(fmt::format("{} must contain {} '{}', but currently contains: {}", on->device, want.fs,
                             want.label, content.summary));
}

// Data disks in a stripe, from the level of the existing array; 0 if the level has no useful stripe.
size_t stripe_width(const Files& files, const FormatTarget& on) {
  const std::string level = files.read_line("/sys/block" + on.device.substr(4) + "/md/level", "raid0");
  const size_t disks = on.disks.size();
  if (level == "raid1") return 0;
  if (level == "raid5") return disks - 1;
  if (level == "raid6") return disks - 2;
  if (level == "raid10") return disks % 2 ? 0 : disks / 2;
  return disks;
}

std::vector<std::string> mkfs(const Files& files, const WantedFilesystem& want, const FormatTarget& on) {
  if (want.fs == "ext4")
    return {"mkfs.ext4", "-q", "-L", want.label, "-E", "lazy_itable_init=1,lazy_journal_init=1", on.device};
  std::vector<std::string> argv = {"mkfs.xfs", "-q", "-L", want.label};
  const size_t width = want.array && on.disks.size() > 1 ? stripe_width(files, on) : 0;
  if (width > 0) argv.insert(argv.end(), {"-d", fmt::format("su={}k,sw={}", want.chunk_kib, width)});
  argv.push_back(on.device);
  return argv;
}

Status apply_filesystem(StepContext& context, const WantedFilesystem& want) {
  TRY(const FormatTarget on, target(context.files, want));
  TRY(const Content content, look_at(context.files, want, on));
  if (content.found == Found::ours) return Ok{};
  if (want.array || !want.partition.empty()) {
    for (const auto& disk : want.disks)
      if (disk.policy == "keep")
        return fail(Code::denied, "disk " + title_of(disk) + ": its policy is `keep`");
    if (content.found != Found::empty)
      return fail(Code::denied, on.device + " is not empty: " + content.summary);
    // Opening it exclusively proves that nothing else uses it.
    TRY(const auto device,
        BlockDevice::open(context.files.real(on.device), BlockDevice::Access::exclusive_write));
  } else {
    TRY(const auto device, open_for_format(context.files, want.disks[0], on.disks[0]));
    TRY_(wipe(device));
    TRY_(device.reread_partitions());
  }
  say(context, "creating " + want.fs + " '" + want.label + "' on " + on.device);
  TRY(auto out, run_tool(context, mkfs(context.files, want, on), 10 * kMinute));
  (void)out;
  return Ok{};
}

}  // namespace

StepModule filesystem_module() {
  return step_module<WantedFilesystem>({
      .name = "filesystem",
      .help =
          "Creates a labelled file system on an array, a partition or one whole disk. An existing file "
          "system with that label is kept with its data; any other content of the device is replaced only "
          "if the approved plan allows it.",
      .check = check_filesystem,
      .apply = apply_filesystem,
      .complete = complete_filesystem,
  });
}

}  // namespace muster::steps
