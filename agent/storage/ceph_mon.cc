// A Ceph monitor, from the packages of the distribution, without orchestrators. Its store is in /state/ceph,
// and survives a re-image.
#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/steps/stack_modules.h"
#include "agent/storage/metadata.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

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
  const std::string unit = fmt::format("{}[Unit]\nRequiresMountsFor={}\n", kCephHead, want.folder);
  return {file_part("/etc/systemd/system/ceph-mon@.service.d/10-muster.conf", unit),
          service_part("ceph-mon@" + want.name, {})};
}

// Returns the keys for the first monitors. A later monitor gets all but the first key from these monitors.
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

// Makes an empty store next to its final place, and moves it there when it is complete; never over an
// existing one.
Status make_store(StepContext& context, const Monitor& want, const Json& params) {
  const std::string fresh = want.folder + ".new",
                    first = want.folder + ".first";  // first: what a store begins with
  TRY(auto gone, run_tool(context, {"rm", "-rf", fresh, first}));
  TRY_(apply_parts(context, {ceph_folder(fresh), ceph_folder(first)}));
  TRY_(context.files.write(first + "/keys", first_keys(params), 0600));
  std::vector<std::string> argv = {"monmaptool", "--create", "--fsid", want.fsid, "--enable-all-features"};
  for (const auto& mon : want.mons) {
    const std::string a = text_of(mon, "address");
    argv.insert(argv.end(), {"--addv", text_of(mon, "name"), fmt::format("[v2:{}:3300,v1:{}:6789]", a, a)});
  }
  argv.push_back(first + "/map");
  TRY(auto map, run_tool(context, argv));
  TRY_(give_to_ceph(context, first));
  TRY(auto made, run_tool(context, {"ceph-mon", "--mkfs", "-i", want.name, "--monmap", first + "/map",
                                    "--keyring", first + "/keys", "--mon-data", fresh, "--setuser", kCephUser,
                                    "--setgroup", kCephUser}));
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

// The store of a monitor that was removed from the cluster is useless: its daemon would not join again.
Status set_aside_if_removed(StepContext& context, const Monitor& want) {
  const auto status = ceph_json(context, {"quorum_status"});
  if (!status.ok()) return Ok{};  // perhaps no quorum without this monitor
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
Status may_begin(StepContext& context, const Monitor& want, const Json& params) {
  std::string sign = params.value("may_create", false) ? "" : "there are disks with OSDs of this cluster";
  if (sign.empty()) {
    TRY(const auto own, ceph_stores(context, params));
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

Status apply_mon(StepContext& context, const Json& params) {
  TRY(const Monitor want, monitor(context, params));
  if (context.files.exists(want.folder + "/store.db")) TRY_(set_aside_if_removed(context, want));
  if (!context.files.exists(want.folder + "/store.db")) {
    TRY_(may_begin(context, want, params));
    if (want.link != want.folder) TRY_(apply_parts(context, {ceph_folder("/state/ceph")}));
    TRY_(make_store(context, want, params));
  }
  if (want.link != want.folder && context.files.read_link(want.link).value_or("") != want.folder)
    TRY_(context.files.symlink(want.folder, want.link));
  TRY_(apply_parts(context, monitor_parts(want)));
  return wait_for_storage(context, int_of(params, "deadline_seconds", 300),
                          [&] { return out_of_quorum(context, want); });
}

}  // namespace

StepModule ceph_mon_module() {
  StepModule m;
  m.name = "ceph_mon";
  m.help =
      "Runs a monitor with its store in /state/ceph (an existing store is kept) and waits until the monitor "
      "is in the quorum. Without a store, it joins the monitors that respond; if none responds, a new "
      "cluster is created only if no OSDs exist.";
  m.parameters = Json::array(
      {parameter("name", "string", true, "name of the node"),
       parameter("fsid", "string", true, "fsid of the cluster"),
       parameter("mons", "list", true, "[{name, address}] of all monitors"),
       parameter("fs", "string", true, "name of the file system that the client key is for"),
       parameter("mon_key", "string", true, "secret:ceph-mon-key"),
       parameter("admin_key", "string", true, "secret:ceph-admin-key"),
       parameter("client_key", "string", true, "secret:ceph-client-key"),
       parameter("may_create", "bool", true, "true if no OSD of this cluster was found on any member's disk"),
       parameter("disks", "list", true, "disks, as in the step `ceph_osds`"), ceph_deadline(300)});
  m.check = check_mon;
  m.apply = apply_mon;
  return m;
}

}  // namespace muster::steps
