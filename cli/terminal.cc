#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "base/digest.h"
#include "base/json_at.h"
#include "base/name_ranges.h"
#include "base/printable.h"
#include "cli/shown_nodes.h"

namespace muster::cli {
namespace {

constexpr int kBarCells = 16;

double number_at(const Json& object, const char* key, double fallback) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_number() ? it->get<double>() : fallback;
}
// Counts UTF-8 lead bytes, which is correct for muster's own output.
size_t cells(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string padded(std::string text, size_t width) {
  const size_t have = cells(text);
  return have < width ? text + std::string(width - have, ' ') : text;
}

const char* colour_of(const std::string& state) {
  if (state == "accepted") return "\x1b[32m";
  if (state == "degraded") return "\x1b[33m";
  if (state == "quarantined") return "\x1b[31m";
  if (state == "installing" || state == "discovered") return "\x1b[36m";
  return "";
}

struct Row {
  std::string node, state, phase, progress, rate, eta, words;
};

// Returns the time, with the date only if it is a day or more ago.
std::string clock_time(TimeMs at, TimeMs now) {
  const std::string text = to_iso8601(at);
  return now - at < kDay ? text.substr(11) : text;
}

Row row_of(const Json& node, const Look& look, TimeMs now) {
  Row row{clean_at(node, "name"), clean_at(node, "state"), clean_at(node, "phase"), "", "", "",
          clean_at(node, "text")};
  const double fraction = number_at(node, "fraction", -1);
  if (fraction >= 0)
    row.progress =
        fmt::format("{} {:>3.0f} %", bar(fraction, kBarCells, look.unicode), std::floor(fraction * 100));
  if (const double rate = number_at(node, "rate", 0); rate > 0)
    row.rate = human_rate(rate, clean_at(node, "unit"));
  if (const double eta = number_at(node, "eta_ms", -1); eta >= 0)
    row.eta = to_human(static_cast<DurationMs>(eta));
  if (const auto reason = clean_at(node, "reason"); !reason.empty()) row.words = reason;
  // A manual task is shown instead of the run's own text, so that it is noticed.
  const auto waiting = clean_at(node, "waiting");
  if (row.words.empty() || (node.value("by_hand", false) && !waiting.empty())) row.words = waiting;
  if (const double silent = number_at(node, "silent_since", 0); silent > 0 && row.phase.empty())
    row.words = "silent since " + clock_time(static_cast<TimeMs>(silent), now) +
                (row.words.empty() ? "" : "; " + row.words);
  return row;
}

std::string header_line(const Json& status) {
  const Json run = status.value("run", Json());
  std::string line = clean_at(status, "cluster");
  if (run.is_object())
    line += fmt::format("{}run {}: {} {}, {}", line.empty() ? "" : "  ", run.value("id", 0),
                        clean_at(run, "kind"), clean_at(run, "state"),
                        to_human(static_cast<DurationMs>(number_at(run, "elapsed_ms", 0))));
  return line;
}

std::string cause_lines(const Json& status, const Look& look) {
  std::string out;
  for (const Json* cause : shown_causes(status)) {
    std::vector<std::string> names;
    for (const Json& node : list_at(*cause, "nodes"))
      if (node.is_string()) names.push_back(clean(node.get<std::string>()));
    const std::string detail = clean_at(*cause, "detail");
    const std::string what = fmt::format("! {} ({}){}", clean_at(*cause, "what"), names_in_ranges(names),
                                         detail.empty() ? "" : ": " + detail);
    for (const std::string& line : {what, "    " + clean_at(*cause, "next")}) out += cut(line, look) + "\n";
  }
  return out;
}

int quarter(const Json& node) {
  const double fraction = number_at(node, "fraction", -1);
  return fraction < 0 ? -1 : static_cast<int>(fraction * 4) * 25;
}

// -1: the node had no such phase.
double ms_of_phase(const Json& node, const std::string& wanted) {
  double ms = -1;
  for (const Json& phase : list_at(node, "phases"))
    if (clean_at(phase, "phase") == wanted) ms = number_at(phase, "ms", -1);
  return ms;
}

}  // namespace

std::string clean_at(const Json& json, const char* key) { return clean(text_at(json, key)); }

std::vector<std::string> name_list(const Json& list) {
  std::vector<std::string> out;
  for (const Json& name : list)
    if (name.is_string()) out.push_back(clean(name.get<std::string>()));
  return out;
}

std::string clean(const std::string& text) { return printable(text); }

std::string clean_lines(const std::string& text) { return printable_lines(text); }

std::string cut(const std::string& text, const Look& look) {
  if (look.width == 0 || cells(text) <= look.width) return text;
  const std::string mark = look.unicode ? "…" : "...";
  const size_t kept = look.width - std::min(cells(mark), look.width);
  std::string out;
  size_t used = 0;
  for (const char c : text) {
    if ((c & 0xC0) != 0x80 && ++used > kept) break;
    out += c;
  }
  return out + mark;
}

std::string bar(double fraction, int width, bool unicode) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width + 0.0001);
  std::string out;
  for (int i = 0; i < width; ++i) out += i < full ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  return out;
}

