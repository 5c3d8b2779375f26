// raid: creates one md array on exactly the listed disks. An array of that name that is already on the disks
// and was made for this node is assembled and kept; another host's array of that name counts as foreign.
//
// The order of writing: every disk approved and opened exclusively -> intent recorded -> all disks wiped
// (data_disks.h) -> mdadm --create -> the array wiped (a re-created RAID0 makes an old file system visible
// again) -> intent removed. After a crash in between, the next run finds the intent and continues, for the
// same disks only. An array that is complete but not empty is left unchanged: it was used meanwhile, or the
// crash came before it was wiped.
//
// Levels with redundancy: an array that lacks a member is an error that names the drive, never a reason to
// create a new one, and replacing a drive is left to the operator (docs/storage.md). A new array is usable at
// once, while md synchronizes its members. The synchronization is never skipped (--assume-clean): leftovers
// on the disks would be used as parity or as mirrored data.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "agent/core/parameters.h"
#include "agent/disk/bearers.h"
#include "agent/disk/disk_probe.h"
#include "agent/steps/disk/array_health.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/step_modules.h"
#include "base/disk_identity.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kConfig = "/etc/mdadm/mdadm.conf";

struct WantedRaid {
  std::string name, level = "raid0";
  int64_t chunk_kib = 512;
  std::vector<WantedDisk> disks;
};
MUSTER_PARAMETERS(WantedRaid, required(name, "name of the array: /dev/md/NAME"),
                  optional(level, "raid0 | raid1 | raid10 | raid5 | raid6"),
                  optional(chunk_kib, "stripe unit in KiB"),
                  required(disks, "[{serial, wwid, model, size_bytes, content_hash, policy}]"))

Status complete_raid(const StepContext&, WantedRaid& want) {
  if (want.name.empty() || want.name.size() > 20 ||
      want.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos)
    return fail(Code::invalid, "raid: '" + want.name + "' is not a valid array name");
  if (want.level != "raid0" && want.level != "raid1" && want.level != "raid10" && want.level != "raid5" &&
      want.level != "raid6")
    return fail(Code::invalid, "raid: level '" + want.level + "' is unknown");
  const size_t fewest = fewest_members(want.level);
  if (want.disks.size() < fewest)
    return fail(Code::invalid, fmt::format("raid: {} needs at least {} disks, but {} are listed", want.level,
                                           fewest, want.disks.size()));
  return Ok{};
}

constexpr const char* kReplace = "see docs/storage.md for how to replace a drive; the array is not recreated";

std::string called(const WantedRaid& want, const DiskFacts& disk) {
  for (const auto& one : want.disks)
    if (key_of(one) == disk_key(disk)) return fmt::format("disk {} ({})", title_of(one), disk.name);
  return disk.name;
}

// If a disk is missing, the error names the array that lacks it.
Result<std::vector<DiskFacts>> members_of(const Files& files, const WantedRaid& want) {
  auto disks = resolve_disks(files, want.disks);
  if (disks.ok() || !is_redundant_array(want.level) || disks.error().code != Code::not_found) return disks;
  return fail(Code::not_found, fmt::format("array {} ({}) lacks a drive: {}; {}", want.name, want.level,
                                           disks.error().message, kReplace));
}

// Like array_over(), but an array on only some of the disks is reported as degraded.
Result<std::string> array_of(const Files& files, const WantedRaid& want,
                             const std::vector<DiskFacts>& disks) {
  auto md = array_over(files, disks);
  if (md.ok() || !is_redundant_array(want.level)) return md;
  for (const auto& name : files.list("/sys/block")) {
    if (!files.exists("/sys/block/" + name + "/md")) continue;
    auto slaves = files.list("/sys/block/" + name + "/slaves");
    std::string outside;
    for (const auto& disk : disks) {
      const auto at = std::find(slaves.begin(), slaves.end(), disk.name);
      if (at == slaves.end())
        outside += (outside.empty() ? "" : ", ") + called(want, disk);
      else
        slaves.erase(at);
    }
    if (slaves.empty() && !outside.empty() && !files.list("/sys/block/" + name + "/slaves").empty())
      return fail(
          Code::conflict,
          fmt::format("array {} ({}, {}) is degraded: {} {} not in it; {}", want.name, name, want.level,
                      outside, outside.find(',') == std::string::npos ? "is" : "are", kReplace));
  }
  return md;
}

