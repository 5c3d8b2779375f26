// gpu-burn: repeated progress "N (X Gflop/s) - ..." on one line, then a verdict per GPU. Its exit status is
// meaningless, and it reports "OK" even for a GPU that it could not use.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

constexpr const char* kGpuBurn = "gpu-burn";

// Returns the largest absolute value per GPU (counters wrap) in the "a - b  (DIED!)- c" pieces that follow
// `mark`; `open`, if not empty, precedes each number.
void collect(const std::string& text, const std::string& mark, const std::string& until,
             const std::string& open, std::map<size_t, double>& into) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t begin = at + mark.size(), end = std::min(text.find(until, begin), text.find('\n', begin));
    if (end == std::string::npos) continue;
    size_t gpu = 0;
    for (size_t piece = begin; piece < end; ++gpu) {
      const size_t next = std::min(text.find("- ", piece), end);
      const std::string part = text.substr(piece, next - piece);
      const size_t from = open.empty() ? 0 : part.find(open);
      if (from != std::string::npos) {
        const auto words = words_of(part.substr(from + open.size()));
        if (const auto value = words.empty() ? std::nullopt : number_of(words[0]))
          if (std::abs(*value) >= std::abs(into[gpu])) into[gpu] = *value;
      }
      piece = next + 2;
    }
  }
}

// Returns how far the last line of progress had come: "100.0%  proc'd: ...".
double last_percent(const std::string& text) {
  const size_t end = text.rfind("%  proc'd:");
  if (end == std::string::npos) return 0;
  const size_t before = text.find_last_of(" \t\r\n", end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return number_of(text.substr(begin, end - begin)).value_or(0);
}

// Returns the GPUs on which nothing was computed. One that had not begun when the output was cut off may have
// since.
std::vector<size_t> idle_gpus(const std::string& text, size_t count) {
  std::map<size_t, double> done;
  collect(text, "proc'd:", "errors:", "", done);
  std::vector<size_t> idle;
  for (size_t gpu = 0; gpu < count; ++gpu)
    if (const auto it = done.find(gpu); it == done.end() || it->second <= 0) idle.push_back(gpu);
  if (last_percent(text) < 99 && idle.size() < count) idle.clear();
  return idle;
}

}  // namespace

Result<Imported> import_gpu_burn(const Run& run) {
  const std::string& text = run.text;
  Imported out;
  out.format = kGpuBurn;
  std::map<size_t, double> gflops, errors;
  collect(text, "proc'd:", "errors:", "(", gflops);
  collect(text, "errors:", "temps:", "", errors);
  const size_t tested = text.rfind("Tested ");
  if (tested == std::string::npos)
    return fail(Code::invalid,
                "the gpu-burn output has no verdict (\"Tested N GPUs\"): gpu-burn did not finish");
  const auto lines = lines_of(text.substr(tested));
  const auto head = words_of(lines.front());
  const auto count = head.size() > 1 ? number_of(head[1]) : std::nullopt;
  // More than an int holds is no number of GPUs, and need not fit a size_t.
  if (!count || *count < 1 || *count > std::numeric_limits<int>::max())
    return fail(Code::invalid, "gpu-burn output: the verdict does not state the number of GPUs");
  for (const auto& line : lines_of(text))
    if (line.starts_with("Couldn't init a GPU")) out.problems.push_back(line);
  const auto idle = idle_gpus(text, std::min(static_cast<size_t>(*count), lines.size()));
  size_t judged = 0;
  for (size_t i = 1; i < lines.size() && judged < static_cast<size_t>(*count); ++i) {
    const auto words = words_of(lines[i]);
    if (words.size() < 3 || words[0] != "GPU") continue;
    const std::string gpu = "GPU " + words[1].substr(0, words[1].find(':'));
    const bool ok = words[2] == "OK", computed = std::count(idle.begin(), idle.end(), judged) == 0;
    out.values.push_back({"healthy", gpu, ok && computed ? 1.0 : 0.0, "", "", 1});
    if (!ok) out.problems.push_back(gpu + " is " + words[2]);
    if (!computed) out.problems.push_back(gpu + " computed nothing");
    ++judged;
  }
  if (judged < static_cast<size_t>(*count))
    return fail(Code::invalid,
                fmt::format("gpu-burn output: only {} of {:.0f} GPUs have a verdict", judged, *count));
  size_t without_speed = 0;
  for (const auto& [gpu, value] : gflops)
    if (value > 0)
      out.values.push_back({"best", fmt::format("GPU {}", gpu), value, "GFLOP/s", "", 1});
    else
      ++without_speed;
  if (without_speed > 0)
    out.left_out.push_back({fmt::format("speed of {} of {} GPUs", without_speed, gflops.size()),
                            "the output has 0 Gflop/s: no measurement of them had ended"});
  for (const auto& [gpu, value] : errors)
    if (value != 0)
      out.problems.push_back(value > 0
                                 ? fmt::format("GPU {} had {:.0f} errors", gpu, value)
                                 : fmt::format("GPU {} had more errors than its counter can hold", gpu));
  const std::string first = "GPU 0: ";
  const size_t name = text.find(first), end = name == text.npos ? name : text.find(" (UUID", name);
  out.title =
      fmt::format("{:.0f} GPUs{}", *count,
                  end == text.npos ? "" : ", " + text.substr(name + first.size(), end - name - first.size()));
  return out;
}

}  // namespace muster