std::string human_bytes(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 && unit > 0 ? 1 : 0, units[unit]);
}

std::string digest_or_dash(const std::string& digest) { return digest.empty() ? "-" : short_digest(digest); }

std::string human_rate(double per_second, const std::string& unit) {
  if (unit == "bytes" || unit == "B" || unit.empty()) return human_bytes(per_second) + "/s";
  return fmt::format("{:.1f} {}/s", per_second, unit);
}

size_t nodes_that_fit(const Json& status, int height, bool fold) {
  const std::set<std::string> folded = fold ? folded_nodes(status) : std::set<std::string>();
  const size_t counts = 2;
  // Lines other than nodes: the header, the problems, the causes, the table's header, and the cursor's line.
  const size_t other = (header_line(status).empty() ? 0 : 1) +
                       status.value("problems", Json::object()).size() + 2 * shown_causes(status).size() + 2 +
                       (folded.empty() ? 0 : counts);
  const size_t lines = height > 0 ? static_cast<size_t>(height) : 0;
  const size_t nodes = shown_nodes(list_at(status, "nodes"), 0, folded).nodes.size();
  if (lines == 0 || nodes + other <= lines) return 0;
  const size_t besides = folded.empty() ? other + counts : other;
  return lines > besides ? lines - besides : 1;
}

std::string render_status(const Json& status, const Look& look) {
  std::vector<Row> rows = {{"NODE", "STATE", "PHASE", "PROGRESS", "RATE", "ETA", ""}};
  const TimeMs now = static_cast<TimeMs>(number_at(status, "time", 0));
  const std::set<std::string> folded = look.fold ? folded_nodes(status) : std::set<std::string>();
  const ShownNodes shown = shown_nodes(list_at(status, "nodes"), look.nodes, folded);
  for (const Json* node : shown.nodes) rows.push_back(row_of(*node, look, now));
  size_t w[6] = {};
  for (const Row& r : rows) {
    const std::string* columns[] = {&r.node, &r.state, &r.phase, &r.progress, &r.rate, &r.eta};
    for (size_t i = 0; i < 6; ++i) w[i] = std::max(w[i], cells(*columns[i]));
  }
  std::string out;
  if (const auto head = header_line(status); !head.empty()) out += cut(head, look) + "\n";
  const Json problems = status.value("problems", Json::object());
  for (const auto& [topic, text] : problems.items())
    if (text.is_string()) out += cut("! " + topic + ": " + clean(text.get<std::string>()), look) + "\n";
  if (shown.nodes.empty() && !status.contains("spec_revision"))
    return out + cut("no spec yet: `muster up SPEC`", look) + "\n";
  out += cause_lines(status, look);
  const size_t left_out = shown.left_out + folded.size();
  if (left_out > 0) out += cut(node_counts(list_at(status, "nodes")), look) + "\n";
  for (const Row& r : rows) {
    std::string line = padded(r.node, w[0]) + "  " + padded(r.state, w[1]) + "  " + padded(r.phase, w[2]) +
                       "  " + padded(r.progress, w[3]) + "  " + padded(r.rate, w[4]) + "  " +
                       padded(r.eta, w[5]) + "  " + r.words;
    while (!line.empty() && line.back() == ' ') line.pop_back();
    line = cut(line, look);
    const std::string colour = look.colour ? colour_of(r.state) : "";
    out += colour + line + (colour.empty() ? "" : "\x1b[0m") + "\n";
  }
  if (left_out > 0) out += cut(fmt::format("and {} more: {}", left_out, look.others), look) + "\n";
  return out;
}

std::string render_storage(const Json& status, const Look& look) {
  std::vector<std::array<std::string, 6>> rows = {{"STORAGE", "ENGINE", "MOUNT", "SIZE", "USED", "HEALTH"}};
  for (const Json& section : list_at(status, "storage")) {
    const double size = number_at(section, "size_bytes", 0), used = number_at(section, "used_bytes", 0);
    std::string health;
    for (const Json& one : list_at(section, "problems"))
      health += (health.empty() ? "" : "; ") + clean_at(one, "node") + ": " + clean_at(one, "problem");
    // A resync is shown, although it is not a problem.
    for (const Json& one : list_at(section, "nodes"))
      if (const std::string words = clean_at(one, "health");
          !words.empty() && health.find(words) == std::string::npos)
        health += (health.empty() ? "" : "; ") + clean_at(one, "node") + ": " + words;
    const Json healthy = section.is_object() ? section.value("healthy", Json()) : Json();
    if (health.empty()) health = healthy == true ? "healthy" : "unknown";
    rows.push_back({clean_at(section, "name"), clean_at(section, "engine"), clean_at(section, "mount"),
                    size > 0 ? human_bytes(size) : "",
                    size > 0 ? fmt::format("{:.0f} %", 100 * used / size) : "", health});
  }
  if (rows.size() < 2) return "";
  std::array<size_t, 6> widths = {};
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cells(row[i]));
  std::string out = "\n";
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += (i ? "  " : "") + padded(row[i], widths[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += cut(line, look) + "\n";
  }
  return out;
}

