// Keys that are created once and read from then on. The file exists completely or not at all. Thread: any.
#pragma once

#include <functional>
#include <string>

#include "base/os.h"
#include "base/pki.h"
#include "base/result.h"

namespace muster {

// Reads `path`, or makes its content once and keeps it.
Result<std::string> kept_text(const Files& files, const std::string& path, unsigned mode,
                              const std::function<Result<std::string>()>& make);

// Of a pair: the secret part has mode 0600. `open` is written last: a key without it is replaced.
struct PairPaths {
  std::string secret, open;
};
Result<pki::KeyPair> kept_pair(const Files& files, const PairPaths& paths,
                               const std::function<Result<pki::KeyPair>()>& make);

}  // namespace muster
