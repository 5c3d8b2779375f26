// Ceph on one node: monitor, manager and metadata server, object stores on its disks, and the mounted file
// system. From the distribution's packages, without its orchestrators: nothing but the steps here decides
// which disk is given to it.
//
// An object store takes a whole disk and carries a UUID made of the cluster's and the disk's serial, by which
// the planner and this file know it again. It is made only where the plan allows it (data_disks.h); nothing
// of Ceph's own ever wipes. The store's label holds its number, so a node whose system was made anew finds
// its data again. The monitor's store is in /state/ceph and survives too. A changed ceph.conf is read by the
// daemons at their next start: to restart all of them at once would stop everybody's files.
#include "agent/storage/ceph.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/disk/probe.h"
#include "agent/steps/accounts.h"
#include "agent/steps/data_disks.h"
#include "agent/steps/mounts.h"
#include "agent/steps/stack_modules.h"
#include "agent/storage/metadata.h"
#include "agent/storage/parts.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kHead = "# Written by muster.\n";
constexpr const char* kUser = "ceph";

Part own_folder(const std::string& path) {
  return {directory_module(), {{"path", path}, {"mode", "0750"}, {"owner", kUser}, {"group", kUser}}};
}
Part keyring_part(const std::string& path, const std::string& who, const std::string& key) {
  return {file_module(),
          {{"path", path},
           {"mode", "0600"},
           {"owner", kUser},
           {"group", kUser},
           {"content", fmt::format("[{}]\n\tkey = {}\n", who, key)}}};
}
Status give_to_ceph(StepContext& context, const std::string& path) {
  TRY(auto out, run_tool(context, {"chown", "-R", "ceph:ceph", path}));
  (void)out;
  return Ok{};
}

// The key of `who` as the monitors have it; made by them, with these rights, when any are given and there is
// none.
Result<std::string> key_of(StepContext& context, const std::string& who,
                           const std::vector<std::string>& caps = {}) {
  std::vector<std::string> args = {"auth", caps.empty() ? "get-key" : "get-or-create-key", who};
  args.insert(args.end(), caps.begin(), caps.end());
  TRY(std::string key, ceph_text(context, args));
  while (!key.empty() && isspace(static_cast<unsigned char>(key.back()))) key.pop_back();
  return key;
}

// ---- disks ----

struct Store {
  WantedDisk wanted;
  std::string uuid, device;  // device: "/dev/nvme1n1"
  DiskFacts disk;
};

Result<std::vector<Store>> stores(const StepContext& context, const Json& params) {
  TRY(const auto wanted, wanted_disks(params));
  TRY(const auto disks, resolve_disks(context.files, wanted));
  std::vector<Store> out;
  for (size_t i = 0; i < wanted.size(); ++i) {
    out.push_back({wanted[i], text_of(params["disks"][i], "uuid"), device_path(disks[i].name), disks[i]});
    if (out.back().uuid.empty())
      return fail(Code::invalid, "ceph_osds: disk " + wanted[i].serial + " has no uuid");
  }
  return out;
}

Result<DiskContent> content_of(const StepContext& context, const Store& store) {
  TRY(const auto device, BlockDevice::open(context.files.real(store.device), BlockDevice::Access::read));
  return probe_disk(device);
}

bool is_store(const DiskContent& content, const Store& store) {
  return content.gpt.partitions.empty() && !content.mbr && content.signatures.size() == 1 &&
         content.signatures[0].start == 0 && content.signatures[0].type == "ceph_bluestore" &&
         content.signatures[0].uuid == store.uuid;
}

// ---- monitor ----

struct Monitor {
  std::string name, fsid, folder, link;
  Json mons;
};

Result<Monitor> monitor(const StepContext& context, const Json& params) {
  Monitor out{text_of(params, "name"), text_of(params, "fsid"), "",
              "/var/lib/ceph/mon/ceph-" + text_of(params, "name"), params.at("mons")};
  out.folder = ceph_monitor_folder(context.files, out.name);
  for (const auto& mon : out.mons)
    if (text_of(mon, "name") == out.name) return out;
  return fail(Code::invalid, "ceph_mon: " + out.name + " is not among the monitors");
}

