#include "base/time_zone.h"

#include <algorithm>

#include "base/scan.h"

namespace muster {
namespace {

constexpr int64_t kDaySeconds = kDay / kSecond;

// Reads big-endian numbers in order; `good` is false once the text was too short.
struct Bytes {
  std::string_view text;
  bool good = true;

  std::string_view take(size_t count) {
    if (count > text.size()) {
      good = false;
      count = text.size();
    }
    const std::string_view out = text.substr(0, count);
    text.remove_prefix(count);
    return out;
  }
  int64_t number(size_t bytes) {
    uint64_t value = 0;
    for (const char c : take(bytes)) value = value << 8 | static_cast<unsigned char>(c);
    return bytes == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
  }
};

struct Header {
  size_t utc_marks = 0, standard_marks = 0, leaps = 0, times = 0, types = 0, letters = 0;
  char version = 0;
};

bool read_header(Bytes& in, Header& out) {
  if (in.take(4) != "TZif") return false;
  const std::string_view version = in.take(16);
  out.version = version.empty() ? '\0' : version[0];
  for (size_t* count :
       {&out.utc_marks, &out.standard_marks, &out.leaps, &out.times, &out.types, &out.letters})
    *count = static_cast<size_t>(in.number(4));
  // A count that is negative or far beyond any file would overflow the sizes below.
  const size_t most = 1 << 20;
  return in.good &&
         std::max({out.utc_marks, out.standard_marks, out.leaps, out.times, out.types, out.letters}) < most;
}

// The text behind a rule's parts is consumed as they are read.
struct RuleText {
  std::string_view rest;

