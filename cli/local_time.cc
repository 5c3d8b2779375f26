#include "cli/local_time.h"

#include <fmt/format.h>

#include <ctime>

namespace muster::cli {

std::string local_time(TimeMs at) {
  const auto seconds = static_cast<std::time_t>(at / kSecond);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M %Z", &parts);
  return text;
}

Result<TimeMs> parse_local_time(const std::string& text) {
  for (const char* form : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"}) {
    std::tm parts{};
    const char* rest = strptime(text.c_str(), form, &parts);
    if (!rest || *rest != '\0') continue;
    parts.tm_isdst = -1;  // as it is on that day
    const int day = parts.tm_mday;
    const std::time_t at = std::mktime(&parts);
    if (at != -1 && parts.tm_mday == day) return static_cast<TimeMs>(at) * kSecond;  // no 31 February
  }
  return fail(Code::invalid, fmt::format("'{}' is no date: 2026-12-24, or \"2026-12-24 06:00\"", text));
}

}  // namespace muster::cli
