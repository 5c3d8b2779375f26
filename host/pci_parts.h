// The devices on PCI Express that count as parts: GPUs, accelerators, NICs, storage controllers, with the
// reason for each that does not. The only place that decides what is a GPU: facts, the choice of ports near
// GPUs, PCIe links, properties and ACS read this.
//
// Reads /sys and /proc only; a device's vital product data (host/vital_data.h; for functions of
// InfiniBand adapters) needs root. Thread safety: plain value types, functions without a state of their own.
#pragma once

#include <string>
#include <vector>

#include "base/left_out.h"
#include "sys/os.h"

namespace muster {

enum class PciKind { other, gpu, accelerator, nic, nvme, storage };

struct PciPart {
  std::string address = {};  // "0000:17:00.0"
  std::string folder = {};   // /sys/bus/pci/devices/0000:17:00.0
  std::string vendor = {};   // "0x10de"
  PciKind kind = PciKind::other;
  bool display = false;  // a display card (class 0x0300) on which no compute driver runs
  Why why = Why::real;
};

// As in sysfs: "0x10de", "0x030200". A display card counts as a GPU only if it is NVIDIA's: the display of a
// BMC or of a processor is none. Some vendors' GPUs have a class of their own (AMD: 0x0380, 0x1200).
PciKind pci_kind(const std::string& vendor, const std::string& pci_class);

// All devices of a known kind, by address. A display card without a compute driver counts as a GPU, with
// `display` set, unless there are other GPUs: then it is there for a screen.
std::vector<PciPart> pci_parts(const Files& files);
// The GPUs among them; those that count are NVIDIA's.
std::vector<PciPart> gpu_parts(const Files& files);

// Why a function (a folder, or a link to one) is no part by itself: a virtual function, a subfunction, one
// that only manages NVSwitches, or one given to virtual machines.
Why why_of_function(const Files& files, const std::string& device);
// True for drivers that pass devices through to guests: VFIO's own, vendors' variants of it (mlx5_vfio_pci,
// nvgrace-gpu-vfio-pci), and Xen's.
bool passes_through(const std::string& driver);

}  // namespace muster
