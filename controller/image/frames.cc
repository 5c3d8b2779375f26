// Splits a raw file system into frames, compresses them on all cores, and writes them in order.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/digest.h"
#include "controller/image/image.h"

namespace muster {
namespace {

struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

struct Piece {
  std::string raw = {};
  std::string stored = {};
  ImageFrame frame = {};
  bool failed = false;
};

bool all_zero(const std::string& bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

void compress(Piece& piece, int level) {
  piece.frame.raw_bytes = static_cast<uint32_t>(piece.raw.size());
  piece.frame.zero = all_zero(piece.raw);
  if (piece.frame.zero) return;
  piece.stored.resize(ZSTD_compressBound(piece.raw.size()));
  const size_t n =
      ZSTD_compress(piece.stored.data(), piece.stored.size(), piece.raw.data(), piece.raw.size(), level);
  piece.failed = ZSTD_isError(n);
  if (piece.failed) return;
  piece.stored.resize(n);
  piece.frame.stored_bytes = static_cast<uint32_t>(n);
  piece.frame.raw_sha256 = sha256(piece.raw);
  piece.frame.stored_sha256 = sha256(piece.stored);
}

Status read_at(int fd, std::string& out, uint64_t offset) {
  for (size_t done = 0; done < out.size();) {
    const ssize_t n = ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(Code::failed,
                  fmt::format("reading the raw image: {}",
                              n < 0 ? strerror(errno) : "the file was truncated while it was read"));
    done += static_cast<size_t>(n);
  }
  return Ok{};
}

Status write_all(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(Code::failed, fmt::format("writing frames: {}", strerror(errno)));
    done += static_cast<size_t>(n);
  }
  return Ok{};
}

}  // namespace

Result<ImageManifest> write_frames(const std::string& raw_path, const std::string& frames_path, int level) {
  const Fd in{::open(raw_path.c_str(), O_RDONLY | O_CLOEXEC)};
  const Fd out{::open(frames_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (in.fd < 0) return fail(Code::not_found, raw_path + ": " + strerror(errno));
  if (out.fd < 0) return fail(Code::failed, frames_path + ": " + strerror(errno));
  struct stat st;
  if (::fstat(in.fd, &st) != 0 || st.st_size == 0) return fail(Code::failed, raw_path + ": empty");
  ImageManifest m;
  m.raw_size = static_cast<uint64_t>(st.st_size);
  const uint64_t frames = (m.raw_size + m.frame_size - 1) / m.frame_size;
  const size_t batch = std::max(1u, std::thread::hardware_concurrency());
  uint64_t offset = 0;
  // Frames are independent: a batch of one per core is compressed, then written in order.
  for (uint64_t first = 0; first < frames; first += batch) {
    std::vector<Piece> pieces(std::min<uint64_t>(batch, frames - first));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const uint64_t at = (first + i) * m.frame_size;
      pieces[i].raw.resize(std::min<uint64_t>(m.frame_size, m.raw_size - at));
      TRY_(read_at(in.fd, pieces[i].raw, at));
    }
    for (auto& piece : pieces) threads.emplace_back([&piece, level] { compress(piece, level); });
    for (auto& t : threads) t.join();
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].failed) return fail(Code::failed, "zstd could not compress a frame");
      TRY_(write_all(out.fd, pieces[i].stored));
      pieces[i].frame.index = static_cast<uint32_t>(first + i);
      pieces[i].frame.offset = pieces[i].frame.zero ? 0 : offset;
      offset += pieces[i].frame.stored_bytes;
      m.frames.push_back(std::move(pieces[i].frame));
    }
  }
  if (::fsync(out.fd) != 0) return fail(Code::failed, "fsync of the frames: " + std::string(strerror(errno)));
  return m;
}

}  // namespace muster