std::vector<Part> monitor_parts(const Monitor& want) {
  const std::string unit = fmt::format("{}[Unit]\nRequiresMountsFor={}\n", kHead, want.folder);
  return {file_part("/etc/systemd/system/ceph-mon@.service.d/10-muster.conf", unit),
          service_part("ceph-mon@" + want.name, {})};
}

// Whom the first monitors let in; a later monitor takes all but the first entry from them.
std::string first_keys(const Json& params) {
  const std::string fs = text_of(params, "fs");
  return fmt::format(
      "[mon.]\n\tkey = {}\n\tcaps mon = \"allow *\"\n"
      "[client.admin]\n\tkey = {}\n\tcaps mds = \"allow *\"\n\tcaps mgr = \"allow *\"\n\tcaps mon = \"allow "
      "*\"\n\tcaps osd = \"allow *\"\n"
      "[client.muster]\n\tkey = {}\n\tcaps mds = \"allow rw fsname={}\"\n\tcaps mon = \"allow r fsname={}\"\n"
      "\tcaps osd = \"allow rw tag cephfs data={}\"\n",
      text_of(params, "mon_key"), text_of(params, "admin_key"), text_of(params, "client_key"), fs, fs, fs);
}

// An empty store, made beside its place and put there when it is complete; never where one is.
Status make_store(StepContext& context, const Monitor& want, const Json& params) {
  const std::string fresh = want.folder + ".new",
                    first = want.folder + ".first";  // first: what a store begins with
  TRY(auto gone, run_tool(context, {"rm", "-rf", fresh, first}));
  TRY_(apply_parts(context, {own_folder(fresh), own_folder(first)}));
  TRY_(context.files.write(first + "/keys", first_keys(params), 0600));
  std::vector<std::string> argv = {"monmaptool", "--create", "--fsid", want.fsid, "--enable-all-features"};
  for (const auto& mon : want.mons) {
    const std::string a = text_of(mon, "address");
    argv.insert(argv.end(), {"--addv", text_of(mon, "name"), fmt::format("[v2:{}:3300,v1:{}:6789]", a, a)});
  }
  argv.push_back(first + "/map");
  TRY(auto map, run_tool(context, argv));
  TRY_(give_to_ceph(context, first));
  TRY(auto made,
      run_tool(context, {"ceph-mon", "--mkfs", "-i", want.name, "--monmap", first + "/map", "--keyring",
                         first + "/keys", "--mon-data", fresh, "--setuser", kUser, "--setgroup", kUser}));
  TRY(auto moved, run_tool(context, {"mv", "-T", fresh, want.folder}));
  TRY(auto cleaned, run_tool(context, {"rm", "-rf", first}));
  (void)gone, (void)map, (void)made, (void)moved, (void)cleaned;
  return Ok{};
}

Result<std::string> out_of_quorum(StepContext& context, const Monitor& want) {
  TRY(const Json status, ceph_json(context, {"quorum_status"}));
  for (const auto& name : status.value("quorum_names", Json::array()))
    if (name == want.name) return std::string();
  return "monitor " + want.name + " is not in the quorum";
}

// The store of a monitor that was taken out of the cluster is of no use: its daemon would refuse to join
// again.
Status set_aside_if_removed(StepContext& context, const Monitor& want) {
  const auto status = ceph_json(context, {"quorum_status"});
  if (!status.ok()) return Ok{};  // no quorum without this one, perhaps
  for (const auto& mon : status->value("monmap", Json::object()).value("mons", Json::array()))
    if (mon.value("name", "") == want.name) return Ok{};
  TRY(auto stopped, run_tool(context, {"systemctl", "stop", "ceph-mon@" + want.name + ".service"}));
  TRY(auto gone, run_tool(context, {"rm", "-rf", want.folder + ".old"}));
  TRY(auto moved, run_tool(context, {"mv", "-T", want.folder, want.folder + ".old"}));
  (void)stopped, (void)gone, (void)moved;
  return Ok{};
}

Result<CheckResult> check_mon(StepContext& context, const Json& params) {
  TRY(const Monitor want, monitor(context, params));
  if (!context.files.exists(want.folder + "/store.db"))
    return differs(want.folder + " holds no monitor's store");
  if (want.link != want.folder && context.files.read_link(want.link).value_or("") != want.folder)
    return differs(want.link + " is no link to it");
  TRY(const CheckResult parts, check_parts(context, monitor_parts(want)));
  if (parts.holds == Holds::no) return parts;
  const auto outside = out_of_quorum(context, want);
  if (!outside.ok()) return differs(outside.error().message);
  return outside->empty() ? holds() : differs(*outside);
}

