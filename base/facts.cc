#include "base/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/json.h"

namespace muster {
namespace {

constexpr size_t kMostProperties = 1000;

// Reads every element of the array `key` with `read`; absent is empty.
template <typename T, typename Read>
Status read_list(JsonReader& reader, const char* key, const std::string& path, std::vector<T>& out,
                 Read read) {
  const Json& list = reader.raw(key);
  if (list.is_null()) return Ok{};
  if (!list.is_array())
    return fail(Code::invalid, path + "." + key + ": wrong type (" + list.type_name() + ")");
  for (size_t i = 0; i < list.size(); ++i) {
    TRY(T item, read(list[i], fmt::format("{}.{}[{}]", path, key, i)));
    out.push_back(std::move(item));
  }
  return Ok{};
}

Result<SystemFacts> read_system(const Json& json, const std::string& path) {
  SystemFacts out;
  if (json.is_null()) return out;
  JsonReader r(json, path);
  r.allow_unknown();
  r.get_or("vendor", out.vendor, {});
  r.get_or("product", out.product, {});
  r.get_or("serial", out.serial, {});
  r.get_or("uuid", out.uuid, {});
  TRY_(r.finish());
  return out;
}

Result<CpuFacts> read_cpus(const Json& json, const std::string& path) {
  CpuFacts out;
  if (json.is_null()) return out;
  JsonReader r(json, path);
  r.allow_unknown();
  r.get_or("count", out.count, 0);
  r.get_or("sockets", out.sockets, 0);
  r.get_or("model", out.model, {});
  TRY_(r.finish());
  return out;
}

Result<GpuFacts> read_gpu(const Json& json, const std::string& path) {
  GpuFacts out;
  JsonReader r(json, path);
  r.allow_unknown();
  r.get_or("model", out.model, {});
  r.get_or("uuid", out.uuid, {});
  r.get_or("serial", out.serial, {});
  r.get_or("pci", out.pci, {});
  r.get_or("pci_path", out.pci_path, {});
  r.get_or("memory_bytes", out.memory_bytes, uint64_t{0});
  r.get_or("bus_speed", out.bus_speed, {});
  r.get_or("simulated", out.simulated, false);
  TRY_(r.finish());
  return out;
}

Result<NicFacts> read_nic(const Json& json, const std::string& path) {
  NicFacts out;
  JsonReader r(json, path);
  r.allow_unknown();
  r.get_or("name", out.name, {});
  r.get_or("mac", out.mac, {});
  r.get_or("speed_mbps", out.speed_mbps, int64_t{0});
  r.get_or("driver", out.driver, {});
  r.get_or("pci", out.pci, {});
  r.get_or("pci_path", out.pci_path, {});
  r.get_or("link_up", out.link_up, false);
  r.get_or("address_kind", out.address_kind, {});
  TRY_(r.finish());
  return out;
}

Result<PartitionFacts> read_partition(const Json& json, const std::string& path) {
  PartitionFacts out;
  JsonReader r(json, path);
  r.allow_unknown();
  r.get_or("name", out.name, {});
  r.get_or("label", out.label, {});
  r.get_or("fs_type", out.fs_type, {});
  r.get_or("fs_label", out.fs_label, {});
  r.get_or("start_bytes", out.start_bytes, uint64_t{0});
  r.get_or("size_bytes", out.size_bytes, uint64_t{0});
  TRY_(r.finish());
  return out;
}

Json list_json(const std::vector<PartitionFacts>& partitions) {
  Json out = Json::array();
  for (const auto& p : partitions)
    out.push_back({{"name", p.name},
                   {"label", p.label},
                   {"fs_type", p.fs_type},
                   {"fs_label", p.fs_label},
                   {"start_bytes", p.start_bytes},
                   {"size_bytes", p.size_bytes}});
  return out;
}

}  // namespace

bool is_local_transport(const std::string& transport) {
  static const std::set<std::string> kLocal = {"nvme", "sata", "sas", "ata", "scsi", "virtio"};
  return kLocal.count(transport) > 0;
}

Json to_json(const DiskFacts& d) {
  Json out = {{"serial", d.serial},
              {"wwid", d.wwid},
              {"model", d.model},
              {"size_bytes", d.size_bytes},
              {"transport", d.transport},
              {"name", d.name},
              {"pcie_address", d.pcie_address},
              {"bus_speed", d.bus_speed},
              {"logical_block", d.logical_block},
              {"content", d.content},
              {"content_hash", d.content_hash},
              {"blank", d.blank},
              {"partitions", list_json(d.partitions)},
              {"signatures", d.signatures},
              {"mounted", d.mounted},
              {"is_os_ancestor", d.is_os_ancestor},
              {"muster_cluster", d.muster_cluster},
              {"muster_node", d.muster_node},
              {"muster_authority", d.muster_authority}};
  if (d.read_only) out["read_only"] = true;
  return out;
}

static Json boot_json(const BootFacts& b) {
  Json slots = Json::object();
  for (const auto& [name, s] : b.slots)
    slots[name] = {{"image", s.image},
                   {"digest", s.digest},
                   {"stage", s.stage},
                   {"address", s.address},
                   {"trial", s.trial}};
  return {{"running", b.running}, {"standing", b.standing}, {"no_trial", b.no_trial}, {"slots", slots}};
}

Json to_json(const HardwareFacts& f) {
  Json gpus = Json::array(), nics = Json::array(), disks = Json::array();
  for (const auto& g : f.gpus) {
    gpus.push_back({{"model", g.model},
                    {"uuid", g.uuid},
                    {"serial", g.serial},
                    {"pci", g.pci},
                    {"pci_path", g.pci_path},
                    {"memory_bytes", g.memory_bytes},
                    {"bus_speed", g.bus_speed}});
    if (g.simulated) gpus.back()["simulated"] = true;
  }
  for (const auto& n : f.nics) {
    nics.push_back({{"name", n.name},
                    {"mac", n.mac},
                    {"speed_mbps", n.speed_mbps},
                    {"driver", n.driver},
                    {"pci", n.pci},
                    {"pci_path", n.pci_path},
                    {"link_up", n.link_up}});
    if (!n.address_kind.empty()) nics.back()["address_kind"] = n.address_kind;
  }
  for (const auto& d : f.disks) disks.push_back(to_json(d));
  Json out = {{"system",
               {{"vendor", f.system.vendor},
                {"product", f.system.product},
                {"serial", f.system.serial},
                {"uuid", f.system.uuid}}},
              {"cpus", {{"count", f.cpus.count}, {"sockets", f.cpus.sockets}, {"model", f.cpus.model}}},
              {"memory_bytes", f.memory_bytes},
              {"gpus", gpus},
              {"nics", nics},
              {"disks", disks},
              {"firmware", f.firmware},
              {"uefi", f.uefi},
              {"kernel", f.kernel},
              {"os", f.os}};
  if (f.memory_usable_bytes != 0) out["memory_usable_bytes"] = f.memory_usable_bytes;
  if (!f.storage_metadata.empty()) out["storage_metadata"] = f.storage_metadata;
  if (!f.by_label.empty()) out["by_label"] = f.by_label;
  if (!f.boot.running.empty()) out["boot"] = boot_json(f.boot);
  if (!f.properties.empty()) out["properties"] = f.properties;
  if (!f.machine_id.empty()) out["machine_id"] = f.machine_id;
  if (!f.share.words.empty())
    out["share"] = {{"cores", f.share.cores},
                    {"of_cores", f.share.of_cores},
                    {"cores_by", f.share.cores_by},
                    {"words", f.share.words}};
  return out;
}

Result<DiskFacts> disk_facts_from_json(const Json& json, const std::string& path) {
  DiskFacts out;
  JsonReader r(json, path);
  r.allow_unknown();
  r.get_or("serial", out.serial, {});
  r.get_or("wwid", out.wwid, {});
  r.get_or("model", out.model, {});
  r.get_or("size_bytes", out.size_bytes, uint64_t{0});
  r.get_or("transport", out.transport, {});
  r.get_or("name", out.name, {});
  r.get_or("pcie_address", out.pcie_address, {});
  r.get_or("bus_speed", out.bus_speed, {});
  r.get_or("logical_block", out.logical_block, uint32_t{0});
  r.get_or("content", out.content, {});
  r.get_or("content_hash", out.content_hash, {});
  r.get_or("blank", out.blank, false);
  r.get_or("signatures", out.signatures, {});
  r.get_or("mounted", out.mounted, false);
  r.get_or("read_only", out.read_only, false);
  r.get_or("is_os_ancestor", out.is_os_ancestor, false);
  r.get_or("muster_cluster", out.muster_cluster, {});
  r.get_or("muster_node", out.muster_node, {});
  r.get_or("muster_authority", out.muster_authority, {});
  TRY_(read_list(r, "partitions", path, out.partitions, read_partition));
  TRY_(r.finish());
  return out;
}

namespace {

Result<BootFacts> read_boot(const Json& json) {
  BootFacts out;
  if (json.is_null()) return out;
  JsonReader r(json, "facts.boot");
  r.allow_unknown();
  r.get_or("running", out.running, {});
  r.get_or("standing", out.standing, {});
  r.get_or("no_trial", out.no_trial, {});
  const Json slots = r.raw("slots");
  TRY_(r.finish());
  for (const char* name : {"a", "b"}) {
    const auto found = slots.is_object() ? slots.find(name) : slots.end();
    if (!slots.is_object() || found == slots.end()) continue;
    JsonReader s(*found, std::string("facts.boot.slots.") + name);
    s.allow_unknown();
    SlotFacts& slot = out.slots[name];
    s.get_or("image", slot.image, {});
    s.get_or("digest", slot.digest, {});
    s.get_or("stage", slot.stage, {});
    s.get_or("address", slot.address, {});
    s.get_or("trial", slot.trial, false);
    TRY_(s.finish());
  }
  return out;
}

Result<ShareFacts> read_share(const Json& json) {
  ShareFacts out;
  if (json.is_null()) return out;
  JsonReader r(json, "facts.share");
  r.allow_unknown();
  r.get_or("cores", out.cores, 0.0);
  r.get_or("of_cores", out.of_cores, 0);
  r.get_or("cores_by", out.cores_by, {});
  r.get_or("words", out.words, {});
  TRY_(r.finish());
  return out;
}

// Facts get into plans (a disk's model, its WWID), and the controller inserts secrets where an order's
// parameters contain secret:NAME. A node that reports such a value for its hardware tries to obtain a secret
// that is not its own.
bool names_a_secret(const Json& json) {
  if (json.is_string()) return json.get_ref<const std::string&>().rfind("secret:", 0) == 0;
  if (json.is_structured())
    for (const Json& value : json)
      if (names_a_secret(value)) return true;
  return false;
}

}  // namespace

Result<HardwareFacts> hardware_facts_from_json(const Json& json) {
  if (names_a_secret(json))
    return fail(Code::denied, "facts: a value begins with `secret:`, which no hardware reports");
  HardwareFacts out;
  JsonReader r(json, "facts");
  r.allow_unknown();
  TRY(out.system, read_system(r.raw("system"), "facts.system"));
  TRY(out.cpus, read_cpus(r.raw("cpus"), "facts.cpus"));
  r.get_or("memory_bytes", out.memory_bytes, uint64_t{0});
  r.get_or("memory_usable_bytes", out.memory_usable_bytes, uint64_t{0});
  TRY_(read_list(r, "gpus", "facts", out.gpus, read_gpu));
  TRY_(read_list(r, "nics", "facts", out.nics, read_nic));
  TRY_(read_list(r, "disks", "facts", out.disks, disk_facts_from_json));
  r.get_or("firmware", out.firmware, {});
  r.get_or("uefi", out.uefi, false);
  r.get_or("kernel", out.kernel, {});
  r.get_or("os", out.os, {});
  r.get_or("storage_metadata", out.storage_metadata, {});
  r.get_or("by_label", out.by_label, {});
  TRY(out.boot, read_boot(r.raw("boot")));
  r.get_or("properties", out.properties, {});
  r.get_or("machine_id", out.machine_id, {});
  TRY(out.share, read_share(r.raw("share")));
  TRY_(r.finish());
  if (out.properties.size() > kMostProperties)
    return fail(Code::invalid, fmt::format("facts.properties: more than {} entries", kMostProperties));
  return out;
}

std::string share_of(const HardwareFacts& facts) {
  return fmt::format("{}", fmt::join(facts.share.words, ", "));
}

bool has_simulated_gpus(const HardwareFacts& facts) {
  return !facts.gpus.empty() &&
         std::all_of(facts.gpus.begin(), facts.gpus.end(), [](const GpuFacts& g) { return g.simulated; });
}

}  // namespace muster
