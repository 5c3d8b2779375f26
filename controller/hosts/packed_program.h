// A program as hosts receive it: gzipped, each once, and the same bytes for all hosts.
//
// A build puts FILE.gz beside a program that is carried to hosts (cmake/packed.cmake), which saves seconds of
// compressing at every start. It is used only if it unpacks to exactly the bytes of FILE, so one that is
// older, damaged or of another program is not sent; then FILE is packed here. Thread: any.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

struct PackedProgram {
  std::shared_ptr<const std::string> bytes;  // gzip
  size_t size = 0;                           // when unpacked
};

Result<PackedProgram> pack(std::string_view content);
Result<PackedProgram> packed_program(const Files& files, const std::string& path);

// Each program is packed once; several callers of one program wait for the first one.
class PackCache {
 public:
  // Returns a program; calls `make` if it is not cached. A failure is retried at the next call.
  Result<PackedProgram> get(const std::string& key, const std::function<Result<PackedProgram>()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Result<PackedProgram>>> packed_;
};

// The cache of this process, which all its sessions share.
PackCache& process_pack_cache();

}  // namespace muster
