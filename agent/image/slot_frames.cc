#include "agent/image/slot_frames.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/digest.h"

namespace muster {
namespace {

bool all_zero(const std::string& bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace

Result<FrameCounts> SlotFrames::run(bool keep) {
  std::vector<bool> needed(m_.frames.size());
  for (const auto& f : m_.frames) needed[f.index] = !f.zero;
  if (keep) TRY_(keep_what_is_right(needed));
  TRY_(zero_frames(keep));
  make_batches(needed);
  for (const auto& b : batches_) total_ += b.size;
  TRY_(fetch_all());
  FrameCounts out;
  for (const auto& f : m_.frames) {
    out.zero += f.zero;
    out.kept += !f.zero && !needed[f.index];
    out.fetched += needed[f.index];
  }
  out.frames = static_cast<uint32_t>(m_.frames.size());
  out.fetched_bytes = total_;
  TRY_(device_.sync());
  return out;
}

int SlotFrames::threads() const {
  return options_.threads ? options_.threads
                          : std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
}

void SlotFrames::make_batches(const std::vector<bool>& needed) {
  for (const auto& f : m_.frames) {
    if (!needed[f.index]) continue;
    Batch* b = batches_.empty() ? nullptr : &batches_.back();
    if (b && b->offset + b->size == f.offset && b->size + f.stored_bytes <= options_.request_bytes) {
      b->last = f.index;
      b->size += f.stored_bytes;
    } else {
      batches_.push_back({f.index, f.index, f.offset, f.stored_bytes});
    }
  }
}

// Runs `work` in all threads; the first error stops the others.
Status SlotFrames::in_parallel(const Work& work) {
  std::mutex mutex;
  std::optional<Error> error;
  std::atomic<bool> failed{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < threads(); ++i)
    workers.emplace_back([&] {
      Status s = work(failed);
      const std::lock_guard lock(mutex);
      if (!s && !error) error = std::move(s).error();
      if (error) failed = true;
    });
  for (auto& w : workers) w.join();
  if (error) return std::move(*error);
  return stop_requested() ? Status(fail(Code::cancelled, "stopped while writing the image")) : Status(Ok{});
}

Status SlotFrames::keep_what_is_right(std::vector<bool>& needed) {
  std::atomic<size_t> next{0};
  // One byte per frame, because threads may not share the words of a vector<bool>.
  std::vector<char> right(m_.frames.size(), 0);
  TRY_(in_parallel([&](const std::atomic<bool>& failed) -> Status {
    for (size_t i; (i = next++) < m_.frames.size() && !failed && !stop_requested();) {
      if (m_.frames[i].zero) continue;
      TRY(const std::string bytes, device_.read_at(place(m_.frames[i]), m_.frames[i].raw_bytes));
      right[i] = sha256(bytes) == m_.frames[i].raw_sha256;
    }
    return Ok{};
  }));
  for (size_t i = 0; i < right.size(); ++i)
    if (right[i]) needed[i] = false;
  return Ok{};
}

Status SlotFrames::zero_frames(bool look_first) {
  for (size_t i = 0; i < m_.frames.size(); ++i) {
    if (!m_.frames[i].zero) continue;
    size_t last = i;
    while (last + 1 < m_.frames.size() && m_.frames[last + 1].zero && !look_first) ++last;
    if (look_first) {
      if (stop_requested()) return fail(Code::cancelled, "stopped while writing the image");
      TRY(const std::string bytes, device_.read_at(place(m_.frames[i]), m_.frames[i].raw_bytes));
      if (all_zero(bytes)) continue;
    }
    TRY_(device_.zero(place(m_.frames[i]),
                      place(m_.frames[last]) + m_.frames[last].raw_bytes - place(m_.frames[i])));
    i = last;
  }
  return Ok{};
}

Status SlotFrames::fetch_all() {
  std::atomic<size_t> next{0};
  return in_parallel([&](const std::atomic<bool>& failed) -> Status {
    TRY(const auto source, deps_.source());
    const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> zstd(ZSTD_createDCtx(), ZSTD_freeDCtx);
    for (size_t i; (i = next++) < batches_.size() && !failed && !stop_requested();) {
      TRY_(retry(deps_.cancelled, options_, [&] { return fetch(*source, zstd.get(), batches_[i]); }));
      const std::lock_guard lock(progress_mutex_);
      done_ += batches_[i].size;
      if (deps_.progress) deps_.progress(done_, total_);
    }
    return Ok{};
  });
}

Status SlotFrames::fetch(BlobSource& source, void* zstd, const Batch& batch) {
  TRY(const std::string stored, source.range(path_, batch.offset, batch.size));
  if (stored.size() != batch.size)
    return fail(Code::corrupt, "the controller sent a different number of bytes than requested");
  for (uint32_t i = batch.first; i <= batch.last; ++i) {
    const ImageFrame& f = m_.frames[i];
    if (f.zero) continue;
    const auto bytes = std::string_view(stored).substr(f.offset - batch.offset, f.stored_bytes);
    TRY_(check_stored_frame(f, bytes));
    std::string raw(f.raw_bytes, '\0');
    const size_t n = ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(zstd), raw.data(), raw.size(), bytes.data(),
                                         bytes.size());
    if (ZSTD_isError(n) || n != f.raw_bytes)
      return fail(Code::corrupt, fmt::format("frame {} could not be decompressed", i));
    TRY_(device_.write_at(place(f), raw));
    // What is still in memory at a power cut is lost, and the next attempt must fetch it again.
    device_.begin_sync(place(f), raw.size());
  }
  return Ok{};
}

}  // namespace muster
