#include "base/time.h"

#include <ctime>

namespace muster {

std::string to_iso8601(TimeMs t) {
  const std::time_t seconds = static_cast<std::time_t>(t / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string to_human(DurationMs d) {
  const int64_t s = (d + 500) / 1000;
  if (s < 60) return std::to_string(s) + " s";
  if (s < 3600) return std::to_string(s / 60) + " min" + (s % 60 ? " " + std::to_string(s % 60) + " s" : "");
  return std::to_string(s / 3600) + " h " + std::to_string(s % 3600 / 60) + " min";
}

}  // namespace muster
