// gpu-burn: progress "N (X Gflop/s) - ..." over and over on one line, then a verdict per GPU. Its exit status
// says nothing.
#include <algorithm>
#include <map>

#include "controller/report/import_lines.h"

namespace muster {
namespace {

constexpr const char* kName = "gpu-burn";

// Largest value per GPU in "a - b - c" pieces that follow `mark`; `open` stands before each number, when not
// empty.
void collect(const std::string& text, const std::string& mark, const std::string& until,
             const std::string& open, std::map<size_t, double>& into) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t begin = at + mark.size(), end = std::min(text.find(until, begin), text.find('\n', begin));
    if (end == std::string::npos) continue;
    size_t gpu = 0;
    for (size_t piece = begin; piece < end; ++gpu) {
      const size_t next = std::min(text.find(" - ", piece), end);
      const std::string part = text.substr(piece, next - piece);
      const size_t from = open.empty() ? 0 : part.find(open);
      if (from != std::string::npos) {
        const auto words = words_of(part.substr(from + open.size()));
        if (const auto value = words.empty() ? std::nullopt : number_of(words[0]))
          into[gpu] = std::max(into[gpu], *value);
      }
      piece = next + 3;
    }
  }
}

}  // namespace

Result<Imported> import_gpu_burn(const std::string& text) {
  Imported out;
  out.format = kName;
  std::map<size_t, double> gflops, errors;
  collect(text, "proc'd:", "errors:", "(", gflops);
  collect(text, "errors:", "temps:", "", errors);
  const size_t tested = text.rfind("Tested ");
  if (tested == std::string::npos)
    return fail(Code::invalid, "gpu-burn output without its verdict (\"Tested N GPUs\"): it did not end");
  const auto lines = lines_of(text.substr(tested));
  const auto head = words_of(lines.front());
  const auto count = head.size() > 1 ? number_of(head[1]) : std::nullopt;
  if (!count || *count < 1) return fail(Code::invalid, "gpu-burn output: no number of GPUs in its verdict");
  size_t judged = 0;
  for (size_t i = 1; i < lines.size() && judged < static_cast<size_t>(*count); ++i) {
    const auto words = words_of(lines[i]);
    if (words.size() < 3 || words[0] != "GPU") continue;
    const std::string gpu = "GPU " + words[1].substr(0, words[1].find(':'));
    const bool ok = words[2] == "OK";
    out.values.push_back({"healthy", gpu, ok ? 1.0 : 0.0, "", "", 1});
    if (!ok) out.problems.push_back(gpu + " is " + words[2]);
    ++judged;
  }
  if (judged < static_cast<size_t>(*count))
    return fail(Code::invalid,
                fmt::format("gpu-burn output: {} of {:.0f} GPUs have a verdict", judged, *count));
  for (const auto& [gpu, value] : gflops)
    if (value > 0) out.values.push_back({"best", fmt::format("GPU {}", gpu), value, "GFLOP/s", "", 1});
  for (const auto& [gpu, value] : errors)
    if (value != 0) out.problems.push_back(fmt::format("GPU {} had {:.0f} errors", gpu, value));
  const size_t name = text.find(": "), end = text.find(" (UUID");
  const bool named = text.rfind("GPU 0: ", 0) == 0 && end != std::string::npos && name < end;
  out.title = fmt::format("{:.0f} GPUs{}", *count, named ? ", " + text.substr(name + 2, end - name - 2) : "");
  return out;
}

}  // namespace muster
