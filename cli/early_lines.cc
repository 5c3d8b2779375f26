#include "cli/early_lines.h"

#include <fmt/format.h>

#include <utility>

#include "base/split.h"

namespace muster::cli {
namespace {

constexpr size_t kShownFirst = 5;

}  // namespace

std::string reaching_line(const AcceptSession::Progress& progress) {
  return fmt::format("{} of {} hosts reached, {} left out{}{}", progress.reached, progress.hosts,
                     progress.out, progress.awaited.empty() ? "" : "; waiting for ",
                     some_of(progress.awaited));
}

std::vector<std::string> EarlyLines::left_out(const std::string& line) {
  if (!holds_ || shown_ < kShownFirst) {
    ++shown_;
    return {line};
  }
  held_.push_back(line);
  return {};
}

std::vector<std::string> EarlyLines::foreseen(const std::vector<NotMeasured>& all) {
  std::vector<std::string> out;
  for (const auto& one : all) out.push_back(to_text(one));
  for (auto& line : rest()) out.push_back(std::move(line));
  return out;
}

std::vector<std::string> EarlyLines::rest() {
  holds_ = false;
  return std::exchange(held_, {});
}

}  // namespace muster::cli