// Describes a degraded array; "" if every member is in sync or being synchronized.
std::string broken_members(const Files& files, const WantedRaid& want, const std::string& md,
                           const std::vector<DiskFacts>& disks) {
  const ArrayHealth health = array_health(files, md);
  if (health.ok) return "";
  std::string who;
  const auto add = [&](const std::vector<std::string>& names, const char* what) {
    for (const auto& name : names) {
      const auto disk =
          std::find_if(disks.begin(), disks.end(), [&](const DiskFacts& d) { return d.name == name; });
      who += (who.empty() ? ": " : ", ") + (disk == disks.end() ? name : called(want, *disk)) + what;
    }
  };
  add(health.failed, " has failed");
  add(health.waiting, " is not in sync");
  return fmt::format("array {} ({}, {}) is degraded, {} of {} members are in sync{}; {}", want.name, md,
                     want.level, health.members - health.lacking, health.members, who, kReplace);
}

// Returns the line for mdadm.conf. It identifies the array by UUID: two arrays may have the same name, and
// the first one found would get it. mdadm writes a UUID as four groups of digits.
std::string config_line(const WantedRaid& want, const std::string& uuid) {
  std::string words;
  size_t digits = 0;
  for (const char c : uuid) {
    if (c == '-') continue;
    if (digits > 0 && digits % 8 == 0) words += ':';
    words += c;
    ++digits;
  }
  return fmt::format("ARRAY /dev/md/{} metadata=1.2 UUID={}", want.name, words);
}

// The state according to the members' own superblocks.
enum class Members { none, ours, foreign, some };  // some: some members of a redundant array
struct MemberState {
  Members state = Members::none;
  std::string text = {};
  std::string uuid = {};  // of our array
};

// Returns the member's superblock; nullptr if there is none, or if the disk also contains something that may
// be foreign: the plan treats such a disk as foreign (is_own_member in controller/plan/disk_selection.cc),
// and so does this function.
const Signature* superblock(const DiskContent& content) {
  if (!content.gpt.partitions.empty() || (content.mbr && !content.mbr->partitions.empty())) return nullptr;
  const Signature* found = nullptr;
  for (const Signature& one : content.signatures) {
    if (one.type == "linux_raid_member") {
      if (found || one.start != 0) return nullptr;
      found = &one;
    } else if (is_remains(one.type) || !one.label.empty()) {
      return nullptr;
    }
  }
  return found;
}

Result<MemberState> member_state(const Files& files, const std::string& node, const WantedRaid& want,
                                 const std::vector<DiskFacts>& disks) {
  size_t ours = 0, others = 0;
  std::string array, text, outside;
  const auto no_member = [&](const DiskFacts& disk) {
    outside += (outside.empty() ? "" : ", ") + called(want, disk);
  };
  for (const auto& disk : disks) {
    TRY(const auto device, BlockDevice::open(files.real(device_path(disk.name)), BlockDevice::Access::read));
    TRY(const auto content, probe_disk(device));
    const Signature* block = superblock(content);
    if (!block) {
      no_member(disk);
      continue;
    }
    if (is_own_array(block->label, want.name, node) && (array.empty() || array == block->uuid))
      ++ours, array = block->uuid;
    else
      ++others, no_member(disk), text = called(want, disk) + " belongs to array '" + block->label + "'";
  }
  if (ours == disks.size()) return MemberState{Members::ours, "", array};
  if (ours && is_redundant_array(want.level))
    return MemberState{Members::some,
                       fmt::format("array {} ({}) lacks a drive: {} of {} disks belong to it, but not {}; {}",
                                   want.name, want.level, ours, disks.size(), outside, kReplace)};
  if (others) return MemberState{Members::foreign, text};
  if (ours)
    return MemberState{Members::foreign, fmt::format("only {} of {} disks belong to array '{}'", ours,
                                                     disks.size(), want.name)};
  return MemberState{};
}

// Describes the array that runs on the disks if it is not the declared one; "" if it is.
std::string another_array(const WantedRaid& want, const MemberState& members, const std::string& md) {
  if (members.state == Members::ours) return "";
  return fmt::format("{} on these disks is not array {}: {}", md, want.name,
                     members.text.empty() ? "its members have no array superblock" : members.text);
}

Result<CheckResult> check_raid(StepContext& context, const WantedRaid& want) {
  TRY(const auto disks, members_of(context.files, want));
  if (context.files.exists(intent_path(context.files, "raid-" + want.name)))
    return differs("array " + want.name + ": an earlier creation was interrupted");
  TRY(const std::string md, array_of(context.files, want, disks));
  if (md.empty()) {
    CheckResult none =
        differs("no array " + want.name + " on the " + std::to_string(disks.size()) + " disks");
    if (is_redundant_array(want.level))
      none.note = "the array is usable immediately, while md is still synchronizing its members (resync)";
    return none;
  }
  TRY(const MemberState members, member_state(context.files, context.node, want, disks));
  if (const std::string other = another_array(want, members, md); !other.empty()) return differs(other);
  const std::string folder = "/sys/block/" + md + "/md/";
  if (const auto level = context.files.read_line(folder + "level"); level != want.level)
    return fail(Code::conflict, fmt::format("array {} on these disks is {}, not {}", md, level, want.level));
  if (const std::string broken = broken_members(context.files, want, md, disks); !broken.empty())
    return fail(Code::conflict, broken);
  Diff diff;
  if (const auto state = context.files.read_line(folder + "array_state");
      state == "inactive" || state == "clear" || state == "broken")
    diff.add("array " + md + " is " + state);
  const auto config = context.files.read(kConfig);
  if (!config.ok() ||
      ("\n" + *config).find("\n" + config_line(want, members.uuid) + "\n") == std::string::npos)
    diff.add(std::string(kConfig) + " has no line with the UUID of the array");
  CheckResult result = diff.result();
  if (const std::string activity = array_health(context.files, md).activity; !activity.empty())
    result.note = md + " is usable while md works on it: " + activity;
  return result;
}

Status write_config(StepContext& context, const WantedRaid& want, const std::vector<DiskFacts>& disks) {
  TRY(const MemberState members, member_state(context.files, context.node, want, disks));
  if (members.state != Members::ours)
    return fail(Code::failed, "array " + want.name + " is not on its disks: " + members.text);
  return line_module().apply(context, {{"path", kConfig},
                                       {"line", config_line(want, members.uuid)},
                                       {"prefix", "ARRAY /dev/md/" + want.name + " "}});
}

std::vector<std::string> devices(const std::vector<DiskFacts>& disks) {
  std::vector<std::string> out;
  for (const auto& disk : disks) out.push_back(device_path(disk.name));
  return out;
}

Result<std::string> await_array(StepContext& context, const std::vector<DiskFacts>& disks) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    TRY(const std::string md, array_over(context.files, disks));
    if (!md.empty()) return md;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return fail(Code::failed, "mdadm succeeded, but there is no array on the disks");
}

Status assemble(StepContext& context, const WantedRaid& want, const std::vector<DiskFacts>& disks) {
  say(context, "array " + want.name + " is already on the disks: assembling it");
  std::vector<std::string> argv = {"mdadm", "--assemble", "/dev/md/" + want.name};
  for (const auto& device : devices(disks)) argv.push_back(device);
  TRY(auto out, run_tool(context, argv, 2 * kMinute));
  (void)out;
  TRY(const std::string md, await_array(context, disks));
  return md.empty() ? Status(fail(Code::failed, "the array was not assembled")) : Status(Ok{});
}

// True for a member left by an interrupted creation: it belongs to our array, and its data area is empty. The
// superblock (version 1.2) shows where that area is: an array with missing members cannot be inspected.
bool is_empty_member(const Files& files, const std::string& node, const WantedRaid& want,
                     const DiskFacts& disk, const DiskContent& content) {
  const Signature* mark = superblock(content);
  if (!mark || !is_own_array(mark->label, want.name, node)) return false;
  const auto device = BlockDevice::open(files.real(device_path(disk.name)), BlockDevice::Access::read);
  const auto block = device.ok() ? device->read_at(4096, 256) : device.error();
  if (!block.ok()) return false;
  const auto bytes_at = [&](size_t at) {
    uint64_t sectors = 0;
    for (size_t i = 8; i-- > 0;) sectors = sectors << 8 | static_cast<unsigned char>((*block)[at + i]);
    return sectors * 512;
  };
  const uint64_t start = bytes_at(128), size = bytes_at(136);
  if (start < 8192 || start >= device->size() || size == 0 || size > device->size() - start) return false;
  const auto blank = is_blank(*device, start, size);
  return blank.ok() && *blank;
}

Json keys_of(const WantedRaid& want) {
  Json out = Json::array();
  for (const auto& disk : want.disks) out.push_back(key_of(disk));
  return out;
}

