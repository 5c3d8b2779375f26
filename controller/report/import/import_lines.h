// Splits other programs' output into lines and words. Internal to the importers. Thread safety: stateless.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "base/split.h"
#include "controller/report/expected.h"
#include "controller/report/import/import.h"

namespace muster {

inline std::vector<std::string> lines_of(const std::string& text) { return split_lines(text, "\n\r"); }
inline std::vector<std::string> words_of(const std::string& line) { return split_words(line, " \t"); }
inline std::optional<double> number_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return {};
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
