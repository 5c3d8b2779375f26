// What the kernel said about broken hardware: lines of its log, sorted by the part they name.
//
// Reference:   the driver's own words. Of NVIDIA's Xid numbers only those that stand for hardware: a program
//              that reads past its array makes one too (13, 31, 43, 45), and is no fault of the GPU. The
//              list is that of NVIDIA's Xid catalogue.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "kernels/kernels.h"

namespace muster::kernels {
namespace {

bool is_hardware_xid(int xid) {
  static constexpr std::pair<int, int> kRanges[] = {{48, 48}, {56, 58}, {62, 64},  {68, 77},   {79, 86},
                                                    {88, 89}, {92, 92}, {94, 105}, {110, 120}, {122, 125}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [xid](const auto& r) { return xid >= r.first && xid <= r.second; });
}

// The word after `key` up to one of `ends`; "" when `key` is not there.
std::string word_after(const std::string& text, const char* key, const char* ends) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  const size_t begin = at + std::strlen(key), end = text.find_first_of(ends, begin);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

bool has(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

// Any user writes part of the log: a program that crashes is logged by its name (15 characters, in front) and
// by the names of its libraries (of any length, behind). So lines are told by what they begin with, and
// further than a name reaches.
const std::string kAddress = R"(\((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\))";
const std::regex kGpu("^NVRM: Xid " + kAddress + R"(: (\d+))");
const std::regex kSwitch(R"(^nvidia-nvswitch\d+: SXid )" + kAddress + R"(: \d+, )");
const std::regex kMachineCheck(R"(^(?:mce: |\{\d+\})?\[Hardware Error\]: )");
const std::regex kBlock(R"(^(?:blk_update_request: |print_req_error: )?)"
                        R"((?:I/O error|(?:critical )?medium error), dev ([a-z][0-9a-z]*),? )");
const std::regex kNvme(R"(^nvme (nvme\d+): )"
                       R"((?:I/O (?:tag )?\d+ .*timeout|controller is down|Removing after probe failure))");

// {metric, part}; the metric is "" for a line about nothing that is broken.
std::pair<std::string, std::string> sort_line(const std::string& text) {
  std::smatch found;
  const auto is = [&](const std::regex& line) { return std::regex_search(text, found, line); };
  // "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."; NVSwitches say "SXid
  // (PCI:0000:c7:00.0): 20034, Fatal, ..."
  if (is(kGpu))
    return {is_hardware_xid(std::atoi(found[2].str().c_str())) ? "gpu_xids" : "",
            (has(text, "SIMULATED GPU") ? "SIMULATED GPU " : "GPU ") + found[1].str()};
  if (is(kSwitch)) return {has(text, "Non-fatal") ? "" : "gpu_xids", "NVSwitch " + found[1].str()};
  if (is(kMachineCheck)) {
    const std::string cpu = word_after(text, "CPU ", ": ");
    return {"machine_checks",
            cpu.empty() || !has(text, "Machine Check") ? "processor or memory" : "cpu " + cpu};
  }
  if (is(kBlock) || is(kNvme)) return {"drive_errors", "drive " + found[1].str()};
  return {};
}

}  // namespace

KernelLog read_kernel_log(const Files& files, uint64_t since) {
  KernelLog out;
  // Each read gives one record, "priority,sequence,microseconds,flags;text"; none is left: EAGAIN. EPIPE: it
  // was overwritten meanwhile.
  const int fd = ::open(files.real("/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return out;
  std::array<char, 8192> buffer;
  std::string rest;
  for (ssize_t n; (n = ::read(fd, buffer.data(), buffer.size())) > 0 || (n < 0 && errno == EPIPE);) {
    if (n < 0) continue;
    out.readable = true;
    rest.append(buffer.data(), static_cast<size_t>(n));
    for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      const std::string record = rest.substr(0, end);
      unsigned long long sequence = 0;
      const size_t text = record.find(';');
      if (text == std::string::npos || std::sscanf(record.c_str(), "%*u,%llu,", &sequence) != 1)
        continue;  // of a record before: " KEY=value"
      out.next = sequence + 1;
      if (sequence < since) continue;
      const auto [metric, part] = sort_line(record.substr(text + 1));
      if (!metric.empty()) out.lines.push_back({metric, part, record.substr(text + 1)});
    }
  }
  ::close(fd);
  return out;
}

}  // namespace muster::kernels