std::string ChangeLines::next(const Json& status) {
  std::string out;
  const Json& nodes = list_at(status, "nodes");
  const bool in_short = last_.empty() && nodes.size() > kManyNodes;
  if (in_short) out += node_counts(nodes) + "\n";
  for (const Json& node : nodes) {
    const std::string name = clean_at(node, "name");
    const std::string base =
        fmt::format("{:<12} {:<12} {:<10}", name, clean_at(node, "state"), clean_at(node, "phase"));
    const std::string reason = clean_at(node, "reason");
    const int q = quarter(node);
    Shown& before = last_[name];
    // Between two orders of a phase there is no percentage: that does not count as a change.
    if (before.base == base && before.reason == reason && (q < 0 || before.quarter == q)) continue;
    before = {base, reason, q};
    if (in_short && urgency_of(node) > Urgency::by_hand) continue;
    std::string now = base;
    if (q >= 0) now += fmt::format(" {:>3} %", q);
    if (!reason.empty()) now += "  " + reason;
    while (!now.empty() && now.back() == ' ') now.pop_back();
    const Json run = status.value("run", Json());
    const auto elapsed = static_cast<DurationMs>(run.is_object() ? number_at(run, "elapsed_ms", 0) : 0);
    out += fmt::format("{:>4}:{:02}  {}\n", elapsed / kMinute, elapsed / kSecond % 60, now);
  }
  return out;
}

std::string render_summary(const Json& run, size_t width) {
  constexpr size_t kResult = 11, kTime = 10;
  std::vector<std::string> columns;
  size_t names = 4;
  for (const Json& node : list_at(run, "nodes")) {
    names = std::max(names, clean_at(node, "name").size());
    for (const Json& phase : list_at(node, "phases"))
      if (const std::string name = clean_at(phase, "phase");
          std::find(columns.begin(), columns.end(), name) == columns.end())
        columns.push_back(name);
  }
  columns.emplace_back("total");
  const size_t room = width - std::min(width, names + 2 + kResult);
  const size_t at_once = width == 0 ? columns.size() : std::max<size_t>(1, room / (kTime + 2));
  std::string out;
  for (size_t first = 0; first < columns.size(); first += at_once) {
    const size_t end = std::min(first + at_once, columns.size());
    out += padded("NODE", names) + "  " + padded("RESULT", kResult);
    for (size_t i = first; i < end; ++i) out += fmt::format("  {:>{}}", columns[i], kTime);
    out += "\n";
    for (const Json& node : list_at(run, "nodes")) {
      out += padded(clean_at(node, "name"), names) + "  " + padded(clean_at(node, "result"), kResult);
      for (size_t i = first; i < end; ++i) {
        const double ms = i + 1 == columns.size() ? number_at(node, "ms", 0) : ms_of_phase(node, columns[i]);
        out += fmt::format("  {:>{}}", ms < 0 ? "-" : to_human(static_cast<DurationMs>(ms)), kTime);
      }
      out += "\n";
    }
  }
  for (const Json& node : list_at(run, "nodes"))
    if (const auto reason = clean_at(node, "reason"); !reason.empty())
      out += fmt::format("{}: {}\n", clean_at(node, "name"), reason);
  return out;
}

std::string render_refusals(const Json& details) {
  std::string out;
  for (const Json& refusal : list_at(details, "refusals")) {
    const std::string node = clean_at(refusal, "node"), rule = clean_at(refusal, "rule");
    out += "  " + (node.empty() ? "" : node + ": ") + clean_at(refusal, "message") +
           (rule.empty() ? "" : " [" + rule + "]") + "\n";
  }
  return out;
}

size_t terminal_width() {
  constexpr size_t kUnknown = 100, kLeast = 20;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1) return 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknown;
  return std::max<size_t>(size.ws_col, kLeast + 1) - 1;
}

LiveView::LiveView(bool quiet, const std::string& filter)
    : quiet_(quiet),
      terminal_(::isatty(STDOUT_FILENO) == 1),
      others_("muster status " + (filter.empty() ? "--all" : clean(filter))),
      fold_(filter.empty()) {}

void LiveView::draw(const Json& status) {
  if (quiet_) return;
  if (!terminal_) {
    const std::string lines = changes_.next(status);
    fmt::print("{}", lines);
    std::fflush(stdout);
    return;
  }
  winsize size{};
  (void)::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  Look look;
  look.width = terminal_width();
  look.fold = fold_;
  look.nodes = nodes_that_fit(status, size.ws_row, fold_);
  look.others = others_;
  look.colour = ::getenv("NO_COLOR") == nullptr;
  const std::string table = render_status(status, look);
  // Moves the cursor up over the old table and clears from there: no flicker, and the lines above are kept.
  std::string out = lines_drawn_ > 0 ? fmt::format("\x1b[{}A\r\x1b[J", lines_drawn_) : "";
  lines_drawn_ = static_cast<int>(std::count(table.begin(), table.end(), '\n'));
  out += table;
  fmt::print("{}", out);
  std::fflush(stdout);
}

void LiveView::finish() { lines_drawn_ = 0; }

}  // namespace muster::cli