// A monitor without a store joins those that agree, and gets its maps from them. Where none do it would begin
// a cluster of its own: never where there are object stores, which only monitors let in, so that there were
// some.
Status may_begin(StepContext& context, const Monitor& want, const Json& params) {
  std::string sign = params.value("may_create", false) ? "" : "disks of this storage hold its object stores";
  if (sign.empty()) {
    TRY(const auto own, stores(context, params));
    for (const auto& store : own) {
      TRY(const DiskContent content, content_of(context, store));
      if (is_store(content, store)) sign = store.device + " holds an object store of it";
    }
  }
  if (sign.empty() || ceph_json(context, {"quorum_status"}).ok()) return Ok{};
  return fail(Code::denied,
              fmt::format("{} holds no monitor's store and no monitor answers, but {}: a new cluster in its "
                          "place would lose that data, so none is begun. Bring the other monitors back, or "
                          "this one's store, and say the same again; docs/storage.md: losing the metadata",
                          want.folder, sign));
}

Status apply_mon(StepContext& context, const Json& params) {
  TRY(const Monitor want, monitor(context, params));
  if (context.files.exists(want.folder + "/store.db")) TRY_(set_aside_if_removed(context, want));
  if (!context.files.exists(want.folder + "/store.db")) {
    TRY_(may_begin(context, want, params));
    if (want.link != want.folder) TRY_(apply_parts(context, {own_folder("/state/ceph")}));
    TRY_(make_store(context, want, params));
  }
  if (want.link != want.folder && context.files.read_link(want.link).value_or("") != want.folder)
    TRY_(context.files.symlink(want.folder, want.link));
  TRY_(apply_parts(context, monitor_parts(want)));
  return wait_for_ceph(context, int_of(params, "deadline_seconds", 300),
                       [&] { return out_of_quorum(context, want); });
}

// ---- manager and metadata server ----

struct Daemon {
  const char* kind;
  std::vector<std::string> caps;
};
const std::vector<Daemon>& daemons() {
  static const std::vector<Daemon> all = {
      {"mgr", {"mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"}},
      {"mds", {"mon", "allow profile mds", "mgr", "allow profile mds", "mds", "allow *", "osd", "allow *"}}};
  return all;
}

std::vector<Part> daemon_parts(const Daemon& daemon, const std::string& name, const std::string& key) {
  const std::string folder = fmt::format("/var/lib/ceph/{}/ceph-{}", daemon.kind, name),
                    keyring = folder + "/keyring";
  return {own_folder(folder), keyring_part(keyring, fmt::format("{}.{}", daemon.kind, name), key),
          service_part(fmt::format("ceph-{}@{}", daemon.kind, name), {keyring})};
}

Result<CheckResult> check_daemons(StepContext& context, const Json& params) {
  const std::string name = text_of(params, "name");
  Diff diff;
  for (const auto& daemon : daemons()) {
    const auto key = key_of(context, fmt::format("{}.{}", daemon.kind, name));
    if (!key.ok()) {
      diff.add(fmt::format("{}.{} has no key", daemon.kind, name));
      continue;
    }
    TRY(const CheckResult parts, check_parts(context, daemon_parts(daemon, name, *key)));
    if (parts.holds == Holds::no) diff.add(parts.diff);
  }
  return diff.result();
}

Status apply_daemons(StepContext& context, const Json& params) {
  const std::string name = text_of(params, "name");
  for (const auto& daemon : daemons()) {
    TRY(const std::string key, key_of(context, fmt::format("{}.{}", daemon.kind, name), daemon.caps));
    TRY_(apply_parts(context, daemon_parts(daemon, name, key)));
  }
  return Ok{};
}

// ---- object stores ----

enum class Found { foreign, begun, complete };
struct OnDisk {
  Found found = Found::foreign;
  std::string summary, number;
};

