// TokenMask: takes one-time tokens out of what a console says, before it is kept.
//
// A kernel prints its command line, which holds the token of a join, and so do some firmwares and boot
// loaders. What follows "muster.token=" is left out, whatever pieces it comes in: a terminal may wrap it, and
// put control sequences between. Rather too much is left out than too little. Thread: its owner's; pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// One per console: it remembers where it is.
class TokenMask {
 public:
  std::string pass(std::string_view bytes);

 private:
  enum class Escape { none, begun, sequence };
  bool is_control(char c);

  size_t matched_ = 0;  // of the words before a token
  bool hiding_ = false;
  size_t hidden_ = 0;
  Escape escape_ = Escape::none;
};

}  // namespace muster
