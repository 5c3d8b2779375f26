// LongText: a text that its copies share, since the report of a large cluster is a hundred megabytes long.
// Thread safety: a value type; the shared text never changes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

class LongText {
 public:
  LongText() = default;
  LongText(std::string text) : shared_(std::make_shared<const std::string>(std::move(text))) {}
  LongText(const char* text) : LongText(std::string(text)) {}

  const std::string& text() const {
    static const std::string kNone;
    return shared_ ? *shared_ : kNone;
  }

  friend bool operator==(const LongText& a, std::string_view b) { return a.text() == b; }

 private:
  std::shared_ptr<const std::string> shared_;
};

}  // namespace muster