// `begun`: our label is there, and making the store was interrupted. Making it again goes on where it ended.
Result<OnDisk> look_at(StepContext& context, const Store& store) {
  TRY(const DiskContent content, content_of(context, store));
  if (!is_store(content, store)) return OnDisk{Found::foreign, content.summary, ""};
  TRY(const std::string text,
      run_tool(context, {"ceph-bluestore-tool", "show-label", "--dev", store.device}));
  TRY(const Json all, parse_json(text));
  const Json label = all.value(store.device, Json::object());
  const bool complete = label.value("mkfs_done", "") == "yes" && label.value("ready", "") == "ready";
  return OnDisk{complete ? Found::complete : Found::begun, content.summary, label.value("whoami", "")};
}

std::string store_folder(int64_t id) { return fmt::format("/var/lib/ceph/osd/ceph-{}", id); }

// A name that stays when kernel names move; a store that is not the one meant is refused by its daemon
// anyway.
std::string lasting_name(const Files& files, const Store& store) {
  for (const auto& name : files.list("/dev/disk/by-id")) {
    const std::string target = files.read_link("/dev/disk/by-id/" + name).value_or("");
    if (name.find(store.wanted.serial) != std::string::npos &&
        target.substr(target.rfind('/') + 1) == store.disk.name)
      return "/dev/disk/by-id/" + name;
  }
  return store.device;
}

std::vector<Part> store_parts(int64_t id, const std::string& key) {
  // Device files belong to root again after every start of the machine.
  const std::string unit = fmt::format(
      "{}[Service]\nExecStartPre=/usr/bin/chown ceph:ceph /var/lib/ceph/osd/ceph-%i/block\n", kHead);
  const std::string keyring = store_folder(id) + "/keyring";
  return {file_part("/etc/systemd/system/ceph-osd@.service.d/10-muster.conf", unit),
          keyring_part(keyring, fmt::format("osd.{}", id), key),
          service_part(fmt::format("ceph-osd@{}", id), {keyring})};
}

Result<CephOsd> registered(StepContext& context, const Store& store) {
  TRY(const auto all, ceph_osds(context, false));
  for (const auto& osd : all)
    if (osd.uuid == store.uuid) return osd;
  return fail(Code::not_found, "the monitors do not know the store of disk " + store.wanted.serial);
}

Result<CheckResult> check_store(StepContext& context, const Store& store) {
  TRY(const OnDisk on, look_at(context, store));
  if (on.found == Found::foreign)
    return differs(fmt::format("{} is to become an object store; on it is: {}", store.device, on.summary));
  if (on.found == Found::begun) return differs("the object store on " + store.device + " is not complete");
  const auto known = registered(context, store);
  if (!known.ok()) return differs(known.error().message);
  const CephOsd& osd = *known;
  if (!osd.up || !osd.in) return differs(fmt::format("osd.{} is {}", osd.id, osd.up ? "out" : "down"));
  if (kernel_name(context.files, context.files.read_link(store_folder(osd.id) + "/block").value_or("")) !=
      store.disk.name)
    return differs(store_folder(osd.id) + " does not lead to " + store.device);
  TRY(const std::string key, key_of(context, fmt::format("osd.{}", osd.id)));
  return check_parts(context, store_parts(osd.id, key));
}

Result<CheckResult> check_osds(StepContext& context, const Json& params) {
  TRY(const auto all, stores(context, params));
  Diff diff;
  for (const auto& store : all) {
    TRY(const CheckResult one, check_store(context, store));
    if (one.holds == Holds::no) diff.add(one.diff);
  }
  return diff.result();
}

// The store's number: the monitors' when they know its UUID, else a new one, or for a store that has one
// already, that.
Result<int64_t> enrol(StepContext& context, const Store& store, const std::string& number) {
  const auto known = registered(context, store);
  if (known.ok()) return known->id;
  if (known.error().code != Code::not_found) return known.error();
  TRY(const std::string key, run_tool(context, {"ceph-authtool", "--gen-print-key"}));
  std::vector<std::string> args = {"osd", "new", store.uuid};
  if (!number.empty()) args.push_back(number);
  args.insert(args.end(), {"-i", "-"});
  TRY(auto made, ceph_text(context, args, dump_json(Json{{"cephx_secret", key.substr(0, key.find('\n'))}})));
  (void)made;
  TRY(const CephOsd osd, registered(context, store));
  return osd.id;
}

