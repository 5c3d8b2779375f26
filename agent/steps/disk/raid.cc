// raid: one md array over exactly these disks. An array of that name that the disks already carry is
// assembled and kept.
//
// The order of writing: intent noted -> every disk allowed and held -> all disks wiped (data_disks.h) ->
// mdadm
// --create -> the array wiped (a re-created RAID0 brings a file system of its former life back) ->
// intent removed. A crash anywhere in between finds the intent and goes on, for the same disks only. An array
// that is whole by then and not empty is left alone: somebody used it meanwhile, or the crash came before it
// was wiped.
//
// Levels with redundancy: an array that lacks a member is an error that names the drive, never a reason to
// make one anew, and putting in another drive is for people (docs/storage.md). A new array is in use at once
// while md brings its members into step. That is never left out (--assume-clean): what the disks held where
// nobody looks would be taken for parity, and for a mirror's other half.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "agent/disk/disk_probe.h"
#include "agent/steps/disk/array_health.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kConfig = "/etc/mdadm/mdadm.conf";

struct Wanted {
  std::string name, level;
  int64_t chunk_kib = 512;
  std::vector<WantedDisk> disks;
};

Result<Wanted> wanted(const Json& params) {
  Wanted out{
      text_of(params, "name"), text_of(params, "level", "raid0"), int_of(params, "chunk_kib", 512), {}};
  if (out.name.empty() || out.name.size() > 20 ||
      out.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos)
    return fail(Code::invalid, "raid: '" + out.name + "' is not a name for an array");
  if (out.level != "raid0" && out.level != "raid1" && out.level != "raid10" && out.level != "raid5" &&
      out.level != "raid6")
    return fail(Code::invalid, "raid: level '" + out.level + "' is not known");
  TRY(out.disks, wanted_disks(params));
  const size_t fewest = fewest_members(out.level);
  if (out.disks.size() < fewest)
    return fail(Code::invalid, fmt::format("raid: {} needs at least {} disks, and {} are named", out.level,
                                           fewest, out.disks.size()));
  return out;
}

constexpr const char* kReplace = "docs/storage.md says how to replace a drive; nothing is made anew";

std::string called(const Wanted& want, const DiskFacts& disk) {
  for (const auto& one : want.disks)
    if (one.serial == disk.serial) return fmt::format("disk {} ({})", disk.serial, disk.name);
  return disk.name;
}

// The disks, where a missing one is said to be a member.
Result<std::vector<DiskFacts>> members_of(const Files& files, const Wanted& want) {
  auto disks = resolve_disks(files, want.disks);
  if (disks.ok() || !is_redundant_array(want.level) || disks.error().code != Code::not_found) return disks;
  return fail(Code::not_found, fmt::format("array {} ({}) lacks a drive: {}; {}", want.name, want.level,
                                           disks.error().message, kReplace));
}

