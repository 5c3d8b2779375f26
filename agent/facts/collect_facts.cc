#include "agent/facts/collect_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/disk/disk.h"
#include "agent/facts/host_properties.h"
#include "agent/facts/node_share.h"
#include "agent/image/efi_variables.h"
#include "agent/image/esp_files.h"
#include "agent/image/esp_room.h"
#include "agent/image/own_slots.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/system/smbios.h"
#include "agent/storage/metadata.h"
#include "base/lower.h"
#include "base/rail_choice.h"
#include "base/split.h"
#include "host/by_label.h"
#include "host/net_ports.h"
#include "host/pci_parts.h"
#include "host/processors.h"
#include "host/rdma_devices.h"
#include "host/real_drives.h"
#include "sys/library_places.h"
#include "sys/os_release.h"

namespace muster {
namespace {

SlotFacts facts_of(const SlotNote& note) {
  return {note.image, note.digest, note.stage, note.address, note.trial};
}

// Sets the default slot, the space for the slot that does not run, and what is wrong with its files. Returns
// an error if the ESP does not allow a trial.
Status read_esp(const Files& files, const OwnSlots& own, BootFacts& out) {
  TRY(const auto esp, open_own_esp(files, own, kEspPlace, Mounted::Way::read));
  const auto startable = [&](const std::string& slot) {
    return slot_is_startable(esp->files(), slot, own.slot(slot).guid, own.note(slot), Proof::sizes);
  };
  out.standing = standing_slot(esp->files());
  out.room = esp_room(esp->files(), own.other(), space_of(esp->files().root())).repaired();
  if (const auto other = out.slots.find(own.other());
      other != out.slots.end() && other->second.stage == kSlotWritten)
    if (const Status starts = startable(other->first); !starts.ok())
      other->second.fault = starts.error().message;
  if (out.standing.empty())
    return fail(Code::conflict, "the loader's configuration was not written by muster");
  // A commit was interrupted between its two writes: neither slot can be written or tried until they agree.
  if (own.marker.current != out.standing)
    return fail(
        Code::conflict,
        fmt::format("loader.conf starts slot {}, but the disk's marker records {}: run `muster reimage "
                    "--through-ram` to resolve this",
                    out.standing, own.marker.current.empty() ? "none" : "slot " + own.marker.current));
  return startable(out.standing);
}

int64_t number(const std::string& text, int base = 10) {
  const size_t skip = base == 16 && text.starts_with("0x") ? 2 : 0;
  int64_t value = 0;
  std::from_chars(text.data() + skip, text.data() + text.size(), value, base);
  return value;
}

SystemFacts system_facts(const Files& files) {
  const std::string dmi = "/sys/class/dmi/id/";
  return {files.read_line(dmi + "sys_vendor"), files.read_line(dmi + "product_name"),
          files.read_line(dmi + "product_serial"), lower(files.read_line(dmi + "product_uuid"))};
}

}  // namespace

BootFacts slot_facts(const Files& files) {
  BootFacts out;
  const auto own = own_slots(files);
  if (!own.ok()) return out;
  out.running = own->running;
  for (const char* name : {"a", "b"})
    if (const SlotNote* note = own->note(name)) out.slots[name] = facts_of(*note);
  out.slots[own->running] = facts_of(running_note(files, *own));
  const Status esp = read_esp(files, *own, out);
  for (const Status& can : {efi::takes_variables(files), efi::takes_one_shot(files),
                            efi::came_from(files, own->esp().guid), state_is_writable(files), esp})
    if (!can.ok() && out.no_trial.empty()) out.no_trial = can.error().message;
  return out;
}

CpuFacts cpu_facts(const Files& files) {
  CpuFacts out;
  const auto text = files.read("/proc/cpuinfo");
  if (!text.ok()) return out;
  std::set<std::string> sockets;
  for (const auto& line : split_lines(*text)) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (key == "processor") ++out.count;
    if (key == "physical id") sockets.insert(value);
    if (key == "model name" && out.model.empty()) out.model = value;
  }
  if (sockets.empty()) sockets = processor_packages(files);
  out.sockets = std::max<int>(static_cast<int>(sockets.size()), out.count ? 1 : 0);
  return out;
}

uint64_t usable_memory(const Files& files) {
  const auto text = files.read("/proc/meminfo");
  if (text.ok())
    for (const auto& line : split_lines(*text))
      if (line.starts_with("MemTotal:"))
        return static_cast<uint64_t>(number(line.substr(line.find_first_of("0123456789")))) * 1024;
  return 0;
}