Status make_store(StepContext& context, const Store& store, int64_t id, const std::string& key) {
  Command mkfs;
  mkfs.argv = {
      "ceph-osd",       "--mkfs",    "-i", std::to_string(id), "--osd-data", store_folder(id), "--osd-uuid",
      store.uuid,       "--keyfile", "-",  "--setuser",        kUser,        "--setgroup",     kUser,
      "--no-mon-config"};
  mkfs.input = key;
  mkfs.deadline = 5 * kMinute;
  say(context, fmt::format("making object store {} on {}", id, store.device));
  TRY(auto out, run_ok(context.process, mkfs));
  (void)out;
  return Ok{};
}

Status apply_store(StepContext& context, const Store& store, int64_t seconds) {
  TRY(const OnDisk on, look_at(context, store));
  TRY(const int64_t id, enrol(context, store, on.number));
  if (!on.number.empty() && on.number != std::to_string(id))
    return fail(Code::conflict, fmt::format("the store on {} has number {}, and the monitors know it as {}",
                                            store.device, on.number, id));
  TRY(const std::string key, key_of(context, fmt::format("osd.{}", id)));
  if (on.found == Found::foreign) {
    TRY(const auto device, open_for_format(context.files, store.wanted, store.disk));
    TRY_(wipe(device));
    TRY_(device.reread_partitions());
  }
  const std::string folder = store_folder(id), block = folder + "/block";
  TRY_(apply_parts(context, {own_folder(folder)}));
  TRY_(context.files.symlink(lasting_name(context.files, store), block));
  TRY(auto given, run_tool(context, {"chown", "ceph:ceph", store.device}));
  if (on.found != Found::complete) TRY_(make_store(context, store, id, key));
  TRY(auto primed,
      run_tool(context, {"ceph-bluestore-tool", "prime-osd-dir", "--dev", store.device, "--path", folder}));
  TRY_(give_to_ceph(context, folder));
  (void)given, (void)primed;
  TRY_(apply_parts(context, store_parts(id, key)));
  TRY_(wait_for_ceph(context, seconds, [&]() -> Result<std::string> {
    TRY(const CephOsd osd, registered(context, store));
    return osd.up ? std::string() : fmt::format("osd.{} is down", id);
  }));
  TRY(auto in, ceph_text(context, {"osd", "in", std::to_string(id)}));
  (void)in;
  return Ok{};
}

Status apply_osds(StepContext& context, const Json& params) {
  TRY(const auto all, stores(context, params));
  for (const auto& store : all) {
    TRY(const CheckResult one, check_store(context, store));
    if (one.holds == Holds::no) TRY_(apply_store(context, store, int_of(params, "deadline_seconds", 180)));
  }
  return Ok{};
}

// ---- mount ----

constexpr unsigned kOpen = 01777;  // of the file system's own top folder: every user may put something there

struct CephMount {
  std::string source, target, unit;
};
CephMount ceph_mount(const Json& params) {
  const std::string name = text_of(params, "name");
  return {fmt::format("muster@{}.{}=/", text_of(params, "fsid"), name), text_of(params, "target"),
          "muster-ceph-" + name};
}

std::string mount_problem(const Files& files, const CephMount& want) {
  const auto entry = find_mount(files, want.target);
  if (!entry) return want.target + " is not mounted";
  if (entry->fs == "ceph" && entry->source == want.source) return "";
  return fmt::format("{} is {} ({}), not {} (ceph)", want.target, entry->source, entry->fs, want.source);
}

// A service, because a mount unit that failed is not tried again: a node may be there before the monitors
// are. It names no monitor, so that it need not change under running jobs; mount.ceph finds them in
// ceph.conf. The key is in a file, never an argument.
std::vector<Part> mount_parts(const CephMount& want) {
  const std::string unit = fmt::format(
      "{}[Unit]\nDescription=CephFS at {}\nWants=network-online.target\nAfter=network-online.target "
      "ceph.target\n"
      "StartLimitIntervalSec=0\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
      "ExecStart=/usr/bin/mount -t ceph {} {} -o "
      "secretfile=/etc/ceph/muster.secret,ms_mode=prefer-crc,noatime,nosuid,nodev\n"
      "ExecStop=/usr/bin/umount "
      "{}\nTimeoutStopSec=60\nRestart=on-failure\nRestartSec=5\n\n[Install]\nWantedBy=multi-user.target\n",
      kHead, want.target, want.source, want.target, want.target);
  return {file_part("/etc/systemd/system/" + want.unit + ".service", unit), service_part(want.unit, {})};
}

