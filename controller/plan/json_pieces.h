// JSON assembled from text: dump_json() writes a part the same way alone and within the whole. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/json.h"

namespace muster {

// The text of an object with one more member, whose value is given as text.
struct TextAround {
  std::string before, after;
};
TextAround text_around(const Json& others, const std::string& key);

// sha256(dump_ascii(json)) of JSON that comes as pieces of its text. Pieces end between characters.
class JsonDigest {
 public:
  void add(std::string_view text);
  std::string finish();

 private:
  void add_escaped(std::string_view text);

  std::string waiting_;  // small pieces are digested together
  Sha256 sha_;
};

}  // namespace muster
