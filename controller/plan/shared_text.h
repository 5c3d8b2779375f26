// SharedText: text in pieces that all copies share, so copying a SharedText copies no text. A value type; the
// shared pieces are immutable.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/json.h"

namespace muster {

using TextPtr = std::shared_ptr<const std::string>;

class SharedText {
 public:
  SharedText() = default;
  explicit SharedText(TextPtr whole) { add(std::move(whole)); }
  explicit SharedText(std::string own) { add(std::make_shared<const std::string>(std::move(own))); }

  void add(TextPtr whole);
  void add(TextPtr of, size_t begin, size_t end);  // its bytes from begin to end
  void add_literal(std::string_view text);         // must have static storage duration
  void add(const SharedText& other);

  size_t size() const;
  std::string text() const;
  // Pieces come in order.
  void each(const std::function<void(std::string_view)>& take) const;
  // Calls `take` with each whole text from which a piece is taken.
  void each_source(const std::function<void(std::string_view)>& take) const;

  friend bool operator==(const SharedText& a, const SharedText& b) { return a.text() == b.text(); }

 private:
  struct Piece {
    TextPtr owner;  // null: static storage
    std::string_view text;
  };
  std::vector<Piece> pieces_;
};

// Stores each distinct text once; of() returns the shared copy.
class TextPool {
 public:
  TextPtr of(std::string text);

 private:
  std::map<std::pair<size_t, std::string_view>, TextPtr> texts_;  // by length first: most differ in length
};

// JSON text assembled from parts: dump_json() writes a value the same way alone and inside another.

// The text of an object before and after the value of one member, which is inserted as text.
struct TextAround {
  std::string before, after;
};
TextAround text_around(const Json& others, const std::string& key);

// Computes sha256(dump_ascii(json)) from pieces of the JSON text. No piece may end inside a character.
class JsonDigest {
 public:
  void add(std::string_view text);
  std::string finish();

 private:
  void add_escaped(std::string_view text);

  std::string waiting_;  // small pieces, collected to be digested together
  Sha256 sha_;
};

}  // namespace muster
