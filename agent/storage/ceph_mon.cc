// A Ceph monitor, from the packages of the distribution, without orchestrators. Its store is in /state/ceph,
// and survives a re-image.
#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "agent/storage/metadata.h"

namespace muster::steps {
namespace {

struct Monitor {
  std::string name, fsid, fs, mon_key, admin_key, client_key;
  std::vector<StorageMember> mons;
  bool may_create = false;
  Json disks = Json::array();
  int64_t deadline_seconds = 300;
  std::string folder, link;  // of its store
};
MUSTER_PARAMETERS(Monitor, required(name, "name of the node"), required(fsid, "fsid of the cluster"),
                  required(mons, "[{name, address}] of all monitors"),
                  required(fs, "name of the file system that the client key is for"),
                  required(mon_key, "secret:ceph-mon-key", kMayBeSecret),
                  required(admin_key, "secret:ceph-admin-key", kMayBeSecret),
                  required(client_key, "secret:ceph-client-key", kMayBeSecret),
                  required(may_create, "true if no OSD of this cluster was found on any member's disk"),
                  required(disks, "disks, as in the step `ceph_osds`"),
                  optional(deadline_seconds, kCephDeadline))

Status complete_monitor(const StepContext& context, Monitor& want) {
  want.link = "/var/lib/ceph/mon/ceph-" + want.name;
  want.folder = ceph_monitor_folder(context.files, want.name);
  for (const auto& mon : want.mons)
    if (mon.name == want.name) return Ok{};
  return fail(Code::invalid, "ceph_mon: " + want.name + " is not among the monitors");
}

std::vector<Part> monitor_parts(const Monitor& want) {
  const std::string unit = fmt::format("{}[Unit]\nRequiresMountsFor={}\n", kHead, want.folder);
  return {file_part("/etc/systemd/system/ceph-mon@.service.d/10-muster.conf", unit),
          service_part("ceph-mon@" + want.name, {})};
}

// Returns the keys for the first monitors. A later monitor gets all but the first key from these monitors.
std::string first_keys(const Monitor& want) {
  return fmt::format(
      "[mon.]\n\tkey = {}\n\tcaps mon = \"allow *\"\n"
      "[client.admin]\n\tkey = {}\n\tcaps mds = \"allow *\"\n\tcaps mgr = \"allow *\"\n\tcaps mon = \"allow "
      "*\"\n\tcaps osd = \"allow *\"\n"
      "[client.muster]\n\tkey = {}\n\tcaps mds = \"allow rw fsname={}\"\n\tcaps mon = \"allow r fsname={}\"\n"
      "\tcaps osd = \"allow rw tag cephfs data={}\"\n",
      want.mon_key, want.admin_key, want.client_key, want.fs, want.fs, want.fs);
}

// Makes an empty store next to its final place, and moves it there when it is complete; never over an
// existing one.
Status make_store(StepContext& context, const Monitor& want) {
  const std::string fresh = want.folder + ".new",
                    first = want.folder + ".first";  // first: what a store begins with
  TRY_(run_tool(context, {"rm", "-rf", fresh, first}));
  TRY_(apply_parts(context, {ceph_folder(fresh), ceph_folder(first)}));
  TRY_(context.files.write(first + "/keys", first_keys(want), 0600));
  std::vector<std::string> argv = {"monmaptool", "--create", "--fsid", want.fsid, "--enable-all-features"};
  for (const auto& mon : want.mons)
    argv.insert(argv.end(), {"--addv", mon.name, fmt::format("[v2:{0}:3300,v1:{0}:6789]", mon.address)});
  argv.push_back(first + "/map");
  TRY_(run_tool(context, argv));
  TRY_(give_to_ceph(context, first));
  TRY_(run_tool(context,
                {"ceph-mon", "--mkfs", "-i", want.name, "--monmap", first + "/map", "--keyring",
                 first + "/keys", "--mon-data", fresh, "--setuser", kCephUser, "--setgroup", kCephUser}));
  TRY_(run_tool(context, {"mv", "-T", fresh, want.folder}));
  TRY_(run_tool(context, {"rm", "-rf", first}));
  return Ok{};
}

Result<std::string> out_of_quorum(StepContext& context, const Monitor& want) {
  TRY(const Json status, ceph_json(context, {"quorum_status"}));
  for (const auto& name : status.value("quorum_names", Json::array()))
    if (name == want.name) return std::string();
  return "monitor " + want.name + " is not in the quorum";
}

// The store of a monitor that was removed from the cluster is useless: its daemon would not join again.
Status set_aside_if_removed(StepContext& context, const Monitor& want) {
  const auto status = ceph_json(context, {"quorum_status"});
  if (!status.ok()) return Ok{};  // perhaps no quorum without this monitor
  for (const auto& mon : status->value("monmap", Json::object()).value("mons", Json::array()))
    if (mon.value("name", "") == want.name) return Ok{};
  TRY_(run_tool(context, {"systemctl", "stop", "ceph-mon@" + want.name + ".service"}));
  TRY_(run_tool(context, {"rm", "-rf", want.folder + ".old"}));
  TRY_(run_tool(context, {"mv", "-T", want.folder, want.folder + ".old"}));
  return Ok{};
}

Result<CheckResult> check_mon(StepContext& context, const Monitor& want) {
  if (!context.files.exists(want.folder + "/store.db"))
    return differs(want.folder + " does not contain a monitor's store");
  if (want.link != want.folder && context.files.read_link(want.link).value_or("") != want.folder)
    return differs(want.link + " is not a link to the monitor's folder");
  TRY(const CheckResult parts, check_parts(context, monitor_parts(want)));
  if (parts.holds == Holds::no) return parts;
  const auto outside = out_of_quorum(context, want);
  if (!outside.ok()) return differs(outside.error().message);
  return outside->empty() ? holds() : differs(*outside);
}

// A monitor without a store joins the existing quorum and gets its maps from there. Without a quorum it would
// create a new cluster, which is denied if OSDs exist, because they prove that there was a cluster.
Status may_begin(StepContext& context, const Monitor& want) {
  std::string sign = want.may_create ? "" : "there are disks with OSDs of this cluster";
  if (sign.empty()) {
    TRY(const auto own, ceph_stores(context, want.disks));
    for (const auto& store : own) {
      TRY(const DiskContent content, ceph_content_of(context, store));
      if (is_ceph_store(content, store)) sign = store.device + " contains an OSD of this cluster";
    }
  }
  if (sign.empty() || ceph_json(context, {"quorum_status"}).ok()) return Ok{};
  return fail(
      Code::denied,
      fmt::format(
          "{} does not contain a monitor's store and no monitor responds, but {}: a new "
          "cluster would lose the OSDs' data and is not created. Restore the other monitors or "
          "the store of this one, then run the playbook again; see docs/storage.md: losing the metadata",
          want.folder, sign));
}

Status apply_mon(StepContext& context, const Monitor& want) {
  if (context.files.exists(want.folder + "/store.db")) TRY_(set_aside_if_removed(context, want));
  if (!context.files.exists(want.folder + "/store.db")) {
    TRY_(may_begin(context, want));
    if (want.link != want.folder) TRY_(apply_parts(context, {ceph_folder("/state/ceph")}));
    TRY_(make_store(context, want));
  }
  if (want.link != want.folder && context.files.read_link(want.link).value_or("") != want.folder)
    TRY_(context.files.symlink(want.folder, want.link));
  TRY_(apply_parts(context, monitor_parts(want)));
  return wait_for_storage(context, want.deadline_seconds, [&] { return out_of_quorum(context, want); });
}

}  // namespace

StepModule ceph_mon_module() {
  return step_module<Monitor>({
      .name = "ceph_mon",
      .help =
          "Runs a monitor with its store in /state/ceph (an existing store is kept) and waits until the "
          "monitor is in the quorum. Without a store, it joins the monitors that respond; if none responds, "
          "a new cluster is created only if no OSDs exist.",
      .check = check_mon,
      .apply = apply_mon,
      .complete = complete_monitor,
  });
}

}  // namespace muster::steps
