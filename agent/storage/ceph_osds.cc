// The OSDs of a Ceph node: only this step decides which disks Ceph may use.
//
// An OSD takes a whole disk and has a UUID derived from the cluster's id and the disk's serial number, by
// which the planner and this file recognize it. It is created only where the plan allows it (data_disks.h);
// Ceph's own tools never wipe a disk. The OSD's label contains its number, so a re-imaged node finds its data
// again. The daemons read a changed ceph.conf at their next start: restarting all of them at once would stop
// all file access.
#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

struct WantedOsds {
  Json disks = Json::array();
  int64_t deadline_seconds = 180;
};
MUSTER_PARAMETERS(WantedOsds,
                  required(disks, "[{serial, wwid, model, size_bytes, content_hash, policy, uuid}]"),
                  optional(deadline_seconds, kCephDeadline))

enum class Found { foreign, begun, complete };
struct OnDisk {
  Found found = Found::foreign;
  std::string summary, number;
};

// `begun`: our label is present, but the OSD's creation was interrupted; creating it again completes it.
Result<OnDisk> look_at(StepContext& context, const CephStore& store) {
  TRY(const DiskContent content, ceph_content_of(context, store));
  if (!is_ceph_store(content, store)) return OnDisk{Found::foreign, content.summary, ""};
  TRY(const std::string text,
      run_tool(context, {"ceph-bluestore-tool", "show-label", "--dev", store.device}));
  TRY(const Json all, parse_json(text));
  const Json label = all.value(store.device, Json::object());
  const bool complete = label.value("mkfs_done", "") == "yes" && label.value("ready", "") == "ready";
  return OnDisk{complete ? Found::complete : Found::begun, content.summary, label.value("whoami", "")};
}

std::string store_folder(int64_t id) { return fmt::format("/var/lib/ceph/osd/ceph-{}", id); }

// Stays valid if kernel names change; the daemon rejects an unexpected OSD in any case.
std::string lasting_name(const Files& files, const CephStore& store) {
  for (const auto& name : files.list("/dev/disk/by-id")) {
    const std::string target = files.read_link("/dev/disk/by-id/" + name).value_or("");
    if (name.find(store.wanted.serial) != std::string::npos &&
        target.substr(target.rfind('/') + 1) == store.disk.name)
      return "/dev/disk/by-id/" + name;
  }
  return store.device;
}

std::vector<Part> store_parts(int64_t id, const std::string& key) {
  // Device files belong to root again after every boot of the machine.
  const std::string unit = fmt::format(
      "{}[Service]\nExecStartPre=/usr/bin/chown ceph:ceph /var/lib/ceph/osd/ceph-%i/block\n", kHead);
  const std::string keyring = store_folder(id) + "/keyring";
  return {file_part("/etc/systemd/system/ceph-osd@.service.d/10-muster.conf", unit),
          ceph_keyring(keyring, fmt::format("osd.{}", id), key),
          service_part(fmt::format("ceph-osd@{}", id), {keyring})};
}

Result<CephOsd> registered(StepContext& context, const CephStore& store) {
  TRY(const auto all, ceph_osds(context, false));
  for (const auto& osd : all)
    if (osd.uuid == store.uuid) return osd;
  return fail(Code::not_found, "the monitors have no entry for the OSD on disk " + store.wanted.serial);
}

Result<CheckResult> check_store(StepContext& context, const CephStore& store) {
  TRY(const OnDisk on, look_at(context, store));
  if (on.found == Found::foreign)
    return differs(fmt::format("{} should be an OSD, but contains: {}", store.device, on.summary));
  if (on.found == Found::begun) return differs("the OSD on " + store.device + " is not complete");
  const auto known = registered(context, store);
  if (!known.ok()) return differs(known.error().message);
  const CephOsd& osd = *known;
  if (!osd.up || !osd.in) return differs(fmt::format("osd.{} is {}", osd.id, osd.up ? "out" : "down"));
  if (kernel_name(context.files, context.files.read_link(store_folder(osd.id) + "/block").value_or("")) !=
      store.disk.name)
    return differs(store_folder(osd.id) + " does not point to " + store.device);
  TRY(const std::string key, ceph_key_of(context, fmt::format("osd.{}", osd.id)));
  return check_parts(context, store_parts(osd.id, key));
}

Result<CheckResult> check_osds(StepContext& context, const WantedOsds& want) {
  TRY(const auto all, ceph_stores(context, want.disks));
  Diff diff;
  for (const auto& store : all) {
    TRY(const CheckResult one, check_store(context, store));
    if (one.holds == Holds::no) diff.add(one.diff);
  }
  return diff.result();
}

