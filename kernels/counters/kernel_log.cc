// Finds lines about broken hardware in the kernel log, and classifies them by metric and part; those about
// drives and network adapters: log_lines.h.
//
// Reference:   the driver's own messages. Which Xids indicate broken hardware: hardware/xids.yaml; a
//              program that reads past its array causes an Xid too (13, 31, 69), which is not a fault of the
//              GPU. Message formats: NVIDIA's open-gpu-kernel-modules, kernel_rc.c for Xids
//              ("(PCI:0000:3b:00 GPU-I:05 GPU-CI:01)" in MIG mode), error_nvswitch.c for SXids, osinit.c and
//              nv.c for a GPU that is lost before an Xid is logged.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <regex>
#include <utility>

#include "base/split.h"
#include "kernels/common/kernels.h"
#include "kernels/counters/counters.h"
#include "kernels/counters/gpu_counters.h"
#include "kernels/counters/log_lines.h"
#include "kernels/counters/xids.h"

namespace muster::kernels {
namespace {

std::string word_after(const std::string& text, const char* key, const char* ends) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  const size_t begin = at + std::strlen(key), end = text.find_first_of(ends, begin);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

// Users control parts of the log: a program that crashes is logged with its name (15 characters, at the
// beginning) and the names of its libraries (of any length, at the end). So a line is recognized by its
// beginning, and what is compared is longer than a program's name can be.
const std::string kAddress = R"(([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(\.[0-7])?)";
const std::regex kGpu("^NVRM: Xid \\((?:PCI:)?" + kAddress +
                      R"((?: GPU-I:\d{1,4})?(?: GPU-CI:\d{1,4})?\): (\d{1,6})\b)");
// One SXid event has several lines: text with the severity as a word, then as a number, then data.
const std::regex kSwitch(R"(^nvidia-nvswitch\d+: SXid \((?:PCI:)?)" + kAddress +
                         R"(\): (\d{1,6}), (Fatal|Non-fatal|Severity \d+|Data )?)");
// Messages without an Xid: the driver finds no GPU at the address, or cannot initialise it.
const std::regex kGone(
    "^NVRM: GPU (?:at )?(?:PCI:)?" + kAddress +
    "(?:: GPU)?:? (?:has fallen off the bus|RmInitAdapter failed!|rm_init_adapter failed)");
const std::regex kGoneSomewhere("^NVRM: (?:RmInitAdapter failed!|rm_init_adapter failed for device )");
// The same in up to three lines, of one record or of several: "NVRM: The NVIDIA GPU 0000:3b:00.0", "NVRM:
// (PCI ID: 10de:2330) installed in this system has", "NVRM: fallen off the bus and is not responding ..."
const std::regex kAnnounced("^NVRM: The NVIDIA GPU " + kAddress);
const std::regex kAnnouncedGone("^ *NVRM: (?:system has )?fallen off the bus and is not responding");
const std::regex kMachineCheck(R"(^(?:mce: |\{\d+\})?\[Hardware Error\]: )");
// Drivers since 575 pad the word to eight characters.
const std::regex kSeverity(" (Fatal|Nonfatal) {1,8}XC");

// Returns true if the line's severity is Fatal; nothing if the line has no severity. The last match counts,
// since the name of a program, which a user chooses, comes before it.
std::optional<bool> says_fatal(const std::string& text) {
  std::optional<bool> out;
  for (std::sregex_iterator at(text.begin(), text.end(), kSeverity), end; at != end; ++at)
    out = (*at)[1] == "Fatal";
  return out;
}

// The class of "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", by the new
// action. 1 to 4 are the GPU's. 5 was a reset of the bus in some headers of NVML before it became the IMEX
// domain's, a service over several nodes: so its name counts.
std::string recovery_class(const std::string& text) {
  const size_t at = text.rfind("GPU recovery action changed from "), to = text.rfind(" to 0x");
  if (at == std::string::npos || to == std::string::npos || to < at) return "unknown";
  const unsigned long action = std::strtoul(text.c_str() + to + std::strlen(" to "), nullptr, 16);
  if (action == 0) return "event";
  if (action <= kLastOfGpu) return "";
  return text.find("IMEX", to) == std::string::npos ? "unknown" : "fabric domain";
}

// Returns the class of a line with this Xid; "" for a hardware fault.
std::string noted_as(int xid, const std::string& text) {
  const std::string group = xid_group(xid);
  if (group == "hardware") return "";
  if (group == "severity") {
    const auto fatal = says_fatal(text);
    return !fatal ? "unknown" : *fatal ? "" : "event";
  }
  if (group == "recovery") return recovery_class(text);
  return group;
}

class Sorter {
 public:
  Sorter(const Files& files, KernelLog& out) : files_(files), out_(out), nics_(files) {}

