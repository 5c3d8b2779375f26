#include "agent/image/writer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "agent/disk/block_device.h"
#include "agent/disk/disk.h"
#include "agent/disk/marker.h"
#include "agent/image/layout.h"
#include "base/digest.h"

namespace muster {
namespace {

bool all_zero(const std::string& bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool stop_asked(const WriteDeps& deps) { return deps.cancelled && deps.cancelled(); }

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/') + 1); }

// Repeats what may be repeated. Corrupt answers too: a damaged transfer is as likely as a damaged file.
template <typename Call>
auto retry(const WriteDeps& deps, const WriteOptions& options, Call call) {
  DurationMs pause = options.backoff;
  for (int attempt = 1;; ++attempt) {
    auto result = call();
    if (result || attempt >= options.attempts || stop_asked(deps)) return result;
    const Code code = result.error().code;
    if (code != Code::unavailable && code != Code::timeout && code != Code::corrupt) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    pause = std::min<DurationMs>(pause * 2, 8 * kSecond);
  }
}

// A run of frames whose stored bytes lie side by side: one request.
struct Batch {
  uint32_t first = 0, last = 0;  // frame indices, inclusive; frames not needed in between are zero frames
  uint64_t offset = 0, size = 0;
};

std::vector<Batch> make_batches(const ImageManifest& m, const std::vector<bool>& needed, uint64_t limit) {
  std::vector<Batch> out;
  for (const auto& f : m.frames) {
    if (!needed[f.index]) continue;
    Batch* b = out.empty() ? nullptr : &out.back();
    if (b && b->offset + b->size == f.offset && b->size + f.stored_bytes <= limit) {
      b->last = f.index;
      b->size += f.stored_bytes;
    } else {
      out.push_back({f.index, f.index, f.offset, f.stored_bytes});
    }
  }
  return out;
}

class SlotWriter {
 public:
  SlotWriter(const wire::ImageJob& job, const ImageManifest& manifest, const BlockDevice& disk,
             uint64_t start, const WriteDeps& deps, const WriteOptions& options)
      : path_(folder_of(job.manifest_path) + "frames.zst"),
        m_(manifest),
        disk_(disk),
        start_(start),
        deps_(deps),
        options_(options) {}

  // `resume`: keep what is right already.
  Status run(bool resume, WriteResult& result) {
    std::vector<bool> needed(m_.frames.size());
    for (const auto& f : m_.frames) needed[f.index] = !f.zero;
    if (resume) TRY_(keep_what_is_right(needed));
    TRY_(zero_frames(resume));
    batches_ = make_batches(m_, needed, options_.request_bytes);
    for (const auto& b : batches_) total_ += b.size;
    TRY_(fetch_all());
    for (const auto& f : m_.frames) {
      result.zero += f.zero;
      result.kept += !f.zero && !needed[f.index];
      result.fetched += needed[f.index];
    }
    result.frames = static_cast<uint32_t>(m_.frames.size());
    result.fetched_bytes = total_;
    return disk_.sync();
  }

 private:
  uint64_t place(const ImageFrame& f) const { return start_ + uint64_t{f.index} * m_.frame_size; }

  int threads() const {
    return options_.threads ? options_.threads
                            : std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  }

  // Runs `work` in all threads; the first error stops the others.
  template <typename Work>
  Status in_parallel(Work work) {
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
    return stop_asked(deps_) ? Status(fail(Code::cancelled, "stopped while writing the image"))
                             : Status(Ok{});
  }

  Status keep_what_is_right(std::vector<bool>& needed) {
    std::atomic<size_t> next{0};
    // One byte per frame, because threads may not share the words of a vector<bool>.
    std::vector<char> right(m_.frames.size(), 0);
    TRY_(in_parallel([&](std::atomic<bool>& failed) -> Status {
      for (size_t i; (i = next++) < m_.frames.size() && !failed && !stop_asked(deps_);) {
        if (m_.frames[i].zero) continue;
        TRY(const std::string bytes, disk_.read_at(place(m_.frames[i]), m_.frames[i].raw_bytes));
        right[i] = sha256(bytes) == m_.frames[i].raw_sha256;
      }
      return Ok{};
    }));
    for (size_t i = 0; i < right.size(); ++i)
      if (right[i]) needed[i] = false;
    return Ok{};
  }

  Status zero_frames(bool look_first) {
    for (size_t i = 0; i < m_.frames.size(); ++i) {
      if (!m_.frames[i].zero) continue;
      size_t last = i;
      while (last + 1 < m_.frames.size() && m_.frames[last + 1].zero && !look_first) ++last;
      if (look_first) {
        TRY(const std::string bytes, disk_.read_at(place(m_.frames[i]), m_.frames[i].raw_bytes));
        if (all_zero(bytes)) continue;
      }
      TRY_(disk_.zero(place(m_.frames[i]),
                      place(m_.frames[last]) + m_.frames[last].raw_bytes - place(m_.frames[i])));
      i = last;
    }
    return Ok{};
  }

  Status fetch_all() {
    std::atomic<size_t> next{0};
    return in_parallel([&](std::atomic<bool>& failed) -> Status {
      TRY(const auto source, deps_.source());
      const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> zstd(ZSTD_createDCtx(), ZSTD_freeDCtx);
      for (size_t i; (i = next++) < batches_.size() && !failed && !stop_asked(deps_);) {
        TRY_(retry(deps_, options_, [&] { return fetch(*source, zstd.get(), batches_[i]); }));
        const std::lock_guard lock(progress_mutex_);
        done_ += batches_[i].size;
        if (deps_.progress) deps_.progress(done_, total_);
      }
      return Ok{};
    });
  }

  Status fetch(BlobSource& source, ZSTD_DCtx* zstd, const Batch& batch) {
    TRY(const std::string stored, source.range(path_, batch.offset, batch.size));
    if (stored.size() != batch.size)
      return fail(Code::corrupt, "the controller sent another number of bytes than asked for");
    for (uint32_t i = batch.first; i <= batch.last; ++i) {
      const ImageFrame& f = m_.frames[i];
      if (f.zero) continue;
      const auto bytes = std::string_view(stored).substr(f.offset - batch.offset, f.stored_bytes);
      TRY_(check_stored_frame(f, bytes));
      std::string raw(f.raw_bytes, '\0');
      const size_t n = ZSTD_decompressDCtx(zstd, raw.data(), raw.size(), bytes.data(), bytes.size());
      if (ZSTD_isError(n) || n != f.raw_bytes)
        return fail(Code::corrupt, fmt::format("frame {} does not decompress", i));
      TRY_(disk_.write_at(place(f), raw));
      disk_.begin_sync(
          place(f), raw.size());  // what is only in memory is lost with the power, and cannot be resumed from
    }
    return Ok{};
  }

  std::string path_;
  const ImageManifest& m_;
  const BlockDevice& disk_;
  uint64_t start_;
  const WriteDeps& deps_;
  const WriteOptions& options_;
  std::vector<Batch> batches_ = {};
  std::mutex progress_mutex_;
  uint64_t done_ = 0, total_ = 0;
};

Result<ImageManifest> fetch_manifest(const wire::ImageJob& job, BlobSource& source) {
  TRY(const std::string text, source.whole(job.manifest_path));
  TRY(ImageManifest manifest, manifest_from_text(text));
  if (manifest.digest != job.digest)
    return fail(Code::corrupt,
                fmt::format("the controller serves image {}, the plan says {}", manifest.digest, job.digest));
  return manifest;
}

Result<std::map<std::string, std::string>> fetch_files(const wire::ImageJob& job,
                                                       const ImageManifest& manifest, BlobSource& source) {
  std::map<std::string, std::string> out;
  for (const auto& f : manifest.files) {
    TRY(std::string bytes, source.whole(folder_of(job.manifest_path) + f.name));
    if (bytes.size() != f.size || sha256(bytes) != f.sha256)
      return fail(Code::corrupt, f.name + " does not match the manifest");
    out[f.role] = std::move(bytes);
  }
  for (const char* role : {"kernel", "bootloader"})
    if (!out.count(role)) return fail(Code::invalid, std::string("the image has no ") + role);
  return out;
}

// Removes what other systems might still recognise at the old places.
Status clear_old_signatures(const BlockDevice& disk, const GptTable& layout) {
  constexpr uint64_t kMiB = 1 << 20;
  TRY_(disk.zero(0, kMarkerOffset));
  TRY_(disk.zero(kMarkerOffset + kMarkerSize, layout.partitions[0].start - kMarkerOffset - kMarkerSize));
  TRY_(disk.zero(disk.size() - kMiB, kMiB));
  for (const auto& p : layout.partitions) {
    TRY_(disk.zero(p.start, kMiB));
    TRY_(disk.zero(p.start + p.size - kMiB, kMiB));
  }
  return Ok{};
}

// The state of the work on one disk, from looking to the finished marker.
struct Work {
  const wire::ImageJob& job;
  const WriteDeps& deps;
  const WriteOptions& options;
  ImageManifest manifest = {};
  std::map<std::string, std::string> files = {};
  std::string path = {};
  GptTable layout = {};
  ImageMarker marker = {};
  WriteResult result = {};
};

// Of this node of this cluster of this controller. A marker that names no cluster or no CA counts where the
// controller's own record says that it imaged this node.
bool is_ours(const wire::ImageJob& job, const ImageMarker& marker) {
  const auto is_mine = [&job](const std::string& noted, const std::string& mine) {
    return noted == mine || (noted.empty() && job.allow_ours);
  };
  return marker.node == job.hostname && is_mine(marker.cluster, job.cluster) &&
         is_mine(marker.authority, job.authority);
}

const ImageMarker* marker_of(const DiskContent& content) {
  return content.marker ? &*content.marker : nullptr;
}

Status plan_work(Work& w, const BlockDevice& disk) {
  TRY(const DiskContent content, probe_disk(disk));
  const ImageMarker* found = marker_of(content);
  TRY_(may_write(w.job, content, found));
  const bool ours = found && is_layout(content.gpt) && is_ours(w.job, *found);
  const bool unfinished =
      found && found->stage == "writing" && found->digest == w.job.digest && is_ours(w.job, *found);
  w.marker = {w.job.hostname, "writing",     w.job.digest,    "a",         "", w.job.content_hash,
              false,          w.job.cluster, w.job.authority, w.deps.order};
  if (ours) {
    w.layout = content.gpt;
    w.marker.current = found->current;
    w.marker.slot = unfinished ? found->slot : found->current == "a" ? "b" : "a";
    w.marker.fresh = found->fresh && found->stage == "writing";
    w.result.resumed = unfinished;
  } else {
    const uint64_t root = w.job.root_size.empty() ? 0 : std::strtoull(w.job.root_size.c_str(), nullptr, 10);
    TRY(w.layout, make_layout(disk.size(), w.manifest.raw_size, root));
    w.marker.fresh = true;
    w.result.fresh_layout = true;
  }
  // A retry keeps what the plan approved first: the order is sent again with that hash.
  if (unfinished && w.marker.approved.empty()) w.marker.approved = found->approved;
  const GptPartition* slot = slot_partition(w.layout, w.marker.slot);
  if (slot->size < w.manifest.raw_size)
    return fail(Code::invalid, "the image does not fit the root slot of this disk");
  w.result.slot = w.marker.slot;
  return Ok{};
}

Status write_disk(Work& w, const BlockDevice& disk) {
  TRY_(plan_work(w, disk));
  TRY_(write_marker(disk, w.marker));  // intent, before the first effect
  if (w.result.fresh_layout) {
    TRY_(clear_old_signatures(disk, w.layout));
    TRY_(write_gpt(disk, w.layout));
  }
  SlotWriter writer(w.job, w.manifest, disk, slot_partition(w.layout, w.marker.slot)->start, w.deps,
                    w.options);
  TRY_(writer.run(w.result.resumed, w.result));
  return disk.reread_partitions();
}

Status finish(Work& w) {
  const SeedRequest request{w.job,          w.manifest,        w.path, w.layout, w.marker.slot,
                            w.marker.fresh, std::move(w.files)};
  TRY_(w.deps.seeder->seed(request));
  TRY_(w.deps.seeder->install_loader(request));
  TRY(const BlockDevice disk, BlockDevice::open(w.path, BlockDevice::Access::exclusive_write));
  w.marker.stage = "done";
  w.marker.current = w.marker.slot;
  w.marker.fresh = false;
  return write_marker(disk, w.marker);
}

Result<DiskFacts> find_os_disk(const wire::ImageJob& job, const WriteDeps& deps) {
  TRY(DiskFacts disk, find_disk(deps.disks(), job.disk_serial, static_cast<uint64_t>(job.disk_size_bytes),
                                job.disk_wwid, job.disk_model));
  if (!is_local_transport(disk.transport))
    return fail(Code::denied, fmt::format("disk {} is not known to be in this machine (transport {})",
                                          disk.serial, disk.transport));
  if (disk.mounted)
    return fail(Code::conflict, fmt::format("disk {} is in use on this machine", disk.serial));
  if (disk.read_only)
    return fail(Code::denied, fmt::format("disk {} ({}) is read-only: nothing can be written to it",
                                          disk.serial, disk.name));
  return disk;
}

}  // namespace

bool is_finished(const wire::ImageJob& job, const std::string& order, const DiskContent& content,
                 const ImageMarker* marker) {
  if (!marker || marker->stage != "done" || marker->digest != job.digest || !is_ours(job, *marker) ||
      !is_layout(content.gpt))
    return false;
  const bool same_order = !order.empty() && marker->order == order;
  return same_order || (!job.content_hash.empty() && marker->approved == job.content_hash &&
                        content.hash != job.content_hash);
}

Status may_write(const wire::ImageJob& job, const DiskContent& content, const ImageMarker* marker) {
  if (!job.content_hash.empty()) {
    if (content.hash == job.content_hash) return Ok{};
    // Our own half-done work on what was approved.
    if (marker && marker->stage == "writing" && marker->approved == job.content_hash &&
        is_ours(job, *marker) && marker->digest == job.digest)
      return Ok{};
  }
  if (job.allow_ours && marker && is_ours(job, *marker) && is_layout(content.gpt)) return Ok{};
  std::string whose;
  if (marker && !is_ours(job, *marker))
    whose = fmt::format(
        " (the system of node {} of {}{})", marker->node,
        marker->cluster.empty() ? "a cluster that it does not name" : "cluster " + marker->cluster,
        marker->authority == job.authority ? ""
        : marker->authority.empty()        ? ", of a controller that it does not name"
                                           : ", of another controller");
  return fail(Code::denied,
              fmt::format("disk {}: its content changed since the plan was approved; now there is: {}{}",
                          job.disk_serial, content.summary, whose));
}

Result<WriteResult> write_image(const wire::ImageJob& job, const WriteDeps& deps,
                                const WriteOptions& options) {
  Work w{job, deps, options};
  // Refusals come before a byte is fetched.
  TRY(const DiskFacts facts, find_os_disk(job, deps));
  w.path = deps.device(facts.name);
  {
    TRY(const BlockDevice disk, BlockDevice::open(w.path, BlockDevice::Access::exclusive_write));
    if (disk.size() != static_cast<uint64_t>(job.disk_size_bytes))
      return fail(Code::conflict, w.path + " has another size than its description");
    TRY(const DiskContent content, probe_disk(disk));
    if (is_finished(job, deps.order, content, marker_of(content))) {
      w.result.slot = content.marker->current;
      w.result.finished_before = true;
      return w.result;
    }
    TRY_(may_write(job, content, marker_of(content)));
    TRY(const auto source, deps.source());
    TRY(w.manifest, retry(deps, options, [&] { return fetch_manifest(job, *source); }));
    TRY(w.files, retry(deps, options, [&] { return fetch_files(job, w.manifest, *source); }));
    TRY_(write_disk(w, disk));
  }
  // The kernel lets nobody mount a partition while the whole disk is held.
  TRY_(finish(w));
  return w.result;
}

}  // namespace muster
