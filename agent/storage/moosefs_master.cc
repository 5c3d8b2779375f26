// MooseFS' master: where its metadata comes from, and how a second master is prevented.
//
// Sources of the metadata, in this order: the node's own, which is always kept; if the spec names this node
// as the server, the latest complete copy from a former master (from its metadata logger, or from this node's
// time as master); an empty file system, only if there is no sign of an earlier one. The former master is
// stopped by moosefs_retired before the new one starts, and the unit of each checks the others at every
// start: a node that was off while a different one took over must not start again with its old metadata
// (docs/decisions/0008-storage-metadata.md).
#include <fmt/format.h>

#include <ctime>

#include "agent/disk/disk_probe.h"
#include "agent/steps/accounts.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/services/service_module.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/metadata.h"
#include "agent/storage/moosefs.h"

namespace muster::steps {
namespace {

constexpr const char* kConfig = "/etc/mfs/mfsmaster.cfg";
constexpr const char* kOnlyMaster = "/etc/mfs/muster-only-master";
// A metadata logger that is connected to its master fetches a whole image every hour.
constexpr int64_t kOldCopy = 2 * 3600;

struct Metadata {
  bool may_create = false;
  Json disks = Json::array();
  bool take_over = false, accept_old = false;
  std::vector<std::string> other_masters;
};
MUSTER_PARAMETERS(
    Metadata, required(may_create, "true: no data of this storage was found on any member's disk"),
    required(disks, "same list as in moosefs_disks"),
    optional(take_over, "true: this node is the declared server, so a copy of the metadata may be used"),
    optional(accept_old, "true: also accept a copy that is older than two hours"),
    optional(other_masters,
             "names of the other nodes that had a master's metadata at last contact; if there are any, "
             "`take_over` treats this node's own metadata as a copy, unless its master is running"))

struct WantedMaster {
  Metadata metadata;
  std::string address;
  std::vector<StorageClient> clients;
  std::optional<std::vector<StorageClient>> members;
};
MUSTER_PARAMETERS(
    WantedMaster, flat(metadata),
    required(address, "address of this node, the only client whose root user is root in the file system"),
    required(clients,
             "other clients that may mount the file system, with root mapped to `nobody`: [{name, "
             "address}]"),
    optional(members,
             "nodes that may be the master, same form as `clients`; each is checked for a running "
             "master; default: the clients"))

// Debian's example admits all clients. This file admits the nodes of the spec, one by one; root is root only
// on the master's own node, which must set modes and copies, and the user `nobody` on all others.
Result<std::string> export_lines(const WantedMaster& want) {
  TRY(const auto self, client_addresses({{want.address}}, "moosefs_master"));
  TRY(const auto clients, client_addresses(want.clients, "moosefs_master"));
  std::string out = fmt::format("{} / rw,alldirs,admin,maproot=0:0\n", self[0]);
  for (const auto& client : clients)
    if (client != self[0]) out += fmt::format("{} / rw,alldirs,maproot={}:{}\n", client, kNobody, kNoGroup);
  return out;
}

// A separate program, because systemd must also run it at a boot without muster. A node that reaches none of
// the others for a minute starts the master, which then serves only itself. Only members are checked: no
// other node can be the master, and a client's service on that port must not keep the master from starting.
Result<std::string> only_master(const WantedMaster& want) {
  TRY(auto peers, client_addresses(want.members.value_or(want.clients), "moosefs_master"));
  std::erase(peers, want.address);
  return fmt::format(
      "#!/bin/bash\n{}# Whether no other node of the storage is its master. Exit 1: one is, and this one "
      "must "
      "not be.\nexport peers=\"{}\"\n"
      "look() {{\n"
      "  answers() {{ timeout 2 bash -c \": </dev/tcp/$1/$2\" 2>/dev/null; }}\n"
      "  if answers \"$1\" 9421; then echo \"master $1\"; elif answers \"$1\" 22; then echo up; fi\n"
      "}}\n"
      "export -f look\n"
      "for try in {{1..12}}; do\n"
      "  [[ -n $peers ]] || exit 0\n"
      "  found=$(printf '%s\\n' $peers | xargs -P 64 -I ADDRESS bash -c 'look ADDRESS')\n"
      "  if other=$(grep -m 1 master <<<\"$found\"); then echo \"another one answers: $other\"; exit 1; fi\n"
      "  [[ -z $found ]] || exit 0\n"
      "  sleep 3\n"
      "done\n",
      kHead, fmt::join(peers, " "));
}

// The last two parts keep the metadata logger off and run the master's service.
Result<std::vector<Part>> master_parts(const StepContext& context, const WantedMaster& want) {
  const std::string folder = moosefs_folder(context.files) + "/master";
  TRY(const std::string allowed, export_lines(want));
  TRY(const std::string script, only_master(want));
  const std::string cfg = kConfig, exports = "/etc/mfs/mfsexports.cfg";
  // -a: after a power cut the master replays its change logs by itself instead of waiting for an operator.
  const std::string unit = fmt::format(
      "{}[Unit]\nRequiresMountsFor={}\n[Service]\nExecCondition={}\nExecStart=\nExecStart="
      "/usr/sbin/mfsmaster -c {} -a -f start\nRestart=on-failure\nRestartSec=5\n",
      kHead, folder, kOnlyMaster, cfg);
  const std::string drop_in = "/etc/systemd/system/moosefs-master.service.d/10-muster.conf";
  return std::vector<Part>{
      moosefs_own_folder(moosefs_folder(context.files)),
      moosefs_own_folder(folder),
      file_part("/etc/mfs/mfstopology.cfg", kHead),
      file_part(exports, kHead + allowed),
      file_part(kOnlyMaster, script, "0755"),
      file_part(cfg, moosefs_config(
                         folder, "EXPORTS_FILENAME = " + exports +
                                     "\nTOPOLOGY_FILENAME = /etc/mfs/mfstopology.cfg\n"
                                     // A drained disk is known to be empty after two of these. Default 300 s.
                                     "CHUNKS_LOOP_MIN_TIME = 60\n")),
      file_part(drop_in, unit),
      // A master runs no logger: the copy that its logger made of a former master's metadata must stay.
      {service_module(), {{"names", {"moosefs-metalogger"}}, {"enabled", false}, {"running", false}}},
      service_part("moosefs-master", {cfg, exports})};
}

// Returns a sign that metadata existed on this node or elsewhere before; "" if there is none.
Result<std::string> sign_of_data(StepContext& context, const Metadata& want) {
  const std::string all = moosefs_folder(context.files), copies = all + "/metalogger";
  for (const auto& name : context.files.list(copies))
    if (name.starts_with("metadata_ml") || name.starts_with("changelog_ml"))
      return copies + " contains a copy of the metadata";
  if (latest_moosefs_copy(context.files)) return all + " contains metadata from this node's time as master";
  if (!want.may_create) return std::string("some disks have the label of this storage's data");
  TRY(const auto wanted, wanted_disks({{"disks", want.disks}}));
  TRY(const auto disks, resolve_disks(context.files, wanted));
  for (size_t i = 0; i < disks.size(); ++i) {
    TRY(const auto device,
        BlockDevice::open(context.files.real(device_path(disks[i].name)), BlockDevice::Access::read));
    TRY(const DiskContent content, probe_disk(device));
    for (const auto& signature : content.signatures)
      if (signature.label == moosefs_label(wanted[i].serial))
        return fmt::format("disk {} has the label of this storage's data", wanted[i].serial);
  }
  return std::string();
}

struct Origin {
  bool own = false;
  std::optional<MooseFsCopy> copy;  // neither own nor copy: an empty file system may be created
};

std::string age_of(int64_t written) {
  const int64_t minutes = (std::time(nullptr) - written) / 60;
  return minutes < 120 ? fmt::format("{} min", minutes) : fmt::format("{} h", minutes / 60);
}

bool young_enough(int64_t written, const Metadata& want) {
  return std::time(nullptr) - written <= kOldCopy || want.accept_old;
}

Result<bool> master_runs(StepContext& context) {
  Command command;
  command.argv = {"systemctl", "is-active", "--quiet", "moosefs-master.service"};
  TRY(const Output out, context.process.run(command));
  return out.ok();
}

// Accepts the node's own metadata. If a different node was master while this one was off, this node's
// metadata is outdated, so the age limit of copies applies. Otherwise any age is accepted, because the whole
// cluster was off; likewise if the master is running, because it checked the others when it started.
Result<Origin> own_metadata(StepContext& context, const Metadata& want) {
  const int64_t written = moosefs_metadata_written(context.files);
  if (!want.take_over || want.other_masters.empty() || young_enough(written, want)) return Origin{true, {}};
  TRY(const bool runs, master_runs(context));
  if (runs) return Origin{true, {}};
  return fail(
      Code::denied,
      fmt::format("the metadata in {}/master was last written {} ago, the master is not running, and "
                  "there is also a master's metadata on {}: any later changes in it would be lost. Name the "
                  "node with the later "
                  "metadata as the server (see docs/storage.md: another MooseFS master); to start with this "
                  "node's metadata, run `muster plan --force {}` and `muster approve`",
                  moosefs_folder(context.files), age_of(written), join(want.other_masters, ", "),
                  context.node));
}

// Returns an error if there is no usable source. Changes nothing: also called before the former master is
// stopped.
Result<Origin> origin_of_metadata(StepContext& context, const Metadata& want) {
  if (has_moosefs_metadata(context.files)) return own_metadata(context, want);
  const std::string folder = moosefs_folder(context.files) + "/master";
  if (auto copy = latest_moosefs_copy(context.files); copy && want.take_over) {
    if (young_enough(copy->written, want)) return Origin{false, std::move(copy)};
    return fail(
        Code::denied,
        fmt::format("the copy of the metadata in {} was last written {} ago (version {}): later changes "
                    "would be lost. Compare it with the other nodes' copies (see docs/storage.md: another "
                    "MooseFS master); to use this copy, run `muster plan --force {}` and `muster approve`",
                    copy->folder, age_of(copy->written), copy->version, context.node));
  }
  TRY(const std::string sign, sign_of_data(context, want));
  if (sign.empty()) return Origin{};
  return fail(
      Code::denied,
      fmt::format(
          "{} contains no metadata, but {}: an empty file system would lose that data, so none is created. "
          "Copy metadata_ml.mfs.back and changelog_ml* of a metadata logger ({}/metalogger on another node), "
          "or a backup, to {} and repeat the run; see docs/storage.md: losing the metadata",
          folder, sign, moosefs_folder(context.files), folder));
}

Status run_all(StepContext& context, const std::vector<std::vector<std::string>>& commands) {
  for (const auto& argv : commands) TRY_(run_tool(context, argv, 10 * kMinute));
  return Ok{};
}

// Takes over a copy completely or not at all: the files go to a second folder, which is renamed once they are
// on the disk. The copy itself is kept.
Status take_copy(StepContext& context, const MooseFsCopy& copy) {
  const std::string all = moosefs_folder(context.files), next = all + "/master.next";
  TRY_(run_all(context, {{"rm", "-rf", next}}));
  TRY_(apply_parts(context, {moosefs_own_folder(next)}));
  std::vector<std::string> argv = {"cp", "-a"};
  for (const auto& name : copy.files) argv.push_back(copy.folder + "/" + name);
  argv.push_back(next);
  // According to has_moosefs_metadata(), the folder that is removed has neither an image nor change logs.
  TRY_(run_all(
      context,
      {argv, {"sync", "-f", next}, {"rm", "-rf", all + "/master"}, {"mv", "-T", next, all + "/master"}}));
  say(context, fmt::format("taking over the metadata from {}, version {}, last written {} ago", copy.folder,
                           copy.version, age_of(copy.written)));
  return Ok{};
}

Status make_empty(StepContext& context) {
  const std::string path = moosefs_folder(context.files) + "/master/metadata.mfs";
  TRY(const std::string empty, context.files.read("/var/lib/mfs/metadata.mfs.empty"));
  TRY(const int64_t uid, uid_of(context.files, kMooseFsUser));
  TRY(const int64_t gid, gid_of(context.files, kMooseFsUser));
  return context.files.write(path, empty, 0640, {uid, gid});
}

// Metadata loggers fetch an image once an hour, but the master writes one only every hour and when it ends.
// There must be a copy from the beginning, so this step starts and stops the master itself and waits for each
// command. A restart by systemd may end a process that has not yet read its metadata, and such a process
// writes nothing.
Status write_first_image(StepContext& context) {
  const std::vector<std::string> master = {"/usr/sbin/mfsmaster", "-c", kConfig};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), master.begin(), master.end());
    return words;
  };
  // The first command ends a master that an interrupted run left behind.
  TRY_(run_all(context, {{"systemctl", "stop", "moosefs-master.service"},
                         with({"stop"}),
                         with({"-a", "start"}),
                         with({"stop"})}));
  if (!moosefs_metadata_is_new(context.files)) return Ok{};
  return fail(Code::failed,
              fmt::format("mfsmaster started and ended without writing an image of its metadata in {}/master",
                          moosefs_folder(context.files)));
}