  void take(const std::string& text) {
    std::smatch found;
    const auto is = [&](const std::regex& line) { return std::regex_search(text, found, line); };
    if (is(kGpu)) return take_xid(text, std::atoi(found[3].str().c_str()), gpu(text, found[1]));
    if (is(kSwitch))
      return take_sxid(text, std::atoi(found[3].str().c_str()), found[4],
                       "NVSwitch " + found[1].str() + found[2].str());
    if (is(kGone)) return gone(gpu(text, found[1]), text);
    if (is(kGoneSomewhere)) return gone("", text);
    if (is(kAnnounced)) {
      announced_ = gpu(text, found[1]);
      if (has(text, "fallen off the bus")) gone(std::exchange(announced_, ""), text);
      return;
    }
    if (is(kAnnouncedGone)) return gone(std::exchange(announced_, ""), text);
    if (is(kMachineCheck)) {
      const std::string cpu = word_after(text, "CPU ", ": ");
      return fault("machine_checks",
                   cpu.empty() || !has(text, "Machine Check") ? "processor or memory" : "cpu " + cpu, text);
    }
    if (const std::string drive = drive_at_fault(files_, text); !drive.empty())
      return fault("drive_errors", "drive " + drive, text);
    const NicLine nic = nics_.read(text);
    if (nic.fault) return fault("nic_errors", "NIC " + nic.address, text);
    if (!nic.address.empty()) out_.noted.push_back({"event", "NIC " + nic.address, text});
  }

  // A lost GPU is logged many times, in several lines: one fault, or none if an Xid already reports it.
  void finish() {
    const auto is_counted = [this](const std::string& part) {
      return std::any_of(out_.lines.begin(), out_.lines.end(), [&](const KernelLog::Line& line) {
        return line.metric == kXids && (line.part == part || part == kSomeGpu);
      });
    };
    std::stable_partition(gone_.begin(), gone_.end(),
                          [](const KernelLog::Line& line) { return line.part != kSomeGpu; });
    for (const auto& line : gone_)
      if (!is_counted(line.part)) out_.lines.push_back(line);
  }

 private:
  static constexpr const char* kXids = "gpu_xids";
  static constexpr const char* kSomeGpu = "a GPU";  // older drivers do not name the lost GPU

  static std::string gpu(const std::string& text, const std::string& address) {
    return (has(text, "SIMULATED GPU") ? "SIMULATED GPU " : "GPU ") + address;
  }
  void fault(const char* metric, const std::string& part, const std::string& text) {
    out_.lines.push_back({metric, part, text});
  }
  void gone(const std::string& part, const std::string& text) {
    gone_.push_back({kXids, part.empty() ? kSomeGpu : part, text});
  }
  void take_xid(const std::string& text, int xid, const std::string& part) {
    const std::string noted = noted_as(xid, text);
    if (noted.empty()) return fault(kXids, part, text);
    out_.noted.push_back({noted, part, text});
  }
  void take_sxid(const std::string& text, int sxid, const std::string& word, const std::string& part) {
    if (word == "Fatal" || word == "Severity 1") return fault(kXids, part, text);
    if (word == "Non-fatal") out_.noted.push_back({sxid_group(sxid), part, text});
    // Any other line gives details of an event that an earlier line reported.
  }

  const Files& files_;
  KernelLog& out_;
  std::string announced_ = {};  // the GPU named by a message that continues in a later line
  std::vector<KernelLog::Line> gone_ = {};
  NicLines nics_;
};

}  // namespace

KernelLog read_kernel_log(const Files& files, uint64_t since) {
  KernelLog out;
  // Each read gives one record, "priority,sequence,microseconds,flags;text"; EAGAIN: no more records. EPIPE:
  // the record was overwritten meanwhile.
  const int fd = ::open(files.real("/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  out.denied = fd < 0 && (errno == EACCES || errno == EPERM) && ::geteuid() != 0;
  if (fd < 0) return out;
  std::array<char, 8192> buffer;
  std::string rest;
  Sorter sorter(files, out);
  for (ssize_t n; (n = ::read(fd, buffer.data(), buffer.size())) > 0 || (n < 0 && errno == EPIPE);) {
    if (n < 0) continue;
    out.readable = true;
    rest.append(buffer.data(), static_cast<size_t>(n));
    for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      const std::string record = rest.substr(0, end);
      unsigned long long sequence = 0;
      const size_t text = record.find(';');
      if (text == std::string::npos || std::sscanf(record.c_str(), "%*u,%llu,", &sequence) != 1)
        continue;  // belongs to an earlier record: " KEY=value"
      out.next = sequence + 1;
      if (sequence < since) continue;
      sorter.take(record.substr(text + 1));
    }
  }
  ::close(fd);
  sorter.finish();
  return out;
}

}  // namespace muster::kernels
