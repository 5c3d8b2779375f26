#include "base/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/record.h"
#include "base/secrets.h"

namespace muster {
namespace {

constexpr size_t kMostProperties = 1000;

}  // namespace

MUSTER_RECORD(SystemFacts, lenient, opt(vendor), opt(product), opt(serial), opt(uuid))
MUSTER_RECORD(CpuFacts, lenient, opt(count), opt(sockets), opt(model))
MUSTER_RECORD(GpuFacts, lenient, opt(model), opt(uuid), opt(serial), opt(pci), opt(pci_path),
              opt(memory_bytes), opt(bus_speed), sparse(simulated), sparse(display))
MUSTER_RECORD(NicFacts, lenient, opt(name), opt(mac), opt(speed_mbps), opt(driver), opt(pci), opt(pci_path),
              opt(link_up), sparse(address_kind))
MUSTER_RECORD(PartitionFacts, lenient, opt(name), opt(label), opt(fs_type), opt(fs_label), opt(start_bytes),
              opt(size_bytes))
MUSTER_RECORD(DiskFacts, lenient, opt(serial), opt(wwid), opt(model), opt(size_bytes), opt(transport),
              opt(name), opt(pcie_address), opt(bus_speed), opt(logical_block), opt(content),
              opt(content_hash), opt(blank), opt(partitions), opt(signatures), opt(mounted),
              sparse(read_only), sparse(zoned), sparse(multipath), opt(is_os_ancestor), opt(muster_cluster),
              opt(muster_node), opt(muster_authority))
MUSTER_RECORD(LeftOut, lenient, opt(part), opt(name), opt(reason))
MUSTER_RECORD(SlotFacts, lenient, opt(image), opt(digest), opt(stage), opt(address), opt(trial),
              sparse(fault))
MUSTER_RECORD(BootFacts, lenient, opt(running), opt(standing), opt(no_trial), opt(slots), sparse(room))
MUSTER_RECORD(ShareFacts, lenient, opt(cores), opt(of_cores), opt(cores_by), opt(words))
MUSTER_RECORD(LibraryFacts, lenient, opt(name), opt(version), opt(path))
MUSTER_RECORD(HardwareFacts, lenient, opt(system), opt(cpus), opt(memory_bytes), sparse(memory_usable_bytes),
              opt(gpus), opt(nics), opt(disks), opt(firmware), opt(uefi), opt(kernel), opt(os), sparse(os_id),
              sparse(storage_metadata), sparse(by_label), sparse(boot), sparse(properties),
              sparse(machine_id), sparse(share), sparse(left_out), sparse(gpu_libraries))

bool is_local_transport(const std::string& transport) {
  static const std::set<std::string> kLocal = {"nvme", "sata", "sas", "ata", "scsi", "virtio"};
  return kLocal.count(transport) > 0;
}

std::string why_not_past_map(const DiskFacts& disk) {
  if (disk.multipath.empty()) return "";
  return fmt::format(
      "a path of the multipath map {0}, and is not written past that map; to release the drive add a "
      "`blacklist` entry to /etc/multipath.conf, then `multipathd reconfigure`, then `multipath -f {0}` "
      "if the map is still listed (a map in use: rebuild the initramfs and restart instead)",
      disk.multipath);
}

Json to_json(const DiskFacts& disk) { return record_json(disk); }
Json to_json(const HardwareFacts& facts) { return record_json(facts); }

Result<DiskFacts> disk_facts_from_json(const Json& json, const std::string& path) {
  return read_record<DiskFacts>(json, path);
}

Result<HardwareFacts> hardware_facts_from_json(const Json& json) {
  // Facts get into plans (a disk's model, its WWID), and the controller inserts secrets where an order's
  // parameters contain secret:NAME. A node that reports such a value for its hardware tries to obtain a
  // secret that is not its own.
  if (refers_to_secret(json))
    return fail(Code::denied, "facts: a value begins with `secret:`, which no hardware reports");
  TRY(auto out, read_record<HardwareFacts>(json, "facts"));
  std::erase_if(out.boot.slots, [](const auto& slot) { return slot.first != "a" && slot.first != "b"; });
  if (out.properties.size() > kMostProperties)
    return fail(Code::invalid, fmt::format("facts.properties: more than {} entries", kMostProperties));
  return out;
}

std::string share_of(const HardwareFacts& facts) {
  return fmt::format("{}", fmt::join(facts.share.words, ", "));
}

size_t compute_gpus(const HardwareFacts& facts) {
  return static_cast<size_t>(
      std::count_if(facts.gpus.begin(), facts.gpus.end(), [](const GpuFacts& g) { return !g.display; }));
}

bool has_simulated_gpus(const HardwareFacts& facts) {
  return !facts.gpus.empty() &&
         std::all_of(facts.gpus.begin(), facts.gpus.end(), [](const GpuFacts& g) { return g.simulated; });
}

}  // namespace muster