struct Enrolled {
  int64_t id = -1;
  std::string key;
};

// The OSD's number: that which the monitors have for its UUID, else the one in its label, else a new one.
Result<Enrolled> enrol(StepContext& context, const CephStore& store, const std::string& number) {
  const auto known = registered(context, store);
  if (known.ok()) {
    TRY(std::string key, ceph_key_of(context, fmt::format("osd.{}", known->id)));
    return Enrolled{known->id, std::move(key)};
  }
  if (known.error().code != Code::not_found) return known.error();
  TRY(const std::string printed, run_tool(context, {"ceph-authtool", "--gen-print-key"}));
  const std::string key = printed.substr(0, printed.find('\n'));
  std::vector<std::string> args = {"osd", "new", store.uuid};
  if (!number.empty()) args.push_back(number);
  args.insert(args.end(), {"-i", "-"});
  TRY(const std::string text, ceph_text(context, args, dump_json(Json{{"cephx_secret", key}})));
  const auto id = parse_json(text);  // it prints the number
  if (!id.ok() || !id->is_number_unsigned())
    return fail(Code::corrupt,
                "`ceph osd new` returned no number for the OSD on disk " + store.wanted.serial);
  return Enrolled{id->get<int64_t>(), key};
}

Status make_store(StepContext& context, const CephStore& store, int64_t id, const std::string& key) {
  Command mkfs;
  mkfs.argv = {"ceph-osd",       "--mkfs",     "-i",         std::to_string(id), "--osd-data",
               store_folder(id), "--osd-uuid", store.uuid,   "--keyfile",        "-",
               "--setuser",      kCephUser,    "--setgroup", kCephUser,          "--no-mon-config"};
  mkfs.input = key;
  mkfs.deadline = 5 * kMinute;
  say(context, fmt::format("creating osd.{} on {}", id, store.device));
  TRY_(run_ok(context.process, mkfs));
  return Ok{};
}

Status apply_store(StepContext& context, const CephStore& store, int64_t seconds) {
  TRY(const OnDisk on, look_at(context, store));
  TRY(const auto enrolled, enrol(context, store, on.number));
  const auto& [id, key] = enrolled;
  if (!on.number.empty() && on.number != std::to_string(id))
    return fail(Code::conflict,
                fmt::format("the OSD on {} has number {}, but the monitors list it as number {}",
                            store.device, on.number, id));
  if (on.found == Found::foreign) {
    TRY(const auto device, open_for_format(context.files, store.wanted, store.disk));
    TRY_(wipe(device));
    TRY_(device.reread_partitions());
  }
  const std::string folder = store_folder(id), block = folder + "/block";
  TRY_(apply_parts(context, {ceph_folder(folder)}));
  TRY_(context.files.symlink(lasting_name(context.files, store), block));
  TRY_(run_tool(context, {"chown", "ceph:ceph", store.device}));
  if (on.found != Found::complete) TRY_(make_store(context, store, id, key));
  TRY_(run_tool(context, {"ceph-bluestore-tool", "prime-osd-dir", "--dev", store.device, "--path", folder}));
  TRY_(give_to_ceph(context, folder));
  TRY_(apply_parts(context, store_parts(id, key)));
  bool in = false;
  TRY_(wait_for_storage(context, seconds, [&]() -> Result<std::string> {
    TRY(const CephOsd osd, registered(context, store));
    in = osd.in;
    return osd.up ? std::string() : fmt::format("osd.{} is down", id);
  }));
  if (!in) TRY_(ceph_text(context, {"osd", "in", std::to_string(id)}));
  return Ok{};
}

Status apply_osds(StepContext& context, const WantedOsds& want) {
  TRY(const auto all, ceph_stores(context, want.disks));
  for (const auto& store : all) {
    TRY(const CheckResult one, check_store(context, store));
    if (one.holds == Holds::no) TRY_(apply_store(context, store, want.deadline_seconds));
  }
  return Ok{};
}

}  // namespace

StepModule ceph_osds_module() {
  return step_module<WantedOsds>({
      .name = "ceph_osds",
      .help =
          "Runs one OSD per disk. An OSD that muster created earlier is reused with its data; anything else "
          "on a disk is replaced only if the approved plan says so.",
      .check = check_osds,
      .apply = apply_osds,
  });
}

}  // namespace muster::steps
