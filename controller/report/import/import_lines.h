// What the importers share: one function for each format, and how lines, words and numbers are read. Internal
// to this folder. Thread safety: stateless.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "base/split.h"
#include "controller/report/expected.h"
#include "controller/report/import/import.h"
#include "controller/report/import/import_text.h"

namespace muster {

Result<Imported> import_nccl_tests(const Run& run);
Result<Imported> import_gpu_burn(const Run& run);
Result<Imported> import_nvbandwidth(const Run& run);
Result<Imported> import_fio(const Run& run);
Result<Imported> import_ibnetdiscover(const Run& run);

// Below this share of what it is compared with, a value is a problem: of equal parts in one output the best,
// of a GPU model its figure. Settings that no output shows (clocks, NUMA nodes) explain smaller differences.
inline constexpr double kFarBelow = 0.8;

inline std::vector<std::string> lines_of(const std::string& text) { return split_lines(text, "\n\r"); }
inline std::vector<std::string> words_of(const std::string& line) { return split_words(line, " \t"); }
// Finite numbers only.
inline std::optional<double> number_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}
inline bool digits(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

inline Error malformed(const char* format, size_t line, const std::string& what) {
  return fail(Code::invalid, fmt::format("{} output, line {}: {}", format, line, what));
}

// Sets the expected value of an imported value from its GPU model.
inline void expect_gpu(ImportedValue& value, const std::string& model, const char* quantity) {
  HardwareFacts facts;
  facts.gpus.emplace_back().model = model;
  const Derived derived = derive(quantity, Json(), &facts);
  value.expected = derived.value;
  value.expected_text = derived.text + (derived.source.empty() ? "" : " (" + derived.source + ")");
}

}  // namespace muster
