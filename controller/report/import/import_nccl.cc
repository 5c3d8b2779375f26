// nccl-tests: a table whose header names the columns, once or twice "time algbw busbw #wrong" (out of place
// and in place), and closing lines, which a test that was aborted does not print.
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

constexpr const char* kNcclTests = "nccl-tests";
// What the figures of the GPU table are of: an all-reduce over all GPUs of one host, at a size where the rate
// no longer rises.
constexpr size_t kGpusOfHost = 8;
constexpr double kLargeEnough = 1024.0 * 1024 * 1024;

// Where one side of the table has its columns.
struct Columns {
  std::optional<size_t> time = {}, algbw = {}, busbw = {}, wrong = {};
};

struct Header {
  size_t words = 0;  // of a row
  bool redop = false, cpu_time = false;
  bool deviation = false;  // "error", "res": the largest deviation, where newer versions count elements
  std::vector<Columns> sides = {};
};

struct Row {
  double size = 0;
  std::vector<std::string> words = {};
  size_t line = 0;
};

struct Table {
  std::string collective = {};  // "all_gather"; "" if the output does not name it
  std::set<std::string> models = {}, hosts = {}, groups = {}, gpus = {}, ranks = {};
  Header header = {};
  std::vector<Row> rows = {};
  std::string failure = {}, out_of_bounds = {};
  bool ended = false, without_switch = false;
  size_t empty_rows = 0;
};

// "#size" and "#wrong" without the mark; "#" alone is no column.
std::vector<std::string> names_of(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const auto& word : words)
    if (const size_t at = word.find_first_not_of('#'); at != std::string::npos)
      out.push_back(word.substr(at));
  return out;
}

bool is_header(const std::vector<std::string>& names) {
  const auto has_name = [&](const char* name) { return std::count(names.begin(), names.end(), name) > 0; };
  return has_name("algbw") && has_name("busbw") && (names[0] == "size" || names[0] == "bytes");
}

Header read_header(const std::vector<std::string>& names) {
  Header out;
  out.words = names.size();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (name == "time" || name == "cputime") out.sides.push_back({i, {}, {}, {}});
    out.cpu_time = out.cpu_time || name == "cputime";
    out.redop = out.redop || name == "redop" || name == "op";
    out.deviation = out.deviation || name == "error" || name == "res";
    if (name == "timestamp") ++out.words;  // a date and a time of day
    if (out.sides.empty()) continue;
    Columns& side = out.sides.back();
    if (name == "algbw") side.algbw = i;
    if (name == "busbw") side.busbw = i;
    if (name == "wrong" || name == "error" || name == "res") side.wrong = i;
  }
  return out;
}

// nullopt: the column or the value is missing ("N/A").
std::optional<double> cell(const Row& row, const std::optional<size_t>& column) {
  return column ? number_of(row.words[*column]) : std::nullopt;
}

Status check_row(const Row& row, const Header& header) {
  if (header.sides.empty()) return malformed(kNcclTests, row.line, "there is no header above this row");
  if (row.words.size() != header.words)
    return malformed(kNcclTests, row.line,
                     fmt::format("{} columns instead of {}", row.words.size(), header.words));
  for (const auto& side : header.sides)
    for (const auto& column : {side.time, side.algbw, side.busbw})
      if (column && row.words[*column] != "N/A" && !cell(row, column))
        return malformed(kNcclTests, row.line, "the time or a bandwidth is not a number");
  return Ok{};
}

std::string size_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < 4; ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, units[unit]);
}

// A test's own message about its failure: "host: Test CUDA failure common.cu:123 '...'".
bool shows_failure(const std::string& line) {
  const size_t at = line.find(": Test ");
  return at != std::string::npos && line.find(" failure ", at) != std::string::npos;
}

// "Rank  0 Group  0 Pid   4000 on     gpu01 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3". Returns false if
// this rank is listed already.
bool add_rank(Table& table, const std::vector<std::string>& names, const std::string& line) {
  std::map<std::string, std::string> after;
  for (size_t i = 0; i + 1 < names.size(); ++i) after.emplace(names[i], names[i + 1]);
  table.hosts.insert(after["on"]);
  table.groups.insert(after["Group"]);
  table.gpus.insert(after["on"] + " " + after["device"]);
  if (const size_t at = line.find("] "); at != std::string::npos)
    table.models.insert(trim(line.substr(at + 2)));
  return table.ranks.insert(names[1]).second;
}

