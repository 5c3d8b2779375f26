// Names that are all text and must not be confused: a node's, an order's, a digest. A literal becomes one by
// itself, other text only by its constructor, and none becomes another. Each reads as text, and has the JSON
// form of text. Value types.
#pragma once

#include <fmt/core.h>

#include <compare>
#include <concepts>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

template <typename T>
concept PlainText = std::convertible_to<T, std::string_view>;

template <typename Tag>
class Name {
 public:
  Name() = default;
  explicit Name(std::string text) : text_(std::move(text)) {}
  template <size_t N>
  Name(const char (&literal)[N]) : text_(literal) {}
  template <typename Other>
  Name(const Name<Other>&) = delete;

  const std::string& str() const { return text_; }
  operator const std::string&() const { return text_; }
  bool empty() const { return text_.empty(); }
  const char* c_str() const { return text_.c_str(); }

  friend bool operator==(const Name&, const Name&) = default;
  friend auto operator<=>(const Name&, const Name&) = default;
  template <PlainText T>
  friend bool operator==(const Name& a, const T& b) {
    return a.text_ == b;
  }
  template <PlainText T>
  friend std::string operator+(const Name& a, const T& b) {
    return a.text_ + b;
  }
  template <PlainText T>
  friend std::string operator+(const T& a, const Name& b) {
    return a + b.text_;
  }

  friend std::ostream& operator<<(std::ostream& out, const Name& name) { return out << name.text_; }

 private:
  std::string text_;
};

using NodeName = Name<struct NodeTag>;
using OrderId = Name<struct OrderTag>;  // of one attempt, controller/run/node_run.h
using Digest = Name<struct DigestTag>;  // "sha256:<hex>", base/digest.h

}  // namespace muster

template <typename Tag>
struct std::hash<muster::Name<Tag>> {
  size_t operator()(const muster::Name<Tag>& name) const { return std::hash<std::string>()(name.str()); }
};

template <typename Tag>
struct fmt::formatter<muster::Name<Tag>> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const muster::Name<Tag>& name, Context& context) const {
    return fmt::formatter<std::string_view>::format(name.str(), context);
  }
};
