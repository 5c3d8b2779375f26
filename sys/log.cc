#include "sys/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/printable.h"
#include "base/time.h"

namespace muster::log {
namespace {
std::atomic<int> g_level{static_cast<int>(Level::info)};

std::string quoted(const std::string& text) {
  const std::string value = printable(text);
  if (!value.empty() && value.find_first_of(" \"=") == std::string::npos) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}
}  // namespace

void set_level(Level level) { g_level = static_cast<int>(level); }

void write(Level level, std::string_view message, const Fields& fields) {
  if (static_cast<int>(level) < g_level) return;
  static constexpr const char* kPriority[] = {"<7>", "<6>", "<4>", "<3>"};
  const bool journald = getenv("JOURNAL_STREAM") != nullptr;
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  std::string line = journald ? std::string(kPriority[static_cast<int>(level)]) : to_iso8601(now) + " ";
  line += printable(message);
  for (const auto& [key, value] : fields) line.append(" ").append(key).append("=").append(quoted(value));
  line += '\n';
  [[maybe_unused]] const auto written = ::write(2, line.data(), line.size());
}

}  // namespace muster::log