// The settings that make NCCL reduce on the GPUs and not in the NVSwitches.
bool is_without_switch(const std::string& line) {
  for (const char* words :
       {"NCCL_ALGO=Ring", "NCCL_ALGO=RING", "NCCL_ALGO=ring", "NCCL_NVLS_ENABLE=0",
        "NCCL_ALGO set by environment to Ring", "NCCL_NVLS_ENABLE set by environment to 0"})
    if (has(line, words)) return true;
  return false;
}

// "# Collective test starting: all_gather_perf", "$ mpirun -np 8 ./build/all_gather_perf -b 8"
void find_collective(Table& table, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const std::string name = last_component(word);
    const size_t end = name.find("_perf");
    if (end != std::string::npos && end > 0 && table.collective.empty())
      table.collective = name.substr(0, end);
  }
}

Status read_line(Table& table, const std::string& line, size_t number) {
  const auto words = words_of(line), names = names_of(words);
  if (names.empty()) return Ok{};
  table.ended = table.ended || has(line, "Avg bus bandwidth");
  table.without_switch = table.without_switch || is_without_switch(line);
  if (table.failure.empty() && shows_failure(line)) table.failure = line;
  if (has(line, "Out of bounds values") && words.back() == "FAILED")
    table.out_of_bounds = line.substr(line.find("Out of bounds"));
  if (is_header(names)) table.header = read_header(names);
  if (names[0] == "Rank" && names.size() > 2 && !add_rank(table, names, line))
    return malformed(kNcclTests, number,
                     fmt::format("rank {} is listed already: the output is of several tests, mixed (built "
                                 "without MPI, each process is a test of its own)",
                                 names[1]));
  const bool numbers = words.size() > 2 && digits(words[0]) && digits(words[1]);
  if (!numbers && (!digits(words[0]) || words.size() != table.header.words)) {
    if (table.rows.empty()) find_collective(table, words);
    return Ok{};
  }
  Row row{number_of(words[0]).value_or(0), words, number};
  TRY_(check_row(row, table.header));
  if (row.size > 0)
    table.rows.push_back(std::move(row));
  else
    ++table.empty_rows;
  return Ok{};
}

// Returns why this result is not held to the all-reduce of a host's GPUs; "" if it is.
std::string not_comparable(const Table& table, const Row& row) {
  const Columns& side = table.header.sides.front();
  const auto algbw = cell(row, side.algbw), busbw = cell(row, side.busbw);
  const double n = static_cast<double>(table.ranks.size());
  if (!table.collective.empty() && table.collective != "all_reduce")
    return fmt::format("it is {}, and the figure is of an all-reduce", table.collective);
  if (table.ranks.empty()) return "the output does not list its ranks";
  if (table.hosts.size() > 1)
    return fmt::format("{:.0f} ranks on {} hosts, and the figure is of one host", n, table.hosts.size());
  if (table.groups.size() > 1) return fmt::format("the ranks form {} groups", table.groups.size());
  if (table.gpus.size() != table.ranks.size()) return "several ranks share a GPU";
  if (table.models.size() != 1) return "the output does not list one model of its GPUs";
  if (table.ranks.size() != kGpusOfHost)
    return fmt::format("{:.0f} ranks, and the figure is of {} GPUs in one host", n, kGpusOfHost);
  // Of all collectives only an all-reduce has this factor.
  if (algbw && busbw && *algbw > 0 && std::abs(*busbw / *algbw - 2 * (n - 1) / n) > 0.02)
    return fmt::format("busbw is {:.3g} x algbw, so it is no all-reduce", *busbw / *algbw);
  if (row.size < kLargeEnough)
    return fmt::format("{} is too small: the figure is of {} and more", size_text(row.size),
                       size_text(kLargeEnough));
  return "";
}

const Row& extreme(const Table& table, bool largest) {
  const Row* out = &table.rows.front();
  for (const auto& row : table.rows)
    if (largest ? row.size >= out->size : row.size < out->size) out = &row;
  return *out;
}

