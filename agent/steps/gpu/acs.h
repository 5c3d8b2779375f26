// ACS control registers of PCIe bridges, read and written through the kernel's `config` files.
//
// Used by the step module and, at every boot and every few minutes, by `muster-agent acs`, because the kernel
// restores its own policy after a bus reset or an error recovery. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "sys/os.h"

namespace muster::steps {

// Which bits of PCIe Access Control Services block peer-to-peer traffic, on which bridges.
//
// Turns a PCI tree into a list of bridges, with the bits to clear and to set on each. Bits of the ACS control
// register: 0 source validation (SV), 1 translation blocking (TB), 2 request redirect (RR), 3 completion
// redirect (CR), 4 upstream forwarding (UF), 5 egress control (EC), 6 direct translated (DT). The rules (bits
// in the order DT EC UF CR RR TB SV, x = unchanged):
//   classic      GPUs with NICs, NVMe drives or other GPUs below the same root port: xx000x0 on every bridge
//                between them and that root port, the root port included
//   DMA-direct   the DMA function of a ConnectX-8 and a GPU below the same Grace root port: xx110x1 on the
//                switch port towards the DMA function, xx101x1 on the one towards the GPU, xx111x0 on the
//                root port. Clearing all of these bits would be wrong there.
//   alone        no other such device below the root port: not changed, because traffic goes through the
//                root complex anyway
// Thread safety: plain value types, stateless functions.

struct PciNode {
  std::string address;      // "0000:2b:00.0"
  std::string parent = {};  // address of the bridge above; "" at a root port or a device of the root complex
  uint32_t device_class = 0;  // 0x030200
  uint16_t vendor = 0, device = 0;
};

struct AcsSetting {
  std::string bridge;
  uint16_t clear = 0, set = 0;
  std::string why = {};  // "classic" | "DMA-direct: towards the GPU" | "named in the spec"
};
inline bool operator==(const AcsSetting& a, const AcsSetting& b) {
  return a.bridge == b.bridge && a.clear == b.clear && a.set == b.set;
}

constexpr uint16_t kAcsRedirects = 0x1d;  // SV, RR, CR, UF: what the kernel switches on

// One entry per bridge, sorted by address.
std::vector<AcsSetting> choose_acs(const std::vector<PciNode>& tree);

std::vector<PciNode> read_pci_tree(const Files& files);

inline constexpr const char* kAcsFile = "/etc/muster/acs.json";  // [{"bridge", "clear", "set", "why"}...]

// nullopt: the bridge has no ACS capability. not_found: no such device.
Result<std::optional<uint16_t>> read_acs(const Files& files, const std::string& bridge);
// Sets and clears the bits and reads them back; denied if the bridge keeps a different value. False: the
// bridge has no ACS capability, which is not an error.
Result<bool> write_acs(const Files& files, const AcsSetting& setting);

std::string acs_settings_text(const std::vector<AcsSetting>& settings);  // the content of kAcsFile
Result<std::vector<AcsSetting>> parse_acs_settings(const std::string& text);

// Applies kAcsFile, for `muster-agent acs`. Returns how many registers it changed.
Result<int> reapply_acs(const Files& files);

}  // namespace muster::steps
