// Secrets: how a text refers to one, and how its value is kept out of other texts.
//
// Specs, playbooks and plans have the reference "secret:NAME" as a whole text; the controller replaces it by
// the value when it sends an order to an agent. What the agent reports of that order passes a SecretMask, so
// that no value is in an event, a journal, a report or a log. Thread safety: value types, stateless.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace muster {

inline constexpr std::string_view kSecretPrefix = "secret:";

inline bool is_secret_reference(std::string_view text) { return text.starts_with(kSecretPrefix); }
// True if a text in it, at any depth, is a reference. Keys are none.
bool refers_to_secret(const Json& value);

// The secrets of an order, name -> value: `resolved` is `named` with each reference replaced.
std::map<std::string, std::string> secrets_of(const Json& named, const Json& resolved);

// A shorter value is part of too many other texts to be replaced in them: an order with one is not sent.
inline constexpr size_t kShortestSecret = 4;

// Replaces values by "***": each as a whole, its lines, its base64 alone or within that of a longer text, all
// of these as JSON writes them, and what a shortened text ("...", base/utf8.h) has left of it. Without values
// it changes nothing.
class SecretMask {
 public:
  SecretMask() = default;
  explicit SecretMask(const std::vector<std::string>& values);

  bool finds_in(std::string_view text) const;
  // Only a whole value, also as JSON writes it.
  bool finds_value_in(std::string_view text) const;
  std::string text(const std::string& text) const;
  // In all its texts and keys. Numbers stay.
  Json json(const Json& value) const;

 private:
  std::vector<std::string> parts_, values_;  // values_: those of parts_ that are a whole value
};

}  // namespace muster
