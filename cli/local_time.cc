#include "cli/local_time.h"

#include <fmt/format.h>

#include <ctime>

#include "controller/spec/units.h"

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

Result<TimeMs> parse_since(const std::string& text, TimeMs now) {
  if (const auto span = parse_duration(text); span.ok()) return now - *span;
  std::tm parts{};
  if (const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts); rest && *rest == '\0')
    return static_cast<TimeMs>(timegm(&parts)) * kSecond;
  const auto seconds = static_cast<std::time_t>(now / kSecond);
  localtime_r(&seconds, &parts);
  if (const char* rest = strptime(text.c_str(), "%H:%M", &parts); rest && *rest == '\0') {
    parts.tm_sec = 0;
    parts.tm_isdst = -1;
    if (static_cast<TimeMs>(std::mktime(&parts)) * kSecond > now) --parts.tm_mday, parts.tm_isdst = -1;
    return static_cast<TimeMs>(std::mktime(&parts)) * kSecond;
  }
  if (auto at = parse_local_time(text); at.ok()) return at;
  return fail(Code::invalid,
              fmt::format("'{}' is neither a time, such as \"2026-12-24 06:00\" or 22:00, nor a "
                          "duration, such as '2 h'",
                          text));
}

}  // namespace muster::cli