// Returns the size of the memory that the kernel manages. Firmware and kernel reserve a few percent of the
// installed memory, so the sum of the memory blocks is preferred where the kernel exposes them: it includes
// what the firmware reserves.
uint64_t memory_bytes(const Files& files) {
  const std::string folder = "/sys/devices/system/memory";
  const auto block = static_cast<uint64_t>(number(files.read_line(folder + "/block_size_bytes"), 16));
  uint64_t blocks = 0;
  for (const auto& name : files.list(folder))
    if (name.starts_with("memory") && files.read_line(folder + "/" + name + "/state", "online") == "online")
      ++blocks;
  return block && blocks ? block * blocks : usable_memory(files);
}

std::vector<NicFacts> nic_facts(const Files& files) {
  std::vector<NicFacts> out;
  for (const NetPort& port : net_ports(files))
    out.push_back({port.name, port.mac, port.speed_mbps, port.driver, port.pci, port.link, port.path});
  std::sort(out.begin(), out.end(), [](const NicFacts& a, const NicFacts& b) {
    return std::tie(a.pci, a.name) < std::tie(b.pci, b.name);
  });
  return out;
}

// GPUs are found on PCI alone, so that they count whether or not their driver is loaded; the driver's own
// files add names. A lab's stand-ins count only if there is no real GPU.
std::vector<GpuFacts> gpu_facts(const Files& files) {
  std::vector<GpuFacts> out;
  for (const PciPart& part : gpu_parts(files)) {
    if (part.why != Why::real) continue;
    GpuFacts gpu;
    gpu.pci = part.address;
    gpu.pci_path = pci_path(files.read_link(part.folder).value_or(""));
    gpu.model = "10de:" + files.read_line(part.folder + "/device").substr(2);
    gpu.display = part.display;
    const auto text = files.read("/proc/driver/nvidia/gpus/" + part.address + "/information");
    if (text.ok()) {
      for (const auto& line : split_lines(*text)) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        const auto begin = line.find_first_not_of(" \t", colon + 1);
        const std::string value = begin == std::string::npos ? "" : line.substr(begin);
        if (line.starts_with("Model:")) gpu.model = value;
        if (line.starts_with("GPU UUID:") && value.find('?') == std::string::npos) gpu.uuid = value;
      }
    }
    out.push_back(std::move(gpu));
  }
  if (const auto standins = standin_gpus(files))
    return standin_facts(*standins, system_facts(files).uuid.substr(0, 8));
  return out;
}

std::vector<LeftOut> left_out_facts(const Files& files) {
  constexpr int kMostOfEach = 64;  // an adapter may have hundreds of virtual functions
  std::vector<LeftOut> out;
  std::map<std::string, int> counts;
  const auto add = [&](const char* part, const std::string& name, Why why) {
    if (why != Why::real && ++counts[part] <= kMostOfEach) out.push_back(left_out(part, name, why));
  };
  for (const NetPort& port : net_devices(files)) add("port", port.name, port.why);
  for (const RdmaPart& port : rdma_devices(files)) add("RDMA port", port.label(), port.why);
  for (const PciPart& gpu : gpu_parts(files)) add("GPU", gpu.address, gpu.why);
  for (const DrivePart& drive : drive_devices(files)) add("drive", drive.name, drive.why);
  return out;
}

Result<HardwareFacts> collect_facts(const Files& files) {
  HardwareFacts facts;
  facts.system = system_facts(files);
  facts.cpus = cpu_facts(files);
  facts.memory_bytes = memory_bytes(files);
  facts.memory_usable_bytes = usable_memory(files);
  facts.gpus = gpu_facts(files);
  facts.nics = nic_facts(files);
  facts.disks = scan_disks(files);
  facts.left_out = left_out_facts(files);
  const std::string dmi = "/sys/class/dmi/id/";
  facts.firmware = files.read_line(dmi + "bios_vendor");
  if (const auto version = files.read_line(dmi + "bios_version"); !version.empty())
    facts.firmware += (facts.firmware.empty() ? "" : " ") + version;
  facts.uefi = files.exists("/sys/firmware/efi");
  facts.kernel = files.read_line("/proc/sys/kernel/osrelease");
  const OsRelease os = os_release(files);
  facts.os = os.pretty_name;
  facts.os_id = os.id;
  facts.storage_metadata = storage_metadata(files);
  facts.by_label = devices_by_label(files);
  facts.boot = slot_facts(files);
  facts.properties = host_properties(files);
  if (efi::takes_one_shot(files).ok()) {
    const std::string set = efi::overrides(files);
    facts.properties["overrides of loader.conf"] = set.empty() ? "none" : set;
  }
  if (compute_gpus(facts) > 0 && !has_simulated_gpus(facts))
    facts.gpu_libraries = gpu_libraries(files, own_library_homes(files));
  facts.machine_id = hidden_machine_id(files);
  const NodeShare share = node_share(files);
  if (const auto words = share_words(share); !words.empty())
    facts.share = {share.cores, share.of_cores, share.cores_by, words};
  return facts;
}

}  // namespace muster
