// JSON text assembled from parts: dump_json() writes a value the same way alone and inside another. No I/O.
#pragma once

#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/json.h"

namespace muster {

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
