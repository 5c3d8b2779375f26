// Names of enum values as text: one table of pairs, read in both directions. Pure functions.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace muster {

template <typename Enum, size_t N>
using Words = std::array<std::pair<Enum, std::string_view>, N>;

// "" if it is not in the table.
template <typename Enum, size_t N>
constexpr std::string_view word_of(const Words<Enum, N>& table, Enum value) {
  for (const auto& [known, word] : table)
    if (known == value) return word;
  return "";
}

template <typename Enum, size_t N>
constexpr std::optional<Enum> value_of(const Words<Enum, N>& table, std::string_view text) {
  for (const auto& [value, word] : table)
    if (word == text) return value;
  return std::nullopt;
}

// In the order of the table.
template <typename Enum, size_t N>
constexpr std::array<Enum, N> values_of(const Words<Enum, N>& table) {
  std::array<Enum, N> values{};
  for (size_t i = 0; i < N; ++i) values[i] = table[i].first;
  return values;
}

}  // namespace muster
