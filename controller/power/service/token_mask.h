// TokenMask: removes one-time tokens from console output before it is kept.
//
// A kernel prints its command line, which contains a join token, and so do some firmwares and boot loaders.
// Text after "muster.token=" is removed even if it arrives in pieces: a terminal may wrap it and insert
// control sequences. In doubt it removes too much rather than too little. Thread: its owner's; no I/O.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// One per console: it keeps state between pieces of output.
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
