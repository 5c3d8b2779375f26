#include "kernels/counters/smart.h"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "host/real_drives.h"

namespace muster::kernels {
namespace {

constexpr size_t kLogBytes = 512;
constexpr const char* kSmartMetrics[] = {"drive_warnings", "drive_wear"};

// Bits of the log's first byte.
constexpr std::pair<unsigned, const char*> kWarnings[] = {
    {0x01, "its spares are used up"},     {0x02, "too hot or too cold"},
    {0x04, "unreliable after errors"},    {0x08, "read-only"},
    {0x10, "its backup of power failed"}, {0x20, "its persistent memory is read-only"}};

struct SmartLog {
  unsigned warning = 0, spare = 0, used = 0;  // spare: percent left
  uint64_t media_errors = 0;
};

// A log of zeros only comes from an emulation that keeps none: a drive without spares would also warn.
bool parse(const std::string& bytes, SmartLog& out) {
  if (bytes.size() < kLogBytes || bytes.find_first_not_of('\0') == std::string::npos) return false;
  const auto byte = [&](size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[at])); };
  out = {byte(0), byte(3), byte(5), 0};
  constexpr size_t kMediaErrors = 160;
  for (size_t i = 8; i-- > 0;) out.media_errors = out.media_errors << 8 | byte(kMediaErrors + i);
  return true;
}

std::string words_of(unsigned warning) {
  std::string out;
  for (const auto& [bit, words] : kWarnings)
    if (warning & bit) out += (out.empty() ? "" : ", ") + std::string(words);
  return out;
}

}  // namespace

Result<std::string> read_smart_log(const std::string& device) {
  const int fd = ::open(device.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(errno == EACCES || errno == EPERM ? Code::denied : Code::unavailable,
                fmt::format("{}: {}", device, std::strerror(errno)));
  std::string out(kLogBytes, '\0');
  nvme_passthru_cmd command = {};
  command.opcode = 0x02;  // Get Log Page
  command.nsid = 0xffffffff;
  command.addr = reinterpret_cast<uintptr_t>(out.data());
  command.data_len = kLogBytes;
  command.cdw10 = static_cast<uint32_t>(kLogBytes / 4 - 1) << 16 | 0x02;  // double words, page
  command.timeout_ms = 5000;
  const int status = ::ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command), error = errno;
  ::close(fd);
  if (status < 0)
    return fail(error == EACCES || error == EPERM ? Code::denied : Code::unavailable,
                fmt::format("{}: {}", device, std::strerror(error)));
  if (status > 0) return fail(Code::unavailable, fmt::format("{}: NVMe status {:#x}", device, status));
  return out;
}

void add_smart(const Files& files, const QuerySmart& query, Measurement& out, Moved& moved) {
  double warnings = 0, wear = 0;
  bool any = false, denied = false;
  for (const auto& controller : files.list("/sys/class/nvme")) {
    if (!is_local_nvme(files, controller)) continue;
    const std::string serial = files.read_line("/sys/class/nvme/" + controller + "/serial"),
                      part = "drive " + (serial.empty() ? controller : serial);
    const auto bytes = query("/dev/" + controller);
    denied = denied || (!bytes.ok() && bytes.error().code == Code::denied);
    SmartLog log;
    const bool kept = bytes.ok() && parse(*bytes, log);
    Json& shown = out.detail["smart"][part];
    if (!kept) {
      shown = bytes.ok() ? "it keeps no SMART log" : bytes.error().message;
      continue;
    }
    any = true;
    shown = {{"warning", words_of(log.warning)},
             {"spare", log.spare},
             {"used", log.used},
             {"media_errors", log.media_errors}};
    if (log.warning != 0) {
      ++warnings;
      moved.parts[part]["drive_warnings"] = log.warning;
    }
    if (log.used > 100) moved.parts[part]["drive_wear"] = log.used;
    wear = std::max(wear, static_cast<double>(log.used));
  }
  for (const char* metric : kSmartMetrics) {
    if (any) continue;
    if (denied)
      out.detail["not_looked_at"][metric] = "needs root: other users may not query drives";
    else
      moved.absent.push_back(metric);
  }
  if (!any) return;
  out.metrics["drive_warnings"] = {warnings, "drives"};
  out.metrics["drive_wear"] = {wear, "%"};
}

}  // namespace muster::kernels
