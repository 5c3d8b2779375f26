// PackCache: programs as they are sent to hosts, gzipped, each once for all of them. A host gets the same
// bytes as the one before; packing takes most of a second.
//
// Thread: any; several callers that need the same program wait for the first one.
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
  // `read` is called when it is not there yet; a failure is retried the next time.
  Result<PackedProgram> get(const std::string& key, const std::function<Result<std::string>()>& read);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Result<PackedProgram>>> packed_;
};

// Of this process: what it holds is the same for every session.
PackCache& process_pack_cache();

}  // namespace muster
