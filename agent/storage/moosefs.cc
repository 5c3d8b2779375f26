// MooseFS: master on the leader (moosefs_master.cc), metadata loggers on the others, a chunk server with its
// own XFS per bulk disk on every member.
//
// Metadata is in /state/mfs and survives a re-image, as do the chunks: a disk that has our label is mounted
// and kept, and a master that finds metadata keeps it. An empty file system is created only if no disk has
// the label: the playbook prepares disks after the master, so a label proves that there was metadata once
// (docs/decisions/0008-storage-metadata.md). A chunk server does not start unless each of its disks is a
// mount point: chunks written below an unmounted one would fill the root disk and be lost at the next boot.
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "agent/steps/disk/data_disks.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/health.h"
#include "agent/storage/metadata.h"
#include "agent/storage/moosefs.h"

namespace muster::steps {

Result<std::string> mfscli(StepContext& context, const std::string& master,
                           const std::vector<std::string>& what) {
  std::vector<std::string> argv = {"mfscli", "-H", master, "-n", "-s", "|"};
  argv.insert(argv.end(), what.begin(), what.end());
  // mfscli is a Python program. On a host with heavily overcommitted cores it needed 45 s, and was once
  // killed after 60 s.
  return run_tool(context, std::move(argv), 5 * kMinute);
}

namespace {

std::string mount_point(const std::string& serial) { return "/srv/mfs/" + plain_serial(serial); }

struct BulkDisks {
  Json disks = Json::array();
};
MUSTER_PARAMETERS(BulkDisks, required(disks, "[{serial, wwid, model, size_bytes, content_hash, policy}]"))

Result<std::vector<Part>> disk_parts(const StepContext&, const BulkDisks& want) {
  TRY(const auto disks, wanted_disks({{"disks", want.disks}}));
  std::vector<Part> out;
  std::map<std::string, std::string> labels;
  for (size_t i = 0; i < disks.size(); ++i) {
    const std::string label = moosefs_label(disks[i].serial), target = mount_point(disks[i].serial);
    if (const auto [it, fresh] = labels.emplace(label, disks[i].serial); !fresh)
      return fail(Code::conflict,
                  fmt::format("disks {} and {} would get the same label", it->second, disks[i].serial));
    const Json one = Json::array({want.disks[i]});
    out.push_back({filesystem_module(), {{"fs", "xfs"}, {"label", label}, {"disks", one}}});
    out.push_back({mount_module(),
                   {{"label", label},
                    {"target", target},
                    {"fs", "xfs"},
                    {"disks", one},
                    {"options", "noatime,nofail,x-systemd.device-timeout=15min"}}});
    out.push_back(moosefs_own_folder(target));
  }
  return out;
}

struct WantedMetalogger {
  std::string master;
};
MUSTER_PARAMETERS(WantedMetalogger, required(master, "address of the master"))

Result<std::vector<Part>> metalogger_parts(const StepContext& context, const WantedMetalogger& want) {
  const std::string folder = moosefs_folder(context.files) + "/metalogger",
                    cfg = "/etc/mfs/mfsmetalogger.cfg";
  return std::vector<Part>{
      moosefs_own_folder(moosefs_folder(context.files)), moosefs_own_folder(folder),
      file_part(cfg, moosefs_config(folder, "MASTER_HOST = " + want.master +
                                                "\nMETA_DOWNLOAD_FREQ = 1\n")),  // a whole image every hour
      service_part("moosefs-metalogger", {cfg})};
}

constexpr const char* kDiskList = "/etc/mfs/mfshdd.cfg";

// The master empties a disk that is marked with a star.
std::string disk_list(const std::vector<WantedDisk>& disks, bool leaving) {
  std::string out = kHead;
  for (const auto& disk : disks) out += (leaving ? "*" : "") + mount_point(disk.serial) + "\n";
  return out;
}

struct WantedChunkserver {
  std::string master;
  Json disks = Json::array();
};
MUSTER_PARAMETERS(WantedChunkserver, required(master, "address of the master"),
                  required(disks, "same list as in moosefs_disks"))

Result<std::vector<Part>> chunkserver_parts(const StepContext& context, const WantedChunkserver& want) {
  TRY(const auto disks, wanted_disks({{"disks", want.disks}}));
  const std::string folder = moosefs_folder(context.files) + "/chunkserver",
                    cfg = "/etc/mfs/mfschunkserver.cfg", list = kDiskList;
  std::string unit = std::string(kHead) + "[Unit]\n";
  for (const auto& disk : disks) {
    const std::string path = mount_point(disk.serial);
    unit += "RequiresMountsFor=" + path + "\nConditionPathIsMountPoint=" + path + "\n";
  }
  return std::vector<Part>{
      moosefs_own_folder(moosefs_folder(context.files)),
      moosefs_own_folder(folder),
      file_part(list, disk_list(disks, false)),
      file_part(cfg, moosefs_config(folder, "HDD_CONF_FILENAME = " + list +
                                                "\nHDD_LEAVE_SPACE_DEFAULT = 256MiB\nMASTER_HOST = " +
                                                want.master + "\n")),
      file_part("/etc/systemd/system/moosefs-chunkserver.service.d/10-muster.conf", unit),
      service_part("moosefs-chunkserver", {cfg, list})};
}

struct WantedServers {
  std::string master;
  std::vector<StorageMember> members;
  int64_t deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedServers, required(master, "address of the master"),
                  required(members, "[{name, address}]"),
                  optional(deadline_seconds, "how long to wait for the chunk servers to register"))

// According to the master; "" if every member's chunk server and all its disks are healthy.
Result<std::string> members_missing(StepContext& context, const WantedServers& want) {
  TRY(const std::string out, mfscli(context, want.master, {"-SCS", "-SHD"}));
  std::set<std::string> servers;
  // Address -> states of the bad disks there. A drained node's disks do not count.
  std::map<std::string, std::string> bad_disks;
  Diff diff;
  for (const auto& line : split_lines(out)) {
    const auto fields = split(line, '|');
    if (fields.size() > 4 && fields[0] == "chunk servers:") servers.insert(fields[1]);
    if (fields.size() > 4 && fields[0] == "disks:" && fields[4] != "ok")
      bad_disks[fields[1].substr(0, fields[1].find(':'))] += " " + fields[4];
  }
  const auto name_of = [](const StorageMember& member) {
    return member.name.empty() ? member.address : member.name;
  };
  for (const auto& member : want.members)
    if (const auto bad = bad_disks.find(member.address); bad != bad_disks.end())
      diff.add("a disk of " + name_of(member) + " is" + bad->second);
  for (const auto& member : want.members)
    if (!servers.count(member.address)) diff.add(name_of(member) + " has no chunk server");
  return diff.result().diff;
}

Result<CheckResult> check_moosefs_members(StepContext& context, const WantedServers& want) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(want.deadline_seconds);
  for (;;) {
    TRY(const std::string missing, members_missing(context, want));
    if (missing.empty()) return holds();
    if (is_cancelled(context)) return fail(Code::cancelled, missing);
    if (std::chrono::steady_clock::now() >= until) return differs(missing);
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
}

struct WantedMooseFsDrain {
  std::string master, address;
  Json disks = Json::array();
  int64_t copies = 2, deadline_seconds = 86400;
};
MUSTER_PARAMETERS(WantedMooseFsDrain, required(master, "address of the master"),
                  required(address, "address of this node"), required(disks, "same list as in moosefs_disks"),
                  optional(copies, "number of copies in the volume"),
                  optional(deadline_seconds, "how long to wait for the data to move"))

struct MoosefsVolume {
  int64_t others = 0, others_free = 0,
          own_used = 0;  // others: connected chunk servers except this one; others_free: bytes
  Diff lacking;          // why this node is not empty yet
};

int64_t number(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

// What keeps this node from leaving, according to the master. A disk is "ready" once the master has checked,
// chunk by chunk, that enough copies are elsewhere; before that it reports no chunks at all, so zero chunks
// prove nothing.
Result<MoosefsVolume> look_at_volume(StepContext& context, const WantedMooseFsDrain& want) {
  TRY(const std::string out, mfscli(context, want.master, {"-SCS", "-SHD", "-SIN"}));
  const std::string& own = want.address;
  MoosefsVolume now;
  size_t disks = 0;
  for (const auto& line : split_lines(out)) {
    const auto f = split(line, '|');
    if (f.size() > 10 && f[0] == "chunk servers:" && f[1] != own)
      ++now.others, now.others_free += number(f[10]) - number(f[9]);
    if (f.size() > 4 && f[0] == "disks:" && f[1].starts_with(own + ":")) {
      ++disks;
      if (f.size() > 6) now.own_used += number(f[f.size() - 2]);
      if (f[4] != "marked for removal (ready)") now.lacking.add("disk " + f[1] + " is " + f[4]);
    }
  }
  TRY(const std::string chunks, moosefs_wrong(out));
  if (!chunks.empty()) now.lacking.add(chunks);
  if (disks != want.disks.size())
    now.lacking.add(fmt::format("the master lists {} of this node's disks", disks));
  return now;
}

Result<CheckResult> check_drained(StepContext& context, const WantedMooseFsDrain& want) {
  TRY(const auto disks, wanted_disks({{"disks", want.disks}}));
  const auto list = context.files.read(kDiskList);
  if (!list.ok() || *list != disk_list(disks, true)) return differs("this node's disks are in use");
  TRY(const MoosefsVolume now, look_at_volume(context, want));
  return now.lacking.result();
}

Status apply_drained(StepContext& context, const WantedMooseFsDrain& want) {
  TRY(const auto disks, wanted_disks({{"disks", want.disks}}));
  TRY(const MoosefsVolume before, look_at_volume(context, want));
  if (before.others < want.copies)
    return fail(Code::conflict,
                fmt::format("{} copies require as many other chunk servers, but only {} are connected",
                            want.copies, before.others));
  if (before.others_free < before.own_used)
    return fail(Code::conflict,
                fmt::format("{} bytes do not fit on the other chunk servers, which have {} bytes free",
                            before.own_used, before.others_free));
  TRY_(context.files.write(kDiskList, disk_list(disks, true)));
  TRY_(run_tool(context, {"systemctl", "reload", "moosefs-chunkserver.service"}));
  return wait_for_storage(context, want.deadline_seconds, [&]() -> Result<std::string> {
    TRY(const CheckResult left, check_drained(context, want));
    return left.diff;
  });
}

}  // namespace

StepModule moosefs_disks_module() {
  return step_module<BulkDisks>({
      .name = "moosefs_disks",
      .help =
          "Creates one XFS file system per bulk disk, mounted at /srv/mfs/SERIAL. A disk that already has "
          "muster's label is kept with its chunks.",
      .check = check_made<disk_parts>,
      .apply = apply_made<disk_parts>,
  });
}

StepModule moosefs_metalogger_module() {
  return step_module<WantedMetalogger>({
      .name = "moosefs_metalogger",
      .help = "Runs a metadata logger, which keeps a continuous copy of the master's metadata.",
      .check = check_made<metalogger_parts>,
      .apply = apply_made<metalogger_parts>,
  });
}

StepModule moosefs_chunkserver_module() {
  return step_module<WantedChunkserver>({
      .name = "moosefs_chunkserver",
      .help = "Runs this node's chunk server, which does not start unless all its disks are mounted.",
      .check = check_made<chunkserver_parts>,
      .apply = apply_made<chunkserver_parts>,
  });
}

StepModule moosefs_members_module() {
  return step_module<WantedServers>({
      .name = "moosefs_members",
      .help = "Tests that every member's chunk server is connected to the master and that all disks of these "
              "servers are healthy. Changes nothing.",
      .check = check_moosefs_members,
  });
}

StepModule moosefs_drain_module() {
  return step_module<WantedMooseFsDrain>({
      .name = "moosefs_drain",
      .help =
          "Moves all data off this node's disks, and waits until the master reports that every disk can be "
          "removed and no chunk of the volume lacks a copy. Fails before any data moves if there are too few "
          "other nodes or they are too full.",
      .check = check_drained,
      .apply = apply_drained,
  });
}

}  // namespace muster::steps
