// nccl-tests: "size count type redop [root] time algbw busbw #wrong" twice per line (out of place and in
// place), and closing lines after the table, which a test that was aborted does not print.
#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

constexpr const char* kNcclTests = "nccl-tests";

struct Row {
  double size = 0;
  double time[2] = {}, busbw[2] = {}, wrong[2] = {};
};

Result<Row> read_row(const std::vector<std::string>& words, size_t line) {
  // Older versions have no root column.
  if (words.size() != 12 && words.size() != 13)
    return malformed(kNcclTests, line, fmt::format("{} columns instead of 12 or 13", words.size()));
  Row row;
  row.size = *number_of(words[0]);
  const size_t first = words.size() - 8;
  for (size_t side = 0; side < 2; ++side) {
    const size_t at = first + 4 * side;
    const auto time = number_of(words[at]), bus = number_of(words[at + 2]);
    if (!time || !bus || !number_of(words[at + 1]))
      return malformed(kNcclTests, line, "the time or a bandwidth is not a number");
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

// Removes the prefix of `mpirun --tag-output`: "[1,0]<stdout>:".
std::string untagged(const std::string& line) {
  const size_t end = line.find(">:");
  if (line.empty() || line[0] != '[' || end == std::string::npos) return line;
  const std::string tag = line.substr(0, end);
  return tag.ends_with("]<stdout") || tag.ends_with("]<stderr") ? line.substr(end + 2) : line;
}

// A test's own message about its failure: "host: Test CUDA failure common.cu:123 '...'".
bool shows_failure(const std::string& line) {
  const size_t at = line.find(": Test ");
  return at != std::string::npos && line.find(" failure ", at) != std::string::npos;
}

}  // namespace

Result<Imported> import_nccl_tests(const std::string& text) {
  Imported out;
  out.format = kNcclTests;
  std::vector<Row> rows;
  std::string model, failure;
  size_t ranks = 0, number = 0;
  bool ended = false;
  for (const auto& tagged : lines_of(text)) {
    ++number;
    const std::string line = untagged(tagged);
    const auto words = words_of(line);
    ended = ended || line.find("Avg bus bandwidth") != std::string::npos;
    if (failure.empty() && shows_failure(line)) failure = line;
    if (line.find("Out of bounds values") != std::string::npos && words.back() == "FAILED")
      out.problems.push_back(line.substr(line.find("Out of bounds")));
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") {
      ++ranks;
      if (const size_t at = line.find("] "); at != std::string::npos) model = line.substr(at + 2);
    }
    if (words.size() < 3 || !digits(words[0]) || !digits(words[1])) continue;
    TRY(const Row row, read_row(words, number));
    if (row.size > 0) rows.push_back(row);
  }
  if (rows.empty()) return fail(Code::invalid, "the nccl-tests output contains no row of measurements");
  if (!ended)
    return fail(Code::invalid,
                "the nccl-tests output has no last line (\"Avg bus bandwidth\"): the test did not finish" +
                    (failure.empty() ? "" : ": " + failure));
  if (!failure.empty()) out.problems.push_back(failure);
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
