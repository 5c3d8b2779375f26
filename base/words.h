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

}  // namespace muster