// array_over(); an array over some of them only lacks the others.
Result<std::string> array_of(const Files& files, const Wanted& want, const std::vector<DiskFacts>& disks) {
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

// "" when every member does its part, or is being brought to.
std::string broken_members(const Files& files, const Wanted& want, const std::string& md,
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
  add(health.waiting, " is not rebuilt");
  return fmt::format("array {} ({}, {}) is degraded, {} of {} members are in step{}; {}", want.name, md,
                     want.level, health.members - health.lacking, health.members, who, kReplace);
}

std::string config_line(const Wanted& want) {
  return fmt::format("ARRAY /dev/md/{} metadata=1.2 name=any:{}", want.name, want.name);
}

// What the members' own superblocks say.
enum class Members { none, ours, foreign, some };  // some: of an array with redundancy
struct MemberState {
  Members state = Members::none;
  std::string text;
};

Result<MemberState> member_state(const Files& files, const Wanted& want,
                                 const std::vector<DiskFacts>& disks) {
  size_t ours = 0, others = 0;
  std::string array, text, outside;
  const auto no_member = [&](const DiskFacts& disk) {
    outside += (outside.empty() ? "" : ", ") + called(want, disk);
  };
  for (const auto& disk : disks) {
    TRY(const auto device, BlockDevice::open(files.real(device_path(disk.name)), BlockDevice::Access::read));
    TRY(const auto content, probe_disk(device));
    const auto it =
        std::find_if(content.signatures.begin(), content.signatures.end(),
                     [](const Signature& s) { return s.type == "linux_raid_member" && s.start == 0; });
    if (it == content.signatures.end()) {
      no_member(disk);
      continue;
    }
    const auto colon = it->label.find(':');
    const std::string name = colon == std::string::npos ? it->label : it->label.substr(colon + 1);
    if (name == want.name && (array.empty() || array == it->uuid))
      ++ours, array = it->uuid;
    else
      ++others, no_member(disk), text = disk.serial + " belongs to array '" + it->label + "'";
  }
  if (ours == disks.size()) return MemberState{Members::ours, ""};
  if (ours && is_redundant_array(want.level))
    return MemberState{Members::some,
                       fmt::format("array {} ({}) lacks a drive: {} of {} disks belong to it, not {}; {}",
                                   want.name, want.level, ours, disks.size(), outside, kReplace)};
  if (others) return MemberState{Members::foreign, text};
  if (ours)
    return MemberState{Members::foreign, fmt::format("only {} of {} disks belong to array '{}'", ours,
                                                     disks.size(), want.name)};
  return MemberState{};
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  TRY(const Wanted want, wanted(params));
  TRY(const auto disks, members_of(context.files, want));
  if (context.files.exists(intent_path(context.files, "raid-" + want.name)))
    return differs("array " + want.name + ": an earlier creation was interrupted");
  TRY(const std::string md, array_of(context.files, want, disks));
  if (md.empty()) {
    CheckResult none = differs("no array " + want.name + " over " + std::to_string(disks.size()) + " disks");
    if (is_redundant_array(want.level))
      none.note = "in use at once; md brings its members into step (resync)";
    return none;
  }
  const std::string folder = "/sys/block/" + md + "/md/";
  if (const auto level = context.files.read_line(folder + "level"); level != want.level)
    return fail(Code::conflict,
                fmt::format("array {} over these disks is {}, not {}", md, level, want.level));
  if (const std::string broken = broken_members(context.files, want, md, disks); !broken.empty())
    return fail(Code::conflict, broken);
  Diff diff;
  if (const auto state = context.files.read_line(folder + "array_state");
      state == "inactive" || state == "clear" || state == "broken")
    diff.add("array " + md + " is " + state);
  const auto config = context.files.read(kConfig);
  if (!config.ok() || ("\n" + *config).find("\n" + config_line(want) + "\n") == std::string::npos)
    diff.add(std::string(kConfig) + " does not name it");
  CheckResult result = diff.result();
  if (const std::string activity = array_health(context.files, md).activity; !activity.empty())
    result.note = md + " is in use while md works on it: " + activity;
  return result;
}

Status write_config(StepContext& context, const Wanted& want) {
  const Json line = {
      {"path", kConfig}, {"line", config_line(want)}, {"prefix", "ARRAY /dev/md/" + want.name + " "}};
  return line_module().apply(context, line);
}

std::vector<std::string> devices(const std::vector<DiskFacts>& disks) {
  std::vector<std::string> out;
  for (const auto& disk : disks) out.push_back(device_path(disk.name));
  return out;
}

// The array's kernel name once the kernel shows it.
Result<std::string> await_array(StepContext& context, const std::vector<DiskFacts>& disks) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    TRY(const std::string md, array_over(context.files, disks));
    if (!md.empty()) return md;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return fail(Code::failed, "mdadm succeeded, but there is no array over the disks");
}

Status assemble(StepContext& context, const Wanted& want, const std::vector<DiskFacts>& disks) {
  say(context, "array " + want.name + " is on the disks already: assembling it");
  std::vector<std::string> argv = {"mdadm", "--assemble", "/dev/md/" + want.name};
  for (const auto& device : devices(disks)) argv.push_back(device);
  TRY(auto out, run_tool(context, argv, 2 * kMinute));
  (void)out;
  TRY(const std::string md, await_array(context, disks));
  return md.empty() ? Status(fail(Code::failed, "not assembled")) : Status(Ok{});
}

