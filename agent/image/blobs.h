// Published files of an image, fetched and checked: a file that does not match its digest is fetched again,
// and never used. Thread: blocking; a BlobSource belongs to one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/manifest.h"
#include "base/result.h"
#include "base/time.h"
#include "base/wire.h"

namespace muster {

// Reads published files. Each worker has a source of its own.
class BlobSource {
 public:
  virtual ~BlobSource() = default;
  virtual Result<std::string> whole(const std::string& path) = 0;
  virtual Result<std::string> range(const std::string& path, uint64_t offset, uint64_t size) = 0;
};
// HTTP with Range requests. `base_url`: "http://10.20.0.1:7480".
Result<std::unique_ptr<BlobSource>> http_source(const std::string& base_url);
using MakeSource = std::function<Result<std::unique_ptr<BlobSource>>()>;

struct WriteOptions {
  int threads = 0;  // 0: one per core, at least two
  uint64_t request_bytes = 8 << 20;
  int attempts = 8;          // per request
  DurationMs backoff = 250;  // doubles, up to 8 s
};

// Retries a call after a temporary failure. Corrupt answers count as such, because a damaged transfer is as
// likely as a damaged file.
template <typename Call>
auto retry(const std::function<bool()>& cancelled, const WriteOptions& options, Call call) {
  DurationMs pause = options.backoff;
  for (int attempt = 1;; ++attempt) {
    auto result = call();
    if (result || attempt >= options.attempts || (cancelled && cancelled())) return result;
    const Code code = result.error().code;
    if (code != Code::unavailable && code != Code::timeout && code != Code::corrupt) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    pause = std::min<DurationMs>(pause * 2, 8 * kSecond);
  }
}

// "/images/x/manifest.json" -> "/images/x/"
std::string folder_of_path(const std::string& path);
// corrupt: not the job's image.
Result<ImageManifest> fetch_manifest(const wire::ImageJob& job, BlobSource& source);
// Role -> content. invalid: the image has no kernel or no loader.
Result<std::map<std::string, std::string>> fetch_files(const wire::ImageJob& job,
                                                       const ImageManifest& manifest, BlobSource& source);

}  // namespace muster