Status no_other_master(StepContext& context) {
  Command command;
  command.argv = {kOnlyMaster};
  command.deadline = 3 * kMinute;
  TRY(const Output out, context.process.run(command));
  if (out.ok()) return Ok{};
  return fail(
      Code::conflict,
      fmt::format(
          "{}: two masters would each lose the other's changes. To stop the former master, use a plan "
          "that includes its node (run `muster up` without --limit)",
          out.out.empty() ? "a different master is running" : out.out.substr(0, out.out.find('\n'))));
}

Status apply_master(StepContext& context, const WantedMaster& want) {
  TRY(auto parts, master_parts(context, want));
  const Part service = parts.back();
  parts.pop_back();
  const Part no_logger = parts.back();
  parts.pop_back();
  TRY(const Origin origin, origin_of_metadata(context, want.metadata));
  // Queried from systemd, because the service's own check also fails for a master with a different
  // configuration.
  TRY(const bool alive, master_runs(context));
  if (alive && !origin.own)
    return fail(
        Code::denied,
        fmt::format("the master is running, but {}/master does not contain its metadata: its state is in "
                    "memory only. Nothing was changed; stop the master cleanly, and check what it writes",
                    moosefs_folder(context.files)));
  TRY_(apply_parts(context, parts));
  TRY(const CheckResult runs, service.module.check(context, service.params));
  const bool first_image = !origin.own || moosefs_metadata_is_new(context.files);
  if (runs.holds != Holds::yes) TRY_(no_other_master(context));
  // Not earlier: while a different node is the master, the logger must continue to copy its metadata.
  TRY_(apply_parts(context, {no_logger}));
  if (runs.holds == Holds::yes && !first_image) return Ok{};
  if (origin.copy) TRY_(take_copy(context, *origin.copy));
  if (!origin.own && !origin.copy) TRY_(make_empty(context));
  if (first_image) TRY_(write_first_image(context));
  return apply_parts(context, {service});
}

