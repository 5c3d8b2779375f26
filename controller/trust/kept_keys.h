// Keys that are created once and then read. A file is written completely or not at all. Thread: any.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "sys/os.h"
#include "sys/pki.h"

namespace muster {

// Reads `path`; if it does not exist, writes what `make` returns to it and returns that.
Result<std::string> kept_text(const Files& files, const std::string& path, unsigned mode,
                              const std::function<Result<std::string>()>& make);

// Paths of a key pair. `secret` has mode 0600; `open` is written last: a `secret` without `open` is replaced.
struct PairPaths {
  std::string secret, open;
};
Result<pki::KeyPair> kept_pair(const Files& files, const PairPaths& paths,
                               const std::function<Result<pki::KeyPair>()>& make);
// As kept_pair, in a folder that several processes may use at the same time: one of them creates the pair,
// the others wait for it.
Result<pki::KeyPair> shared_pair(const std::string& folder, const PairPaths& paths,
                                 const std::function<Result<pki::KeyPair>()>& make);

}  // namespace muster