Result<CheckResult> check_mount(StepContext& context, const Json& params) {
  const CephMount want = ceph_mount(params);
  TRY(const CheckResult parts, check_parts(context, mount_parts(want)));
  if (parts.holds == Holds::no) return parts;
  if (const std::string problem = mount_problem(context.files, want); !problem.empty())
    return differs(problem);
  if (const std::string flags = lacking_flags(context.files, want.target, kSafeFlags); !flags.empty())
    return differs(flags);
  return look(context.files, want.target).mode == kOpen ? holds() : differs(want.target + ": mode");
}

Status apply_mount(StepContext& context, const Json& params) {
  const CephMount want = ceph_mount(params);
  const std::string problem = mount_problem(context.files, want);
  if (!problem.empty() && find_mount(context.files, want.target)) return fail(Code::conflict, problem);
  if (!look(context.files, want.target).exists) TRY_(context.files.make_directories(want.target, 0));
  TRY_(apply_parts(context, mount_parts(want)));
  TRY_(wait_for_ceph(context, int_of(params, "deadline_seconds", 120),
                     [&]() -> Result<std::string> { return mount_problem(context.files, want); }));
  TRY_(set_flags(context, want.target, kSafeFlags));
  return set_permissions(context.files, want.target, kOpen, -1, -1);
}

Json deadline(int seconds) { return parameter("deadline_seconds", "int", false, "to take effect", seconds); }

}  // namespace

StepModule ceph_mon_module() {
  StepModule m;
  m.name = "ceph_mon";
  m.help =
      "A monitor with its store in /state/ceph, kept when it is there, and in the quorum. One without a "
      "store joins those that answer; where none do, a new cluster is refused when there are object stores.";
  m.parameters = Json::array(
      {parameter("name", "string", true, "of the node"), parameter("fsid", "string", true, "of the cluster"),
       parameter("mons", "list", true, "[{name, address}], all of them"),
       parameter("fs", "string", true, "of the file system its client key is for"),
       parameter("mon_key", "string", true, "secret:ceph-mon-key"),
       parameter("admin_key", "string", true, "secret:ceph-admin-key"),
       parameter("client_key", "string", true, "secret:ceph-client-key"),
       parameter("may_create", "bool", true,
                 "no disk of any member was seen with an object store of this cluster"),
       parameter("disks", "list", true, "as of ceph_osds"), deadline(300)});
  m.check = check_mon;
  m.apply = apply_mon;
  return m;
}

StepModule ceph_daemons_module() {
  StepModule m;
  m.name = "ceph_daemons";
  m.help =
      "A manager and a metadata server with the keys the monitors have for them. One of each in the cluster "
      "works, the others stand by.";
  m.parameters = Json::array({parameter("name", "string", true, "of the node")});
  m.check = check_daemons;
  m.apply = apply_daemons;
  return m;
}

StepModule ceph_osds_module() {
  StepModule m;
  m.name = "ceph_osds";
  m.help =
      "One object store per disk, serving. A disk with the store muster made on it is used again with its "
      "data; anything else on it is only replaced where the approved plan says so.";
  m.parameters = Json::array(
      {parameter("disks", "list", true, "[{serial, wwid, model, size_bytes, content_hash, policy, uuid}]"),
       deadline(180)});
  m.check = check_osds;
  m.apply = apply_osds;
  return m;
}

StepModule ceph_mount_module() {
  StepModule m;
  m.name = "ceph_mount";
  m.help =
      "CephFS is mounted by the kernel, now and at every boot; checked against what the kernel has mounted. "
      "Needs Ceph 17 or later.";
  m.parameters = Json::array({parameter("name", "string", true, "of the file system"),
                              parameter("fsid", "string", true, "of the cluster"),
                              parameter("target", "string", true, "mount point"), deadline(120)});
  m.check = check_mount;
  m.apply = apply_mount;
  return m;
}

}  // namespace muster::steps