void add_busbw(const Table& table, Imported& out) {
  const Row& row = extreme(table, true);
  const std::string size = size_text(row.size), why = not_comparable(table, row);
  for (size_t i = 0; i < table.header.sides.size(); ++i) {
    const std::string name = i == 0 ? "busbw" : "busbw in place";
    const auto value = cell(row, table.header.sides[i].busbw);
    if (!value || *value == 0) {
      out.left_out.push_back({fmt::format("{} ({})", name, size),
                              !value                    ? "the output has no value"
                              : table.ranks.size() == 1 ? "0, as there is one rank"
                                                        : "0: too small, or nothing was transferred"});
      continue;
    }
    ImportedValue busbw{name, size, *value, "GB/s", "", 1};
    busbw.expected_text = why;
    if (i == 0 && why.empty())
      expect_gpu(busbw, *table.models.begin(),
                 table.without_switch ? "gpu_node_ring_gbps" : "gpu_node_allreduce_gbps");
    if (i == 0 && table.hosts.size() > 1 && table.collective == "all_reduce")
      busbw.like = "nccl/all_reduce_busbw_gbps";
    out.values.push_back(std::move(busbw));
  }
}

void add_latency(const Table& table, Imported& out) {
  const Row& row = extreme(table, false);
  const auto time = cell(row, table.header.sides.front().time);
  if (time && !table.header.cpu_time)
    out.values.push_back({"latency", size_text(row.size), *time, "us", "", 1});
  else
    out.left_out.push_back(
        {"latency", time ? "the output has the time of the CPU" : "the output has no value"});
}

// Wrong elements are counted since 2.13; before, the table had the largest deviation, and only the closing
// line whether it was too large.
void add_wrong(const Table& table, Imported& out) {
  const std::string name = table.header.deviation ? "largest deviation" : "wrong elements";
  std::optional<double> all;
  for (size_t i = 0; i < table.header.sides.size(); ++i) {
    const auto& column = table.header.sides[i].wrong;
    size_t unchecked = 0;
    for (const auto& row : table.rows) {
      const std::string word = column ? row.words[*column] : "N/A";
      const auto value = number_of(word.substr(0, word.find('*')));  // RCCL marks those beyond its limit
      if (word == "N/A")
        ++unchecked;
      else if (!value)
        out.problems.push_back(fmt::format("{} at {}: {}", name, size_text(row.size), word));
      if (value) all = table.header.deviation ? std::max(all.value_or(0), *value) : all.value_or(0) + *value;
    }
    if (unchecked > 0)
      out.left_out.push_back({i == 0 ? name : name + " in place",
                              fmt::format("not checked in {} of {} rows", unchecked, table.rows.size())});
  }
  if (all) out.values.push_back({name, "", *all, "", "", 1});
  if (!table.out_of_bounds.empty()) out.problems.push_back(table.out_of_bounds);
  if (all && *all > 0 && !table.header.deviation)
    out.problems.push_back(fmt::format("{:.0f} elements were wrong", *all));
}

}  // namespace

Result<Imported> import_nccl_tests(const Run& run) {
  Table table;
  size_t number = run.line;
  for (const auto& line : lines_of(run.text)) TRY_(read_line(table, line, number++));
  if (table.rows.empty())
    return fail(Code::invalid, "the nccl-tests output contains no row of measurements" +
                                   (table.failure.empty() ? "" : ": " + table.failure));
  if (!table.ended)
    return fail(Code::invalid,
                "the nccl-tests output has no last line (\"Avg bus bandwidth\"): the test did not finish" +
                    (table.failure.empty() ? "" : ": " + table.failure));
  Imported out;
  out.format = kNcclTests;
  out.title = fmt::format("{} ranks", table.ranks.size());
  if (table.hosts.size() > 1) out.title += fmt::format(" on {} hosts", table.hosts.size());
  if (!table.models.empty()) out.title += fmt::format(" on {}", fmt::join(table.models, ", "));
  if (!table.collective.empty()) out.title += ", " + table.collective;
  if (!table.failure.empty()) out.problems.push_back(table.failure);
  add_latency(table, out);
  add_busbw(table, out);
  add_wrong(table, out);
  if (table.empty_rows > 0)
    out.left_out.push_back({fmt::format("{} rows of size 0", table.empty_rows),
                            "they have fewer bytes than one element for each rank"});
  return out;
}

}  // namespace muster
