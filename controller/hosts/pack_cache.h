// PackCache: gzipped programs to be sent to hosts. Each program is compressed once, which takes up to a
// second, and all hosts get the same bytes.
//
// Thread: any; several callers that need the same program wait for the first one to compress it.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

namespace muster {

struct PackedProgram {
  std::shared_ptr<const std::string> bytes;  // gzip
  size_t size = 0;                           // when unpacked
};

class PackCache {
 public:
  // Returns a program; calls `read` if it is not cached. A failure is retried at the next call.
  Result<PackedProgram> get(const std::string& key, const std::function<Result<std::string>()>& read);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Result<PackedProgram>>> packed_;
};

// Returns the cache of this process, which all its sessions share.
PackCache& process_pack_cache();

}  // namespace muster
