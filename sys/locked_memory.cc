#include "sys/locked_memory.h"

#include <charconv>
#include <string_view>
#include <vector>

#include "base/split.h"

namespace muster {
namespace {

constexpr uint64_t kIpcLock = 1 << 14;  // CAP_IPC_LOCK
// perftest with messages of 64 KiB locks about 200 KiB: its buffers and the adapter's queues.
constexpr uint64_t kEnoughLocked = 1 << 20;

// The words behind the key at the beginning of a line.
std::vector<std::string> words_behind(const std::string& text, std::string_view key) {
  for (const std::string& line : split_lines(text))
    if (line.starts_with(key)) return split_words(line.substr(key.size()));
  return {};
}

std::optional<uint64_t> number_in(const std::string& text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

std::optional<uint64_t> locked_memory(const Files& files) {
  const auto capabilities = words_behind(files.read("/proc/self/status").value_or(""), "CapEff:");
  if (!capabilities.empty() && (number_in(capabilities[0], 16).value_or(0) & kIpcLock) != 0)
    return kUnlimited;
  const auto limit = words_behind(files.read("/proc/self/limits").value_or(""), "Max locked memory");
  if (limit.empty()) return {};
  if (limit[0] == "unlimited") return kUnlimited;
  return number_in(limit[0], 10);
}

std::string too_little_locked(std::optional<uint64_t> bytes) {
  if (!bytes || *bytes >= kEnoughLocked) return "";
  return "locked memory is limited to " + std::to_string(*bytes / 1024) + " KiB (`ulimit -l`)";
}

}  // namespace muster
