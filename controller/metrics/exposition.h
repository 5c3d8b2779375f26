// Prometheus' text format, version 0.0.4, written family by family. A family without a sample leaves nothing.
// Labels may hold any bytes: what the format reserves is escaped, and what is not UTF-8 becomes U+FFFD, since
// Prometheus refuses a whole scrape for one such byte. Thread safety: a value type; no clock, no I/O.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace muster {

class Exposition {
 public:
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  enum class Type { gauge, counter };
  struct Label {
    std::string_view name, value;
  };
  using Labels = std::initializer_list<Label>;

  // The samples until the next call belong to this family. What is passed must outlive them.
  Exposition& family(std::string_view name, Type type, std::string_view help);
  Exposition& sample(Labels labels, int64_t value);
  // A point in time or a duration, which is written in seconds.
  Exposition& seconds(Labels labels, int64_t ms);
  std::string take() { return std::move(text_); }

 private:
  void begin(Labels labels);
  void escaped(std::string_view text, bool quoted);

  std::string text_;
  std::string_view name_, help_;
  Type type_ = Type::gauge;
  bool named_ = false;  // the family's HELP and TYPE are written
};

}  // namespace muster
