#include "agent/steps/system/smbios.h"

#include <algorithm>

#include "agent/steps/step_modules.h"
#include "host/pci_parts.h"

namespace muster {
namespace {

constexpr const char* kTable = "/sys/firmware/dmi/tables/DMI";
constexpr const char* kDmi = "/sys/class/dmi/id/";
constexpr unsigned char kOemStrings = 11, kEndOfTable = 127;
constexpr size_t kHeader = 4;  // type, length, handle

// True if every processor has the flag: "flags		: fpu ... hypervisor ...".
bool has_hypervisor(const Files& files) {
  const auto text = files.read("/proc/cpuinfo");
  if (!text.ok()) return false;
  bool seen = false;
  for (const auto& line : split_lines(*text)) {
    if (!line.starts_with("flags")) continue;
    seen = true;
    if ((line + " ").find(" hypervisor ") == std::string::npos) return false;
  }
  return seen;
}

bool has_nvidia_gpu(const Files& files) {
  const auto gpus = gpu_parts(files);
  return std::any_of(gpus.begin(), gpus.end(), [](const PciPart& gpu) { return gpu.why != Why::no_nvidia; });
}

}  // namespace

std::vector<std::string> oem_strings(const Files& files) {
  std::vector<std::string> out;
  const auto table = files.read(kTable);
  if (!table.ok()) return out;
  const std::string& bytes = *table;
  // A structure has a formatted part, then its strings, each ending with a zero byte, and one more zero byte.
  for (size_t at = 0; at + kHeader <= bytes.size();) {
    const auto type = static_cast<unsigned char>(bytes[at]),
               length = static_cast<unsigned char>(bytes[at + 1]);
    if (length < kHeader || type == kEndOfTable) break;
    size_t text = at + length;
    std::vector<std::string> strings;
    while (text < bytes.size() && bytes[text] != '\0') {
      const size_t end = bytes.find('\0', text);
      if (end == std::string::npos) return out;
      strings.push_back(bytes.substr(text, end - text));
      text = end + 1;
    }
    if (type == kOemStrings) out.insert(out.end(), strings.begin(), strings.end());
    at = strings.empty() ? text + 2 : text + 1;
  }
  return out;
}

std::optional<StandinGpus> standin_gpus(const Files& files) {
  const std::string dmi = kDmi;
  if (!has_hypervisor(files) || has_nvidia_gpu(files)) return std::nullopt;
  if (files.read_line(dmi + "sys_vendor") != kLabVendor ||
      files.read_line(dmi + "product_name") != kLabProduct)
    return std::nullopt;
  std::optional<StandinGpus> found;
  for (const auto& text : oem_strings(files)) {
    if (!text.starts_with("muster-lab-gpus/")) continue;
    if (found) return std::nullopt;
    found = standin_from_text(text);
    if (!found) return std::nullopt;
  }
  return found;
}

}  // namespace muster
