// FactsText: a machine's inventory in the JSON form (base/facts.h) in which it is stored and sent. Copies
// share one text, so copying is cheap; it is parsed once for all copies, when its content is first needed.
// Thread safety: a value type; copies may be used on several threads at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/facts.h"

namespace muster {

class FactsText {
 public:
  FactsText() = default;
  FactsText(std::string text);
  FactsText(const char* text) : FactsText(std::string(text)) {}

  bool empty() const { return !shared_; }
  const std::string& text() const;
  operator std::string_view() const { return text(); }
  // Null if the text is empty or not an inventory.
  std::shared_ptr<const HardwareFacts> facts() const;
  // Digest of the content, independent of formatting. "" if facts() is null.
  const std::string& digest() const;

  friend bool operator==(const FactsText& a, const FactsText& b) { return a.text() == b.text(); }

 private:
  struct Shared;
  const Shared* parsed() const;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster
