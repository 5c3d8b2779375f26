// partition: creates a GUID partition table with exactly the listed partitions on each listed disk. A table
// that already matches is kept with everything in its partitions; any other content is replaced only as a
// whole, and only if the approved plan allows it (data_disks.h). Single partitions are never added, resized
// or removed.
//
// The position of each partition depends only on the parameters and the size of the disk, so the comparison
// is exact. The order of writing: every disk approved and opened exclusively -> intent recorded -> the disk
// and every partition wiped (agent/disk/look.h: an old file system could otherwise show up in a new
// partition) -> sfdisk -> intent removed. After a crash anywhere in between, the next run finds the intent
// and starts over, for that disk only.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "agent/core/parameters.h"
#include "agent/disk/disk_probe.h"
#include "agent/disk/look.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/step_modules.h"
#include "base/digest.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kMargin = kMiB;  // left free before the first partition; at least as much after the last

// The supported partition types. Swap and boot partitions are not among them, because a disk with one in use
// belongs to the system and is not a data disk.
const std::map<std::string, std::string>& types() {
  static const std::map<std::string, std::string> known = {{"linux", kTypeLinux},
                                                           {"raid", "a19d880f-05fc-4d3b-a006-743f0f84911e"},
                                                           {"lvm", "e6d6d379-f507-44c2-a23c-238f2a3df928"}};
  return known;
}

struct WantedPartition {
  std::string name, type = "linux";
  int64_t size_mib = 0;  // 0: the rest
  uint64_t size() const { return static_cast<uint64_t>(size_mib) * kMiB; }
};
MUSTER_RECORD(WantedPartition, name, opt(size_mib), opt(type))

struct WantedPartitions {
  std::vector<WantedPartition> partitions;
  std::vector<WantedDisk> disks;
};
MUSTER_PARAMETERS(
    WantedPartitions,
    required(partitions,
             "[{name, size_mib, type}]; type: linux (default) | raid | lvm; the last partition may omit "
             "`size_mib` and takes the rest of the disk"),
    required(disks, "[{serial, wwid, model, size_bytes, content_hash, policy}]"))

Status check_wanted(const WantedPartition& want) {
  // The name goes into sfdisk's script and must not contain any of its syntax.
  if (want.name.empty() || want.name.size() > 36 ||
      want.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
          std::string::npos)
    return fail(Code::invalid,
                "partition: name '" + want.name + "' must be 1 to 36 letters, digits, '-', '_' or '.'");
  if (want.size_mib < 0 || want.size_mib > int64_t{1} << 40)
    return fail(Code::invalid,
                "partition " + want.name + ": " + std::to_string(want.size_mib) + " MiB is not a valid size");
  if (types().count(want.type) == 0)
    return fail(Code::invalid,
                "partition " + want.name + ": type '" + want.type + "' is not one of linux, raid, lvm");
  return Ok{};
}

Status complete_partition(const StepContext&, WantedPartitions& want) {
  if (want.partitions.empty() || want.partitions.size() > 128)
    return fail(Code::invalid, "partition: 'partitions' must list 1 to 128 partitions");
  std::set<std::string> names;
  for (const auto& one : want.partitions) {
    TRY_(check_wanted(one));
    if (!names.insert(one.name).second)
      return fail(Code::invalid, "partition " + one.name + " is listed twice");
    if (one.size_mib == 0 && &one != &want.partitions.back())
      return fail(Code::invalid,
                  "partition " + one.name +
                      " has no `size_mib`, but only the last partition may take the rest of the disk");
  }
  return Ok{};
}

// One after the other, in whole mebibytes.
Result<std::vector<GptPartition>> layout(const WantedPartitions& want, const WantedDisk& disk) {
  std::vector<GptPartition> out;
  const uint64_t end = disk.size_bytes / kMiB * kMiB - std::min(disk.size_bytes / kMiB * kMiB, kMargin);
  uint64_t at = kMargin;
  for (const auto& p : want.partitions) {
    const uint64_t size = p.size_mib ? p.size() : at < end ? end - at : 0;
    if (size == 0 || at > end || size > end - at)
      return fail(Code::invalid, fmt::format("disk {} has no room for partition {}", title_of(disk), p.name));
    out.push_back({static_cast<int>(out.size()) + 1, types().at(p.type), "", p.name, at, size});
    at += size;
  }
  return out;
}