// A member that an interrupted creation left: of our array, and where the array's data lies on it there is
// nothing. By the superblock of version 1.2, since with other members missing no array can be looked into.
bool is_empty_member(const Files& files, const Wanted& want, const DiskFacts& disk,
                     const DiskContent& content) {
  const bool ours =
      std::any_of(content.signatures.begin(), content.signatures.end(), [&](const Signature& s) {
        return s.type == "linux_raid_member" && s.label.substr(s.label.find(':') + 1) == want.name;
      });
  if (!ours) return false;
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

// Allowed disks, all of them, before the first byte is written to any.
Status wipe_members(StepContext& context, const Wanted& want, const std::vector<DiskFacts>& disks,
                    bool resumed) {
  std::vector<BlockDevice> held;
  for (size_t i = 0; i < disks.size(); ++i) {
    const auto left = [&](const DiskContent& content) {
      return is_empty_member(context.files, want, disks[i], content);
    };
    TRY(auto device, resumed ? open_after_interruption(context.files, want.disks[i], disks[i], left)
                             : open_for_format(context.files, want.disks[i], disks[i]));
    held.push_back(std::move(device));
  }
  if (!resumed) {
    Json serials = Json::array();
    for (const auto& disk : want.disks) serials.push_back(disk.serial);
    TRY_(context.files.write(intent_path(context.files, "raid-" + want.name),
                             dump_json(Json{{"disks", serials}}), 0600));
  }
  for (const auto& device : held) {
    TRY_(wipe(device));
    TRY_(device.reread_partitions());
  }
  return Ok{};
}

// md begins a moment after the array is there; until then a new raid5 looks degraded.
Status see_resync(StepContext& context, const Wanted& want, const std::string& md) {
  if (!is_redundant_array(want.level)) return Ok{};
  ArrayHealth health = array_health(context.files, md);
  for (int attempt = 0; attempt < 50 && !health.ok; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    health = array_health(context.files, md);
  }
  if (!health.activity.empty())
    say(context, fmt::format("array {} is in use; its members are brought into step meanwhile: {}", want.name,
                             in_words(health)));
  return Ok{};
}

Status create(StepContext& context, const Wanted& want, const std::vector<DiskFacts>& disks, bool resumed) {
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
  // After a crash only what was being written is brought into step again.
  if (is_redundant_array(want.level)) argv.push_back("--bitmap=internal");
  if (disks.size() == 1) argv.push_back("--force");
  for (const auto& device : devices(disks)) argv.push_back(device);
  say(context, fmt::format("creating {} array {} over {} disks", want.level, want.name, disks.size()));
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

// The interrupted creation was of exactly these disks.
Result<bool> resumes(const Files& files, const Wanted& want) {
  const auto text = files.read(intent_path(files, "raid-" + want.name));
  if (!text.ok()) return false;
  TRY(const Json intent, parse_json(*text));
  Json serials = Json::array();
  for (const auto& disk : want.disks) serials.push_back(disk.serial);
  if (intent.value("disks", Json()) != serials)
    return fail(Code::conflict, "an interrupted creation of array " + want.name + " was over other disks");
  return true;
}

// All members are there, so that nothing was to come but the wiping of the array: it has those already, or it
// was used.
Status finish(StepContext& context, const Wanted& want, const std::vector<DiskFacts>& disks) {
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
                fmt::format("array {} ({}): an earlier creation was interrupted, and now the array holds: "
                            "{}; nothing is written. To keep it as it is, remove {} on the node. To give it "
                            "up, `mdadm --stop {}`, wipe its disks (blkdiscard -z) and plan again",
                            want.name, md, content.summary, intent, device_path(md)));
  say(context, "array " + want.name + " is whole and empty: its interrupted creation is finished");
  return context.files.remove(intent);
}

Status apply(StepContext& context, const Json& params) {
  TRY(const Wanted want, wanted(params));
  TRY(const auto disks, members_of(context.files, want));
  TRY(const bool resumed, resumes(context.files, want));
  TRY(const std::string md, array_of(context.files, want, disks));
  TRY(const MemberState members, member_state(context.files, want, disks));
  if (resumed && members.state == Members::ours) {
    TRY_(finish(context, want, disks));
  } else if (resumed) {
    if (!md.empty())
      return fail(Code::denied,
                  fmt::format("array {}: an earlier creation was interrupted, and now another array, {}, is "
                              "over its disks; nothing is written. If nobody needs it, `mdadm --stop {}`, "
                              "wipe its disks (blkdiscard -z) and plan again",
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
  return write_config(context, want);
}

}  // namespace

StepModule raid_module() {
  StepModule m;
  m.name = "raid";
  m.help =
      "An md array over exactly the named disks. One that they carry already is assembled and kept; "
      "otherwise it is created, if every disk is what the approved plan saw and its policy allows it.";
  m.parameters = Json::array(
      {parameter("name", "string", true, "/dev/md/NAME"),
       parameter("level", "string", false, "raid0 | raid1 | raid10 | raid5 | raid6", "raid0"),
       parameter("chunk_kib", "int", false, "stripe unit", 512),
       parameter("disks", "list", true, "[{serial, wwid, model, size_bytes, content_hash, policy}]")});
  m.check = check;
  m.apply = apply;
  return m;
}

}  // namespace muster::steps
