// A file written on one node and read on another: verifies that shared storage is shared and preserves data.
//
// How to run:  muster-accept checksum-write --path /shared --fstype fuse.mfs --source mfsmaster:9421
//                                           --name f1 --size 4 --seed 7
//              muster-accept checksum-read  --path /shared ... --name f1 --expect sha256:... [--remove]
//                                           (on a different node)
// Reference:   the SHA-256 of the generated content: as the writer printed it (--expect, passed on by the
//              controller), or computed by the reader from seed and size. It is never read through the file
//              system under test. Content is seeded pseudo-random, so no block is zero and no two blocks are
//              equal.
// Expected:    equal digests; speed is reported, not judged.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>

#include "base/digest.h"
#include "kernels/common/kernels.h"
#include "kernels/drives/drives.h"

namespace muster::kernels {
namespace {

constexpr size_t kChunk = 1 << 20;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error system_error(std::string_view what, const std::string& path) {
  return fail(Code::failed, fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

Result<std::string> file_of(const Files& files, const ChecksumOptions& options) {
  if (options.name.empty() || options.name[0] == '.' || options.name.find('/') != std::string::npos)
    return fail(Code::invalid, fmt::format("'{}' is not a plain file name", options.name));
  TRY_(check_mount(files, options.mount));
  return files.real(options.mount.path + "/" + options.name);
}

// Computes the content of the writer's file from the seed; `take` gets it piece by piece. Returns its digest.
template <typename Take>
Result<std::string> make_content(const ChecksumOptions& options, Take take) {
  SplitMix random(options.seed);
  Sha256 digest;
  std::vector<char> chunk(kChunk);
  for (uint64_t left = options.size_bytes; left > 0;) {
    const size_t bytes = static_cast<size_t>(std::min<uint64_t>(left, kChunk));
    fill_random(random, chunk.data(), bytes);
    digest.update({chunk.data(), bytes});
    TRY_(take(chunk.data(), bytes));
    left -= bytes;
  }
  return digest.finish();
}

Result<std::string> write_content(const std::string& path, const ChecksumOptions& options) {
  // Creates a new file instead of opening an existing one: where root is mapped to `nobody` and the folder is
  // world-writable, the kernel refuses to open an existing one for creation (fs.protected_regular).
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("removing", path);
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (fd.get() < 0) return system_error("creating", path);
  TRY(auto digest, make_content(options, [&](const char* bytes, size_t size) -> Status {
        for (size_t done = 0; done < size;) {
          const ssize_t n = ::write(fd.get(), bytes + done, size - done);
          if (n < 0 && errno == EINTR) continue;
          if (n <= 0) return system_error("writing", path);
          done += static_cast<size_t>(n);
        }
        return Ok{};
      }));
  if (::fsync(fd.get()) != 0) return system_error("syncing", path);
  return digest;
}

Result<std::string> read_content(const std::string& path, uint64_t& bytes) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) return system_error("opening", path);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);  // read the storage, not this node's page cache
  Sha256 digest;
  std::vector<char> chunk(kChunk);
  while (true) {
    const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("reading", path);
    if (n == 0) return digest.finish();
    digest.update({chunk.data(), static_cast<size_t>(n)});
    bytes += static_cast<uint64_t>(n);
  }
}

Measurement begin(const char* mode, const ChecksumOptions& options) {
  Measurement out;
  out.check = "checksum";
  out.detail = {{"mode", mode},
                {"path", options.mount.path},
                {"fstype", options.mount.fstype},
                {"source", options.mount.source},
                {"name", options.name}};
  return out;
}

Measurement failed(Measurement out, const Error& error, const std::string& faulty_parts) {
  const bool refused = error.code == Code::denied || error.code == Code::invalid;
  const bool corrupt = error.code == Code::corrupt;
  out.outcome = refused ? Outcome::refused : corrupt ? Outcome::corrupt : Outcome::failed;
  out.error = error.message;
  if (!refused) out.faulty_parts.push_back(faulty_parts);
  return out;
}

}  // namespace

Measurement run_checksum_write(const Files& files, const ChecksumOptions& options) {
  Measurement out = begin("write", options);
  auto path = file_of(files, options);
  if (!path) return failed(out, path.error(), options.mount.path);
  const double start = seconds_now();
  auto digest = write_content(*path, options);
  if (!digest) return failed(out, digest.error(), options.mount.path);
  const double took = std::max(seconds_now() - start, 1e-9);
  out.metrics["write_mbps"] = {static_cast<double>(options.size_bytes) / took / 1e6, "MB/s"};
  out.detail["sha256"] = *digest;
  out.detail["size_bytes"] = options.size_bytes;
  out.detail["seed"] = options.seed;
  return out;
}

Measurement run_checksum_read(const Files& files, const ChecksumOptions& options) {
  Measurement out = begin("read", options);
  std::string expect = options.expect;
  if (expect.empty()) expect = make_content(options, [](auto...) -> Status { return Ok{}; }).value();
  auto path = file_of(files, options);
  if (!path) return failed(out, path.error(), options.mount.path);
  const double start = seconds_now();
  uint64_t bytes = 0;
  auto digest = read_content(*path, bytes);
  if (!digest) return failed(out, digest.error(), options.mount.path);
  const double took = std::max(seconds_now() - start, 1e-9);
  out.metrics["read_mbps"] = {static_cast<double>(bytes) / took / 1e6, "MB/s"};
  out.detail["sha256"] = *digest;
  out.detail["size_bytes"] = bytes;
  out.detail["expected"] = expect;
  if (*digest != expect)
    return failed(out,
                  fail(Code::corrupt, fmt::format("{} has digest {}, but its writer printed {}", options.name,
                                                  *digest, expect)),
                  options.mount.path);
  if (options.remove_after)
    if (auto removed = files.remove(options.mount.path + "/" + options.name); !removed)
      return failed(out, removed.error(), options.mount.path);
  return out;
}

}  // namespace muster::kernels
