// SHA-256 and small encodings. Digests are written "sha256:" + 64 lower-case hex digits.
// Thread: any; Sha256 objects belong to one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  void update(std::string_view bytes);
  // Returns "sha256:<hex>" and resets the object.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::string_view bytes);
// Of an open file, read in pieces from its beginning; its position stays. `path` is for the message.
Result<std::string> sha256_open(int fd, const std::string& path);
Result<std::string> sha256_file(const std::string& path);

// The first 12 hex digits of a digest, as operators see it and give it; "" for "".
std::string short_digest(std::string_view digest);

std::string to_hex(std::string_view bytes);
std::string to_base64(std::string_view bytes);
Result<std::string> from_base64(std::string_view text);
// From the system's generator, as hex.
std::string random_hex(size_t bytes);
bool constant_time_equal(std::string_view a, std::string_view b);

}  // namespace muster
