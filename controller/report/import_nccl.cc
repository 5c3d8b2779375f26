// nccl-tests: "size count type redop [root] time algbw busbw #wrong" twice per line, out of place and in
// place.
#include "controller/report/import_lines.h"

namespace muster {
namespace {

constexpr const char* kName = "nccl-tests";

struct Row {
  double size = 0;
  double time[2] = {}, busbw[2] = {}, wrong[2] = {};
};

Result<Row> read_row(const std::vector<std::string>& words, size_t line) {
  // Older versions have no root column.
  if (words.size() != 12 && words.size() != 13)
    return malformed(kName, line, fmt::format("{} columns instead of 12 or 13", words.size()));
  Row row;
  row.size = *number_of(words[0]);
  const size_t first = words.size() - 8;
  for (size_t side = 0; side < 2; ++side) {
    const size_t at = first + 4 * side;
    const auto time = number_of(words[at]), bus = number_of(words[at + 2]);
    if (!time || !bus || !number_of(words[at + 1]))
      return malformed(kName, line, "time and bandwidths are not numbers");
    row.time[side] = *time;
    row.busbw[side] = *bus;
    row.wrong[side] = number_of(words[at + 3]).value_or(0);  // N/A: not checked
  }
  return row;
}

std::string size_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < 4; ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, units[unit]);
}

}  // namespace

Result<Imported> import_nccl_tests(const std::string& text) {
  Imported out;
  out.format = kName;
  std::vector<Row> rows;
  std::string model;
  size_t ranks = 0, number = 0;
  for (const auto& line : lines_of(text)) {
    ++number;
    const auto words = words_of(line);
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") {
      ++ranks;
      if (const size_t at = line.find("] "); at != std::string::npos) model = line.substr(at + 2);
    }
    if (words.size() < 3 || !digits(words[0]) || !digits(words[1])) continue;
    TRY(const Row row, read_row(words, number));
    if (row.size > 0) rows.push_back(row);
  }
  if (rows.empty()) return fail(Code::invalid, "nccl-tests output without a row of measurements");
  out.title = fmt::format("{} ranks{}", ranks, model.empty() ? "" : " on " + model);
  double wrong = 0;
  for (const auto& row : rows) wrong += row.wrong[0] + row.wrong[1];
  const Row& last = rows.back();
  ImportedValue busbw{"busbw", size_text(last.size), last.busbw[0], "GB/s", "all-reduce/busbw_mbps", 1000};
  if (ranks == 8) expect_gpu(busbw, model, "gpu_node_allreduce_gbps");
  out.values = {
      {"latency", size_text(rows.front().size), rows.front().time[0], "us", "all-reduce/latency_ms", 0.001},
      busbw,
      {"busbw in place", size_text(last.size), last.busbw[1], "GB/s", "", 1},
      {"wrong elements", "", wrong, "", "", 1}};
  if (wrong > 0) out.problems.push_back(fmt::format("{:.0f} elements were wrong", wrong));
  return out;
}

}  // namespace muster
