#include "agent/steps/system/sysctl_value.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "agent/steps/step_modules.h"
#include "base/lower.h"

namespace muster::steps {
namespace {

// Decimal, 0x hexadecimal or 0 octal, as the kernel reads them.
std::optional<long long> number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || errno != 0 || *end != '\0') return std::nullopt;
  return value;
}

std::vector<std::string> words_of(const std::string& text) {
  std::string blanks = text;
  for (char& c : blanks)
    if (c == '\t' || c == '\n') c = ' ';
  return split(blanks, ' ');
}

// Compares numbers one by one. If fewer are written than a vector has, the kernel does not change the rest.
bool same_numbers(const std::vector<std::string>& have, const std::vector<std::string>& want) {
  if (want.empty() || want.size() > have.size()) return false;
  for (size_t i = 0; i < have.size(); ++i) {
    const auto now = number(have[i]);
    if (!now) return false;
    if (i < want.size() && number(want[i]) != now) return false;
  }
  return true;
}

// Parses "1,5-7" into sorted, merged ranges; nullopt for any other text.
std::optional<std::vector<std::pair<long long, long long>>> ranges(const std::string& text) {
  std::vector<std::pair<long long, long long>> all, out;
  for (const auto& part : split(text, ',')) {
    const size_t dash = part.find('-', 1);
    const auto from = number(part.substr(0, dash));
    const auto to = dash == std::string::npos ? from : number(part.substr(dash + 1));
    if (!from || !to || *from > *to) return std::nullopt;
    all.emplace_back(*from, *to);
  }
  std::sort(all.begin(), all.end());
  for (const auto& range : all) {
    if (!out.empty() && range.first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, range.second);
    else
      out.push_back(range);
  }
  return out;
}

// True for a CPU mask, which the kernel prints in groups: "ff" as "00000000,000000ff".
bool is_mask(const std::string& key) {
  const std::string name = key.substr(key.find_last_of("./") + 1);
  return name == "flow_limit_cpu_bitmap" || name == "rps_default_mask";
}
std::string mask(const std::string& text) {
  std::string out;
  for (const auto& group : split(text, ','))
    out += std::string(group.size() < 8 ? 8 - group.size() : 0, '0') + group;
  out = lower(out);
  return out.substr(std::min(out.find_first_not_of('0'), out.size()));
}

}  // namespace

std::string sysctl_path(std::string key) {
  const size_t first = key.find_first_of("./");
  if (first != std::string::npos && key[first] == '.')
    for (char& c : key) c = c == '.' ? '/' : c == '/' ? '.' : c;
  return "/proc/sys/" + key;
}

bool sysctl_has(const std::string& key, const std::string& have, const std::string& want) {
  const auto now = words_of(have), meant = words_of(want);
  if (now == meant) return true;
  if (is_mask(key)) return mask(have) == mask(want);
  if (same_numbers(now, meant)) return true;
  // A list of ranges is one word; empty text is an empty list.
  if (now.size() > 1 || meant.size() > 1 || (now.empty() && meant.empty())) return false;
  const auto listed = ranges(now.empty() ? "" : now[0]), declared = ranges(meant.empty() ? "" : meant[0]);
  return listed && declared && *listed == *declared;
}

}  // namespace muster::steps
