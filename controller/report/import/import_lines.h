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
#include "controller/report/expected.h"
#include "controller/report/import/import.h"

namespace muster {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

inline std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    at = std::min(line.find_first_of(" \t", begin), line.size());
    out.push_back(line.substr(begin, at - begin));
  }
  return out;
}

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
  value.expected_text = derived.text;
}

}  // namespace muster