// Every disk must be approved for writing before the first byte is written to any of them.
Status wipe_members(StepContext& context, const WantedRaid& want, const std::vector<DiskFacts>& disks,
                    bool resumed) {
  std::vector<BlockDevice> held;
  for (size_t i = 0; i < disks.size(); ++i) {
    const auto left = [&](const DiskContent& content) {
      return is_empty_member(context.files, context.node, want, disks[i], content);
    };
    TRY(auto device, resumed ? open_after_interruption(context.files, want.disks[i], disks[i], left)
                             : open_for_format(context.files, want.disks[i], disks[i]));
    held.push_back(std::move(device));
  }
  if (!resumed)
    TRY_(context.files.write(intent_path(context.files, "raid-" + want.name),
                             dump_json(Json{{"disks", keys_of(want)}}), 0600));
  for (const auto& device : held) {
    TRY_(wipe(device));
    TRY_(device.reread_partitions());
  }
  return Ok{};
}

// Until md begins to synchronize, shortly after the array appears, a new raid5 looks degraded.
Status see_resync(StepContext& context, const WantedRaid& want, const std::string& md) {
  if (!is_redundant_array(want.level)) return Ok{};
  ArrayHealth health = array_health(context.files, md);
  for (int attempt = 0; attempt < 50 && !health.ok; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    health = array_health(context.files, md);
  }
  if (!health.activity.empty())
    say(context, fmt::format("array {} is usable; its members are being synchronized: {}", want.name,
                             in_words(health)));
  return Ok{};
}

Status create(StepContext& context, const WantedRaid& want, const std::vector<DiskFacts>& disks,
              bool resumed) {
  TRY_(wipe_members(context, want, disks, resumed));
  std::vector<std::string> argv = {"mdadm",
                                   "--create",
                                   "/dev/md/" + want.name,
                                   "--run",
                                   "--level=" + want.level,
                                   "--raid-devices=" + std::to_string(disks.size()),
                                   "--metadata=1.2",
                                   "--homehost=any",
                                   "--name=" + want.name};
  if (want.level != "raid1") argv.push_back("--chunk=" + std::to_string(want.chunk_kib));
  // With a bitmap, only the regions that were being written are synchronized again after a crash.
  if (is_redundant_array(want.level)) argv.push_back("--bitmap=internal");
  if (disks.size() == 1) argv.push_back("--force");
  for (const auto& device : devices(disks)) argv.push_back(device);
  say(context, fmt::format("creating {} array {} on {} disks", want.level, want.name, disks.size()));
  TRY(auto out, run_tool(context, argv, 2 * kMinute));
  (void)out;
  TRY(const std::string md, await_array(context, disks));
  {
    auto array = BlockDevice::open(context.files.real(device_path(md)), BlockDevice::Access::exclusive_write);
    if (!array.ok()) return std::move(array).error().with("the new array");
    TRY_(wipe(*array));
  }
  TRY_(context.files.remove(intent_path(context.files, "raid-" + want.name)));
  return see_resync(context, want, md);
}

// True if a creation on exactly these disks was interrupted; conflict if it used different disks.
Result<bool> resumes(const Files& files, const WantedRaid& want) {
  const auto text = files.read(intent_path(files, "raid-" + want.name));
  if (!text.ok()) return false;
  TRY(const Json intent, parse_json(*text));
  // Version 0.1.0 recorded serial numbers instead of keys.
  Json serials = Json::array();
  for (const auto& disk : want.disks) serials.push_back(disk.serial);
  const Json noted = intent.value("disks", Json());
  if (noted != keys_of(want) && noted != serials)
    return fail(Code::conflict, "an interrupted creation of array " + want.name + " used different disks");
  return true;
}

// Finishes an interrupted creation. All members are present, so only the wipe of the array may be missing. An
// array that is not empty was used in the meantime or not wiped yet; it is left unchanged.
Status finish(StepContext& context, const WantedRaid& want, const std::vector<DiskFacts>& disks) {
  TRY(std::string md, array_over(context.files, disks));
  if (md.empty()) {
    TRY_(assemble(context, want, disks));
    TRY(md, array_over(context.files, disks));
  }
  const std::string intent = intent_path(context.files, "raid-" + want.name);
  TRY(const auto array, BlockDevice::open(context.files.real(device_path(md)), BlockDevice::Access::read));
  TRY(const auto content, probe_disk(array));
  if (!content.blank)
    return fail(Code::denied,
                fmt::format("array {} ({}): an earlier creation was interrupted, and the array now contains: "
                            "{}; nothing is written. To keep it, remove {} on the node. To discard it, run "
                            "`mdadm --stop {}`, wipe its disks (`blkdiscard -z`) and plan again",
                            want.name, md, content.summary, intent, device_path(md)));
  say(context, "array " + want.name + " is complete and empty: finishing its interrupted creation");
  return context.files.remove(intent);
}