  bool skip(char c) {
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  bool name() {  // "CET" or "<+03>"
    const size_t before = rest.size();
    if (skip('<')) {
      while (!rest.empty() && rest.front() != '>') rest.remove_prefix(1);
      return skip('>');
    }
    while (!rest.empty() && is_letter(rest.front())) rest.remove_prefix(1);
    return rest.size() < before;
  }
  bool number(int64_t& out) {
    size_t digits = 0;
    for (out = 0; digits < rest.size() && digits < 4 && is_digit(rest[digits]); ++digits)
      out = out * 10 + (rest[digits] - '0');
    rest.remove_prefix(digits);
    return digits > 0;
  }
  bool hours(int64_t& out) {  // "[+-]h[:m[:s]]" in seconds
    const bool minus = skip('-');
    if (!minus) skip('+');
    int64_t part = 0;
    if (!number(part)) return false;
    out = part * 3600;
    for (const int64_t unit : {60, 1}) {
      if (!skip(':')) break;
      if (!number(part)) return false;
      out += part * unit;
    }
    if (minus) out = -out;
    return true;
  }
};

// Days since 1970 of the first day of a month in the Gregorian calendar.
int64_t first_of(int64_t year, int month) {
  if (month <= 2) --year;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t of_era = year - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t floor_of(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

}  // namespace

Result<TimeZone> TimeZone::read(std::string_view file) {
  const Error bad = fail(Code::corrupt, "not a compiled time zone of version 2 or later");
  Bytes in{file};
  Header head;
  if (!read_header(in, head) || head.version < '2') return bad;
  // The first block has times of 32 bits, for old programs.
  in.take(head.times * 5 + head.types * 6 + head.letters + head.leaps * 8 + head.standard_marks +
          head.utc_marks);
  if (!read_header(in, head) || head.types == 0) return bad;
  TimeZone out;
  for (size_t i = 0; i < head.times; ++i) out.changes_.push_back(in.number(8));
  std::vector<size_t> types;
  for (size_t i = 0; i < head.times; ++i) types.push_back(static_cast<size_t>(in.number(1)));
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < head.types; ++i) {
    offsets.push_back(in.number(4));
    in.take(2);
  }
  in.take(head.letters + head.leaps * 12 + head.standard_marks + head.utc_marks);
  if (!in.good || !std::is_sorted(out.changes_.begin(), out.changes_.end())) return bad;
  for (const size_t type : types) {
    if (type >= offsets.size()) return bad;
    out.offsets_.push_back(offsets[type]);
  }
  out.before_ = offsets.front();
  if (in.take(1) != "\n") return bad;
  const std::string_view rule = in.text.substr(0, in.text.find('\n'));
  if (rule.empty())
    out.rule_.standard = out.offsets_.empty() ? out.before_ : out.offsets_.back();
  else if (const auto read = rule_of(rule); read.ok())
    out.rule_ = *read;
  else
    return bad;
  return out;
}

Result<TimeZone::Rule> TimeZone::rule_of(std::string_view text) {
  const Error bad = fail(Code::corrupt, "a time zone's rule cannot be read");
  RuleText in{text};
  Rule out;
  if (!in.name() || !in.hours(out.standard)) return bad;
  out.standard = -out.standard;  // west is positive there
  out.summer = out.standard + 3600;
  if (in.rest.empty()) return out;
  if (!in.name()) return bad;
  if (!in.rest.empty() && in.rest.front() != ',') {
    if (!in.hours(out.summer)) return bad;
    out.summer = -out.summer;
  }
  for (Change* change : {&out.to_summer, &out.to_standard}) {
    int64_t month = 0, week = 0, weekday = 0;
    // Days by number ("J60") are in no zone's file of today.
    if (!in.skip(',') || !in.skip('M') || !in.number(month) || !in.skip('.') || !in.number(week) ||
        !in.skip('.') || !in.number(weekday) || month < 1 || month > 12 || week < 1 || week > 5 ||
        weekday > 6)
      return bad;
    *change = {static_cast<int>(month), static_cast<int>(week), static_cast<int>(weekday)};
    if (in.skip('/') && !in.hours(change->second)) return bad;
  }
  out.changes = true;
  return in.rest.empty() ? Result<Rule>(out) : Result<Rule>(bad);
}

// Seconds since 1970 of a change, with the offset that holds before it.
int64_t TimeZone::moment(const Change& change, int64_t year, int64_t offset) {
  const int64_t first = first_of(year, change.month);
  const int64_t next = change.month == 12 ? first_of(year + 1, 1) : first_of(year, change.month + 1);
  const int64_t weekday = ((first + 4) % 7 + 7) % 7;  // 1970-01-01 was a Thursday
  int64_t day = first + (change.weekday - weekday + 7) % 7 + 7 * (change.week - 1);
  if (day >= next) day -= 7;  // week 5: the last one
  return day * kDaySeconds + change.second - offset;
}

int64_t TimeZone::by_rule(int64_t seconds) const {
  if (!rule_.changes) return rule_.standard;
  const int64_t days = floor_of(seconds + rule_.standard, kDaySeconds);
  int64_t year = 1970 + floor_of(days * 400, 146097);
  while (first_of(year, 1) > days) --year;
  while (first_of(year + 1, 1) <= days) ++year;
  const int64_t begin = moment(rule_.to_summer, year, rule_.standard);
  const int64_t end = moment(rule_.to_standard, year, rule_.summer);
  const bool north = begin < end;
  const bool inside = north ? begin <= seconds && seconds < end : seconds >= begin || seconds < end;
  return inside ? rule_.summer : rule_.standard;
}

int64_t TimeZone::offset(TimeMs time) const {
  const int64_t seconds = floor_of(time, kSecond);
  const auto next = std::upper_bound(changes_.begin(), changes_.end(), seconds);
  if (next == changes_.end()) return by_rule(seconds);
  if (next == changes_.begin()) return before_;
  return offsets_[static_cast<size_t>(next - changes_.begin()) - 1];
}

LocalTime TimeZone::at(TimeMs time) const {
  const int64_t local = floor_of(time, kSecond) + offset(time);
  const int64_t day = floor_of(local, kDaySeconds);
  return {day, static_cast<int>((local - day * kDaySeconds) / 60)};
}

}  // namespace muster
