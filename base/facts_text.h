// FactsText: the inventory of a machine as it is stored and sent: JSON of base/facts.h. All copies share the
// text, so a copy costs nothing however long it is, and it is parsed once for all of them, when its content
// is first needed. Thread: values; copies may be used on several threads at once.
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
  // Null: empty, or no inventory.
  std::shared_ptr<const HardwareFacts> facts() const;
  // Of its content, however that is written: two texts with one digest have the same content. "" where
  // facts() is null.
  const std::string& digest() const;

  friend bool operator==(const FactsText& a, const FactsText& b) { return a.text() == b.text(); }

 private:
  struct Shared;
  const Shared* parsed() const;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster
