// A time zone from its compiled file (RFC 8536: /usr/share/zoneinfo/NAME, /etc/localtime), so that the time
// of day of a site is known without changing the process' own zone. Pure, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster {

struct LocalTime {
  int64_t day = 0;  // since 1970-01-01
  int minute = 0;   // of the day
};

class TimeZone {
 public:
  // corrupt: not such a file.
  static Result<TimeZone> read(std::string_view file);
  TimeZone() = default;  // UTC

  LocalTime at(TimeMs time) const;
  // Seconds east of UTC.
  int64_t offset(TimeMs time) const;

 private:
  struct Change {  // "M3.5.0/2"
    int month = 0, week = 0, weekday = 0;
    int64_t second = 2 * 3600;  // of the day, local
  };
  struct Rule {  // what holds after the last change that the file lists: "CET-1CEST,M3.5.0,M10.5.0/3"
    int64_t standard = 0, summer = 0;
    bool changes = false;
    Change to_summer, to_standard;
  };
  static Result<Rule> rule_of(std::string_view text);
  static int64_t moment(const Change& change, int64_t year, int64_t offset);
  int64_t by_rule(int64_t seconds) const;

  std::vector<int64_t> changes_;  // seconds since 1970, ascending
  std::vector<int64_t> offsets_;  // offsets_[i]: from changes_[i] on
  int64_t before_ = 0;            // before the first change
  Rule rule_;
};

}  // namespace muster
