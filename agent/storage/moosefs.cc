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

#include "agent/storage/moosefs.h"
#include "agent/steps/accounts.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/stack_modules.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/health.h"
#include "agent/storage/metadata.h"
#include "agent/storage/mfscli.h"

namespace muster::steps {
namespace {

std::string mount_point(const std::string& serial) { return "/srv/mfs/" + plain_serial(serial); }

// ---- disks ----

Result<std::vector<Part>> disk_parts(const StepContext&, const Json& params) {
  TRY(const auto disks, wanted_disks(params));
  std::vector<Part> out;
  std::map<std::string, std::string> labels;
  for (size_t i = 0; i < disks.size(); ++i) {
    const std::string label = moosefs_label(disks[i].serial), target = mount_point(disks[i].serial);
    if (const auto [it, fresh] = labels.emplace(label, disks[i].serial); !fresh)
      return fail(Code::conflict,
                  fmt::format("disks {} and {} would get the same label", it->second, disks[i].serial));
    const Json one = Json::array({params["disks"][i]});
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

// ---- daemons ----

Result<std::vector<Part>> metalogger_parts(const StepContext& context, const Json& params) {
  const std::string folder = moosefs_folder(context.files) + "/metalogger",
                    cfg = "/etc/mfs/mfsmetalogger.cfg";
  return std::vector<Part>{
      moosefs_own_folder(moosefs_folder(context.files)), moosefs_own_folder(folder),
      file_part(cfg, moosefs_config(folder, "MASTER_HOST = " + text_of(params, "master") +
                                                "\nMETA_DOWNLOAD_FREQ = 1\n")),  // a whole image every hour
      service_part("moosefs-metalogger", {cfg})};
}

constexpr const char* kDiskList = "/etc/mfs/mfshdd.cfg";

// The master empties a disk that is marked with a star.
std::string disk_list(const std::vector<WantedDisk>& disks, bool leaving) {
  std::string out = kMooseFsHead;
  for (const auto& disk : disks) out += (leaving ? "*" : "") + mount_point(disk.serial) + "\n";
  return out;
}

Result<std::vector<Part>> chunkserver_parts(const StepContext& context, const Json& params) {
  TRY(const auto disks, wanted_disks(params));
  const std::string folder = moosefs_folder(context.files) + "/chunkserver",
                    cfg = "/etc/mfs/mfschunkserver.cfg", list = kDiskList;
  std::string unit = std::string(kMooseFsHead) + "[Unit]\n";
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
                                                text_of(params, "master") + "\n")),
      file_part("/etc/systemd/system/moosefs-chunkserver.service.d/10-muster.conf", unit),
      service_part("moosefs-chunkserver", {cfg, list})};
}

// ---- members ----

// Returns what is missing according to the master; "" if every member's chunk server and all its disks are
// healthy.
Result<std::string> members_missing(StepContext& context, const Json& params) {
  TRY(const std::string out, mfscli(context, text_of(params, "master"), {"-SCS", "-SHD"}));
  std::set<std::string> servers;
  // Address -> states of the bad disks there. A drained node's disks do not count.
  std::map<std::string, std::string> bad_disks;
  Diff diff;
  for (const auto& line : lines_of(out)) {
    const auto fields = split(line, '|');
    if (fields.size() > 4 && fields[0] == "chunk servers:") servers.insert(fields[1]);
    if (fields.size() > 4 && fields[0] == "disks:" && fields[4] != "ok")
      bad_disks[fields[1].substr(0, fields[1].find(':'))] += " " + fields[4];
  }
  const auto members = params.find("members");
  if (members != params.end())
    for (const auto& member : *members)
      if (const auto bad = bad_disks.find(text_of(member, "address")); bad != bad_disks.end())
        diff.add("a disk of " + text_of(member, "name", bad->first) + " is" + bad->second);
  if (members != params.end())
    for (const auto& member : *members)
      if (!servers.count(text_of(member, "address")))
        diff.add(text_of(member, "name", text_of(member, "address")) + " has no chunk server");
  return diff.result().diff;
}

Result<CheckResult> check_moosefs_members(StepContext& context, const Json& params) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(int_of(params, "deadline_seconds", 60));
  for (;;) {
    TRY(const std::string missing, members_missing(context, params));
    if (missing.empty()) return holds();
    if (is_cancelled(context)) return fail(Code::cancelled, missing);
    if (std::chrono::steady_clock::now() >= until) return differs(missing);
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
}

// ---- drain ----

struct MoosefsVolume {
  int64_t others = 0, others_free = 0,
          own_used = 0;  // others: connected chunk servers except this one; others_free: bytes
  Diff lacking;          // why this node is not empty yet
};

int64_t number(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

// Returns what keeps this node from leaving, according to the master. A disk is "ready" once the master has
// checked, chunk by chunk, that enough copies are elsewhere; before that first check it reports no chunks at
// all, so zero chunks prove nothing.
Result<MoosefsVolume> look_at_volume(StepContext& context, const Json& params) {
  TRY(const std::string out, mfscli(context, text_of(params, "master"), {"-SCS", "-SHD", "-SIN"}));
  const std::string own = text_of(params, "address");
  MoosefsVolume now;
  size_t disks = 0;
  for (const auto& line : lines_of(out)) {
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
  if (disks != params.at("disks").size())
    now.lacking.add(fmt::format("the master lists {} of this node's disks", disks));
  return now;
}

Result<CheckResult> check_drained(StepContext& context, const Json& params) {
  TRY(const auto disks, wanted_disks(params));
  const auto list = context.files.read(kDiskList);
  if (!list.ok() || *list != disk_list(disks, true)) return differs("this node's disks are in use");
  TRY(const MoosefsVolume now, look_at_volume(context, params));
  return now.lacking.result();
}

Status apply_drained(StepContext& context, const Json& params) {
  TRY(const auto disks, wanted_disks(params));
  TRY(const MoosefsVolume before, look_at_volume(context, params));
  const int64_t copies = int_of(params, "copies", 2);
  if (before.others < copies)
    return fail(Code::conflict,
                fmt::format("{} copies require as many other chunk servers, but only {} are connected",
                            copies, before.others));
  if (before.others_free < before.own_used)
    return fail(Code::conflict,
                fmt::format("{} bytes do not fit on the other chunk servers, which have {} bytes free",
                            before.own_used, before.others_free));
  TRY_(context.files.write(kDiskList, disk_list(disks, true)));
  TRY(auto result, run_tool(context, {"systemctl", "reload", "moosefs-chunkserver.service"}));
  (void)result;
  return wait_for_storage(context, int_of(params, "deadline_seconds", 86400), [&]() -> Result<std::string> {
    TRY(const CheckResult left, check_drained(context, params));
    return left.diff;
  });
}

}  // namespace

StepModule moosefs_disks_module() {
  return made_of(
      "moosefs_disks",
      "Creates one XFS file system per bulk disk, mounted at /srv/mfs/SERIAL. A disk that already has "
      "muster's label is kept with its chunks.",
      Json::array(
          {parameter("disks", "list", true, "[{serial, wwid, model, size_bytes, content_hash, policy}]")}),
      disk_parts);
}

StepModule moosefs_metalogger_module() {
  return made_of(
      "moosefs_metalogger", "Runs a metadata logger, which keeps a continuous copy of the master's metadata.",
      Json::array({parameter("master", "string", true, "address of the master")}), metalogger_parts);
}

StepModule moosefs_chunkserver_module() {
  return made_of("moosefs_chunkserver",
                 "Runs this node's chunk server, which does not start unless all its disks are mounted.",
                 Json::array({parameter("master", "string", true, "address of the master"),
                              parameter("disks", "list", true, "same list as in moosefs_disks")}),
                 chunkserver_parts);
}

StepModule moosefs_members_module() {
  StepModule m;
  m.name = "moosefs_members";
  m.help =
      "Tests that every member's chunk server is connected to the master and that all disks of these "
      "servers are healthy. Changes nothing.";
  m.parameters = Json::array({parameter("master", "string", true, "address of the master"),
                              parameter("members", "list", true, "[{name, address}]"),
                              parameter("deadline_seconds", "int", false,
                                        "how long to wait for the chunk servers to register", 60)});
  m.check = check_moosefs_members;
  return m;
}

StepModule moosefs_drain_module() {
  StepModule m;
  m.name = "moosefs_drain";
  m.help =
      "Moves all data off this node's disks, and waits until the master reports that every disk can be "
      "removed and no chunk of the volume lacks a copy. Fails before any data moves if there are too few "
      "other nodes or they are too full.";
  m.parameters = Json::array(
      {parameter("master", "string", true, "address of the master"),
       parameter("address", "string", true, "address of this node"),
       parameter("disks", "list", true, "same list as in moosefs_disks"),
       parameter("copies", "int", false, "number of copies in the volume", 2),
       parameter("deadline_seconds", "int", false, "how long to wait for the data to move", 86400)});
  m.check = check_drained;
  m.apply = apply_drained;
  return m;
}

}  // namespace muster::steps