// True if the plan discards the present content of this disk, including an array that runs on it.
Result<bool> is_given_up(const Files& files, const WantedDisk& want, const DiskFacts& disk) {
  if (want.policy != "format" || want.content_hash.empty()) return false;
  TRY(const auto device, BlockDevice::open(files.real(device_path(disk.name)), BlockDevice::Access::read));
  TRY(const auto content, probe_disk(device));
  return content.hash == want.content_hash;
}

// Returns which of our disks an array consists of, by index; nullopt if it has other members or none.
std::optional<std::vector<size_t>> disks_of_array(const Files& files, const std::string& md,
                                                  const std::vector<DiskFacts>& disks) {
  std::vector<size_t> out;
  for (const auto& slave : files.list("/sys/block/" + md + "/slaves")) {
    const std::string whole = disk_of_partition(files, slave);
    const auto found = std::find_if(disks.begin(), disks.end(), [&](const DiskFacts& d) {
      return d.name == (whole.empty() ? slave : whole);
    });
    if (found == disks.end()) return std::nullopt;
    out.push_back(static_cast<size_t>(found - disks.begin()));
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

// Stops foreign arrays that were assembled automatically at boot, completely or in part, if the plan discards
// the content of all their disks. An array in use is not stopped, neither by this code nor by mdadm.
Status stop_given_up(StepContext& context, const WantedRaid& want, const std::vector<DiskFacts>& disks) {
  for (const auto& md : context.files.list("/sys/block")) {
    if (!context.files.exists("/sys/block/" + md + "/md")) continue;
    const auto members = disks_of_array(context.files, md, disks);
    bool given_up = members.has_value();
    for (const size_t i : members.value_or(std::vector<size_t>())) {
      TRY(const bool one, is_given_up(context.files, want.disks[i], disks[i]));
      given_up = given_up && one;
    }
    if (!given_up) continue;
    const bool held = !context.files.list("/sys/block/" + md + "/holders").empty();
    if (held || is_mounted(context.files, md))
      return fail(
          Code::denied,
          fmt::format("{} is on disks meant for array {} and is in use; nothing is written", md, want.name));
    say(context,
        fmt::format(
            "{} is on disks meant for array {}: stopping it; the disks become a new array, as planned", md,
            want.name));
    TRY(auto out, run_tool(context, {"mdadm", "--stop", device_path(md)}));
    (void)out;
  }
  return Ok{};
}

Status apply_raid(StepContext& context, const WantedRaid& want) {
  TRY(auto disks, members_of(context.files, want));
  TRY(const bool resumed, resumes(context.files, want));
  TRY(const MemberState members, member_state(context.files, context.node, want, disks));
  if (!resumed && members.state != Members::ours && members.state != Members::some) {
    TRY_(stop_given_up(context, want, disks));
    TRY(disks, members_of(context.files, want));
  }
  TRY(const std::string md, array_of(context.files, want, disks));
  if (!resumed && !md.empty() && members.state != Members::ours)
    return fail(Code::denied, another_array(want, members, md) + "; nothing is written");
  if (resumed && members.state == Members::ours) {
    TRY_(finish(context, want, disks));
  } else if (resumed) {
    if (!md.empty())
      return fail(Code::denied,
                  fmt::format("array {}: an earlier creation was interrupted, and a different array, {}, is "
                              "now on its disks; nothing is written. If it is not needed, run `mdadm --stop "
                              "{}`, wipe its disks (`blkdiscard -z`) and plan again",
                              want.name, md, device_path(md)));
    TRY_(create(context, want, disks, true));
  } else if (members.state == Members::some) {
    return fail(Code::denied, members.text);
  } else if (md.empty()) {
    const bool may_replace = std::all_of(want.disks.begin(), want.disks.end(),
                                         [](const WantedDisk& d) { return d.policy == "format"; });
    if (members.state == Members::ours)
      TRY_(assemble(context, want, disks));
    else if (members.state == Members::foreign && !may_replace)
      return fail(Code::denied, members.text);
    else
      TRY_(create(context, want, disks, false));
  }
  return write_config(context, want, disks);
}

}  // namespace

StepModule raid_module() {
  return step_module<WantedRaid>({
      .name = "raid",
      .help =
          "Creates an md array on exactly the listed disks. If the array is already on them, it is "
          "assembled and kept; otherwise it is created only if every disk still has the content recorded in "
          "the approved plan and the disk's policy allows it.",
      .check = check_raid,
      .apply = apply_raid,
      .complete = complete_raid,
  });
}

}  // namespace muster::steps