Result<CheckResult> check_master(StepContext& context, const WantedMaster& want) {
  TRY(const CheckResult all, check_made<master_parts>(context, want));
  if (all.holds == Holds::no || !moosefs_metadata_is_new(context.files)) return all;
  return differs("the master has not written an image of its metadata, so no copy of it can exist");
}

Result<CheckResult> check_heir(StepContext& context, const Metadata& want) {
  TRY_(origin_of_metadata(context, want));
  return holds();
}

Part master_off() {
  return {service_module(), {{"names", {"moosefs-master"}}, {"enabled", false}, {"running", false}}};
}

Result<CheckResult> check_retired(StepContext& context, const Json&) {
  TRY(const CheckResult off, check_parts(context, {master_off()}));
  if (off.holds == Holds::no) return off;
  return has_moosefs_metadata(context.files) ? differs("this node still has a master's metadata") : holds();
}

// Stops the master cleanly, so that it writes all its state, and moves the metadata aside, so that it is
// never used as a master's again.
Status apply_retired(StepContext& context, const Json&) {
  TRY_(apply_parts(context, {master_off()}));
  if (!has_moosefs_metadata(context.files)) return Ok{};
  const std::string aside = free_retired_folder(context.files);
  return run_all(context, {{"mv", "-T", moosefs_folder(context.files) + "/master", aside}});
}

}  // namespace

StepModule moosefs_master_module() {
  return step_module<WantedMaster>({
      .name = "moosefs_master",
      .help =
          "Runs the metadata server. Its metadata is in /state/mfs and is kept if present; otherwise, with "
          "`take_over`, the latest copy of a former master's metadata is used. An empty file system is not "
          "created if a disk label or a copy shows that one existed, and the master does not start while a "
          "different node runs one.",
      .check = check_master,
      .apply = apply_master,
  });
}

StepModule moosefs_heir_module() {
  return step_module<Metadata>({
      .name = "moosefs_heir",
      .help =
          "Tests that this node has the metadata, or a complete copy that is at most two hours old, or that "
          "no metadata existed yet. Changes nothing; runs before the former master is stopped.",
      .check = check_heir,
  });
}

StepModule moosefs_retired_module() {
  StepModule m;
  m.name = "moosefs_retired";
  m.help =
      "Stops the master on this node and keeps it from starting at boot; its metadata is moved aside "
      "(/state/mfs/master.retired), never removed.";
  m.check = check_retired;
  m.apply = apply_retired;
  return m;
}

}  // namespace muster::steps
