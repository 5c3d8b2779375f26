#include "controller/api/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kContext = 3;

struct Line { char mark; std::string text; size_t from, to; };  // from, to: line numbers before this line, 0-based

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Longest common subsequence, by table: specs are a few thousand lines at most.
std::vector<Line> edit_script(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<uint32_t>> common(a.size() + 1, std::vector<uint32_t>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<Line> script;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool same = i < a.size() && j < b.size() && a[i] == b[j];
    if (same) {
      script.push_back({' ', a[i], i, j});
      ++i, ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      script.push_back({'-', a[i], i, j});
      ++i;
    } else {
      script.push_back({'+', b[j], i, j});
      ++j;
    }
  }
  return script;
}

std::string hunk(const std::vector<Line>& script, size_t begin, size_t end) {
  size_t removed = 0, added = 0;
  std::string body;
  for (size_t k = begin; k < end; ++k) {
    removed += script[k].mark != '+';
    added += script[k].mark != '-';
    body += script[k].mark + script[k].text + "\n";
  }
  return fmt::format("@@ -{},{} +{},{} @@\n{}", script[begin].from + 1, removed, script[begin].to + 1, added, body);
}

}  // namespace

std::string unified_diff(const std::string& from, const std::string& to, const std::string& from_name,
                         const std::string& to_name) {
  const auto script = edit_script(lines_of(from), lines_of(to));
  std::string out;
  size_t k = 0;
  while (k < script.size()) {
    while (k < script.size() && script[k].mark == ' ') ++k;
    if (k == script.size()) break;
    const size_t begin = k - std::min(k, kContext);
    size_t last = k;  // last changed line of this hunk: the next is too far away
    for (size_t n = k; n < script.size() && n <= last + 2 * kContext; ++n)
      if (script[n].mark != ' ') last = n;
    k = last + 1;
    out += hunk(script, begin, std::min(last + 1 + kContext, script.size()));
  }
  return out.empty() ? "" : fmt::format("--- {}\n+++ {}\n{}", from_name, to_name, out);
}

}  // namespace muster::api