bool same_layout(const GptTable& table, const std::vector<GptPartition>& want) {
  return std::equal(table.partitions.begin(), table.partitions.end(), want.begin(), want.end(),
                    [](const GptPartition& a, const GptPartition& b) {
                      return a.number == b.number && a.type == b.type && a.name == b.name &&
                             a.start == b.start && a.size == b.size;
                    });
}

struct PartitionTarget {
  const WantedDisk* wanted = nullptr;
  DiskFacts disk;
  std::vector<GptPartition> layout;
  bool ours = false;         // the disk has exactly this table
  bool interrupted = false;  // an earlier run of this step was interrupted while it made the table
  std::string content;
};

// The serial is hashed, because it may contain characters that a file name may not.
std::string intent_of(const Files& files, const WantedDisk& disk) {
  return intent_path(files, "partition-" + sha256(key_of(disk)).substr(7, 16));
}

Result<std::vector<PartitionTarget>> look(const Files& files, const WantedPartitions& want) {
  TRY(const auto disks, resolve_disks(files, want.disks));
  std::vector<PartitionTarget> out;
  for (size_t i = 0; i < disks.size(); ++i) {
    PartitionTarget t;
    t.wanted = &want.disks[i];
    t.disk = disks[i];
    TRY(t.layout, layout(want, want.disks[i]));
    TRY(const auto device,
        BlockDevice::open(files.real(device_path(disks[i].name)), BlockDevice::Access::read));
    TRY(const auto content, probe_disk(device));
    t.ours = same_layout(content.gpt, t.layout) && !content.gpt.from_backup;
    t.interrupted = files.exists(intent_of(files, want.disks[i]));
    t.content = content.summary;
    out.push_back(std::move(t));
  }
  return out;
}

// How the kernel's view differs from the partition table; "" if it does not.
std::string not_shown(const Files& files, const PartitionTarget& t) {
  for (const auto& p : t.layout) {
    const std::string folder = "/sys/block/" + t.disk.name + "/" + partition_path(t.disk.name, p.number);
    if (files.read_line(folder + "/start") != std::to_string(p.start / 512) ||
        files.read_line(folder + "/size") != std::to_string(p.size / 512))
      return fmt::format("disk {} ({}): the kernel's view of partition {} differs from the partition table",
                         title_of(*t.wanted), t.disk.name, p.name);
  }
  return "";
}

std::string words_of(const PartitionTarget& t) {
  std::string out;
  for (const auto& p : t.layout)
    out += fmt::format("{}{} ({} MiB)", out.empty() ? "" : ", ", p.name, p.size / kMiB);
  return out;
}

Result<CheckResult> check_partition(StepContext& context, const WantedPartitions& want) {
  TRY(const auto targets, look(context.files, want));
  Diff diff;
  for (const auto& t : targets) {
    if (t.interrupted)
      diff.add("disk " + title_of(*t.wanted) + ": an earlier partitioning was interrupted");
    else if (!t.ours)
      diff.add(fmt::format("disk {} ({}) needs a new GPT with partitions {}, but currently contains: {}",
                           title_of(*t.wanted), t.disk.name, words_of(t), t.content));
    else if (const std::string missing = not_shown(context.files, t); !missing.empty())
      diff.add(missing);
  }
  return diff.result();
}

// True if the disk contains what an interrupted run may have left instead of a complete table: only the
// backup copy of the table, with empty partitions.
bool left_behind(const PartitionTarget& t, const DiskContent& content) {
  return same_layout(content.gpt, t.layout) && content.signatures.empty();
}

