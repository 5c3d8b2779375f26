#include "base/unified_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/split.h"

namespace muster {
namespace {

constexpr size_t kDiffContext = 3;
constexpr size_t kLargestDiffTable = 16 << 20;  // cells

struct DiffLine {
  char mark;
  std::string text;
  size_t from, to;
};  // from, to: line numbers before this line, 0-based

// Longest common subsequence of the lines between the first and the last difference, by dynamic programming;
// if the table would be too large, all old lines are shown as removed and all new ones as added.
std::vector<DiffLine> edit_script(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t first = 0, last = 0;
  while (first < std::min(a.size(), b.size()) && a[first] == b[first]) ++first;
  while (last < std::min(a.size(), b.size()) - first && a[a.size() - 1 - last] == b[b.size() - 1 - last])
    ++last;
  const size_t rows = a.size() - first - last, columns = b.size() - first - last;
  const bool table = rows * columns <= kLargestDiffTable;
  std::vector<uint32_t> common(table ? (rows + 1) * (columns + 1) : 0, 0);
  const auto at = [&](size_t i, size_t j) -> uint32_t& {
    return common[(i - first) * (columns + 1) + (j - first)];
  };
  if (table)
    for (size_t i = first + rows; i-- > first;)
      for (size_t j = first + columns; j-- > first;)
        at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  std::vector<DiffLine> script;
  for (size_t k = 0; k < first; ++k) script.push_back({' ', a[k], k, k});
  size_t i = first, j = first;
  while (i < first + rows || j < first + columns) {
    const bool left = i < first + rows, right = j < first + columns;
    if (table && left && right && a[i] == b[j]) {
      script.push_back({' ', a[i], i, j});
      ++i, ++j;
    } else if (left && (!right || !table || at(i + 1, j) >= at(i, j + 1))) {
      script.push_back({'-', a[i], i, j});
      ++i;
    } else {
      script.push_back({'+', b[j], i, j});
      ++j;
    }
  }
  for (; i < a.size(); ++i, ++j) script.push_back({' ', a[i], i, j});
  return script;
}

std::string diff_hunk(const std::vector<DiffLine>& script, size_t begin, size_t end) {
  size_t removed = 0, added = 0;
  std::string body;
  for (size_t k = begin; k < end; ++k) {
    removed += script[k].mark != '+';
    added += script[k].mark != '-';
    body += script[k].mark + script[k].text + "\n";
  }
  return fmt::format("@@ -{},{} +{},{} @@\n{}", script[begin].from + 1, removed, script[begin].to + 1, added,
                     body);
}

}  // namespace

std::string unified_diff(const std::string& from, const std::string& to, const std::string& from_name,
                         const std::string& to_name) {
  const auto script = edit_script(split_lines(from), split_lines(to));
  std::string out;
  size_t k = 0;
  while (k < script.size()) {
    while (k < script.size() && script[k].mark == ' ') ++k;
    if (k == script.size()) break;
    const size_t begin = k - std::min(k, kDiffContext);
    size_t last = k;  // last changed line of this hunk: the next is too far away
    for (size_t n = k; n < script.size() && n <= last + 2 * kDiffContext; ++n)
      if (script[n].mark != ' ') last = n;
    k = last + 1;
    out += diff_hunk(script, begin, std::min(last + 1 + kDiffContext, script.size()));
  }
  return out.empty() ? "" : fmt::format("--- {}\n+++ {}\n{}", from_name, to_name, out);
}

}  // namespace muster