std::string script(const PartitionTarget& t, uint32_t logical_block) {
  std::string out = "label: gpt\nunit: sectors\n";
  for (const auto& p : t.layout)
    out += fmt::format("start={}, size={}, type={}, name=\"{}\"\n", p.start / logical_block,
                       p.size / logical_block, p.type, p.name);
  return out;
}

Status empty(const BlockDevice& device, const PartitionTarget& t) {
  for (const auto& p : t.layout) TRY_(wipe_looked_at(device, p.start, p.size));
  TRY_(wipe(device));
  return device.reread_partitions();
}

Status make_table(StepContext& context, const PartitionTarget& t, BlockDevice device) {
  const std::string input = script(t, device.logical_block());
  if (!t.interrupted)
    TRY_(context.files.write(intent_of(context.files, *t.wanted),
                             dump_json(Json{{"disk", title_of(*t.wanted)}}), 0600));
  TRY_(empty(device, t));
  { const BlockDevice closed = std::move(device); }  // sfdisk opens it exclusively
  say(context, fmt::format("partitioning disk {} ({}): {}", title_of(*t.wanted), t.disk.name, words_of(t)));
  // Without a force option sfdisk fails if the disk is in use. The lock keeps udev from a half-written table.
  Command sfdisk;
  sfdisk.argv = {"sfdisk", "--quiet",           "--lock=yes", "--wipe",
                 "never",  "--wipe-partitions", "never",      device_path(t.disk.name)};
  sfdisk.input = input;
  TRY(auto said, run_ok(context.process, sfdisk));
  (void)said;
  return Ok{};
}

// Checks the table on the disk, and waits until the kernel's view of it matches.
Status confirm(StepContext& context, const WantedPartitions& want) {
  std::string lacking;
  for (int attempt = 0; attempt < 50; ++attempt) {
    TRY(const auto targets, look(context.files, want));
    lacking.clear();
    for (const auto& t : targets) {
      if (!t.ours)
        return fail(Code::failed,
                    "sfdisk succeeded, but disk " + title_of(*t.wanted) + " contains: " + t.content);
      if (lacking.empty()) lacking = not_shown(context.files, t);
    }
    if (lacking.empty()) return Ok{};
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return fail(Code::failed, lacking);
}

Status apply_partition(StepContext& context, const WantedPartitions& want) {
  TRY(const auto targets, look(context.files, want));
  // Every disk must be approved for writing before the first byte is written to any of them.
  std::vector<std::pair<const PartitionTarget*, BlockDevice>> held;
  for (const auto& t : targets) {
    if (t.ours) continue;  // the table is complete, so sfdisk, which writes last, had finished
    const auto left = [&](const DiskContent& content) { return left_behind(t, content); };
    TRY(auto device, t.interrupted ? open_after_interruption(context.files, *t.wanted, t.disk, left)
                                   : open_for_format(context.files, *t.wanted, t.disk));
    held.emplace_back(&t, std::move(device));
  }
  for (auto& [target, device] : held) TRY_(make_table(context, *target, std::move(device)));
  for (const auto& t : targets)
    if (t.ours && !not_shown(context.files, t).empty()) {
      TRY(const auto device, BlockDevice::open(context.files.real(device_path(t.disk.name)),
                                               BlockDevice::Access::exclusive_write));
      TRY_(device.reread_partitions());
    }
  TRY_(confirm(context, want));
  for (const auto& t : targets) TRY_(context.files.remove(intent_of(context.files, *t.wanted)));
  return Ok{};
}

}  // namespace

StepModule partition_module() {
  return step_module<WantedPartitions>({
      .name = "partition",
      .help =
          "Creates a GUID partition table with exactly the listed partitions, in this order, on each listed "
          "disk. A table that already matches is kept with everything in its partitions; any other content "
          "of a disk is replaced only as a whole, and only if the approved plan allows it. A table is never "
          "changed in part.",
      .check = check_partition,
      .apply = apply_partition,
      .complete = complete_partition,
  });
}

}  // namespace muster::steps
