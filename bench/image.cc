// Writes an image into a root slot as the agent does, and times in the same run what it cannot be faster
// than: fetching its frames, decompressing them, writing the raw bytes. Then once more with a tenth of the
// frames changed. usage: muster-bench-image RAW-FILE FOLDER (on the disk that is measured). Closes with one
// line of JSON; `ratio` is the slowest of the three against the whole.
#include <fmt/format.h>
#include <zstd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/image/slot_frames.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/json_dump.h"
#include "controller/image/image.h"
#include "sys/http/http.h"
#include "sys/os.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
constexpr double kMb = 1e6;

template <typename T>
T must(Result<T> result) {
  if (result.ok()) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}
void must(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.error().message);
  std::exit(1);
}

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// Calls work(frame) for every stored frame, in as many threads as the writer has.
void in_threads(const ImageManifest& m,
                const std::function<std::function<void(const ImageFrame&)>()>& worker) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      const auto work = worker();
      for (size_t f; (f = next++) < m.frames.size();)
        if (!m.frames[f].zero) work(m.frames[f]);
    });
  for (auto& thread : threads) thread.join();
}

struct Bench {
  std::string folder, base_url;
  ImageManifest manifest;

  MakeSource source() const {
    return [url = base_url] { return http_source(url); };
  }
  std::string target() const { return folder + "/slot"; }

  void fresh_target() const {
    std::error_code ignored;
    fs::remove(target(), ignored);
    std::ofstream(target()).close();
    fs::resize_file(target(), manifest.raw_size);
    ::sync();
  }

  double link() const {
    return seconds_of([&] {
      in_threads(manifest, [&] {
        auto from = std::make_shared<std::unique_ptr<BlobSource>>(must(source()()));
        return [from](const ImageFrame& f) { must((*from)->range("/frames.zst", f.offset, f.stored_bytes)); };
      });
    });
  }

  double decompression(const std::string& stored) const {
    return seconds_of([&] {
      in_threads(manifest, [&] {
        auto zstd = std::shared_ptr<ZSTD_DCtx>(ZSTD_createDCtx(), ZSTD_freeDCtx);
        return [&, zstd](const ImageFrame& f) {
          std::string raw(f.raw_bytes, '\0');
          if (ZSTD_isError(ZSTD_decompressDCtx(zstd.get(), raw.data(), raw.size(), stored.data() + f.offset,
                                               f.stored_bytes)))
            std::abort();
        };
      });
    });
  }

  double disk(const std::string& raw_path) const {
    fresh_target();
    const auto from = must(BlockDevice::open(raw_path, BlockDevice::Access::read));
    std::vector<std::string> raw(manifest.frames.size());
    for (const auto& f : manifest.frames)
      if (!f.zero) raw[f.index] = must(from.read_at(uint64_t{f.index} * manifest.frame_size, f.raw_bytes));
    const auto to = must(BlockDevice::open(target(), BlockDevice::Access::exclusive_write));
    return seconds_of([&] {
      in_threads(manifest, [&] {
        return [&](const ImageFrame& f) {
          must(to.write_at(uint64_t{f.index} * manifest.frame_size, raw[f.index]));
          to.begin_sync(uint64_t{f.index} * manifest.frame_size, f.raw_bytes);
        };
      });
      must(to.sync());
    });
  }

  double write(bool keep, FrameCounts& counts) const {
    const auto to = must(BlockDevice::open(target(), BlockDevice::Access::exclusive_write));
    FrameDeps deps;
    deps.source = source();
    const WriteOptions options;
    return seconds_of(
        [&] { counts = must(SlotFrames("/frames.zst", manifest, to, 0, deps, options).run(keep)); });
  }
};

// Every tenth stored frame of the target gets other bytes, as if another image had been there.
void change_a_tenth(const Bench& bench) {
  std::fstream file(bench.target(), std::ios::in | std::ios::out | std::ios::binary);
  size_t stored = 0;
  for (const auto& f : bench.manifest.frames) {
    if (f.zero || stored++ % 10 != 0) continue;
    file.seekp(static_cast<std::streamoff>(uint64_t{f.index} * bench.manifest.frame_size));
    file << "another image";
  }
}

int run(const std::string& raw, const std::string& folder) {
  Bench bench{folder, "", must(write_frames(raw, folder + "/frames.zst", 3))};
  const std::string stored = must(Files("/").read(folder + "/frames.zst"));
  const auto server = must(start_http_server({}, [&](const HttpRequest&, const ResponderPtr& answer) {
    HttpResponse response;
    response.file = folder + "/frames.zst";
    answer->respond(std::move(response));
  }));
  bench.base_url = fmt::format("http://127.0.0.1:{}", server->port());
  (void)bench.link();  // what is served is in memory afterwards
  double link = 1e9, decompression = 1e9, disk = 1e9, whole = 1e9;
  FrameCounts all, tenth;
  for (int round = 0; round < 3; ++round) {
    link = std::min(link, bench.link());
    decompression = std::min(decompression, bench.decompression(stored));
    disk = std::min(disk, bench.disk(raw));
    bench.fresh_target();
    whole = std::min(whole, bench.write(false, all));
  }
  change_a_tenth(bench);
  const double again = bench.write(true, tenth);
  uint64_t bytes = 0;
  for (const auto& f : bench.manifest.frames) bytes += f.zero ? 0 : f.raw_bytes;
  const double slowest = std::max({link, decompression, disk}), size = static_cast<double>(bytes);
  for (const auto& [name, time] : {std::pair{"link", link},
                                   {"decompression", decompression},
                                   {"disk", disk},
                                   {"image", whole},
                                   {"a tenth changed", again}})
    fmt::print("{:16} {:7.2f} s  {:8.0f} MB/s of {:.0f} MB raw\n", name, time, size / kMb / time, size / kMb);
  fmt::print("{}\n", dump_json(Json{{"bench", "image"},
                                    {"raw_bytes", bytes},
                                    {"stored_bytes", stored.size()},
                                    {"link_seconds", link},
                                    {"decompression_seconds", decompression},
                                    {"disk_seconds", disk},
                                    {"image_seconds", whole},
                                    {"tenth_frames_fetched", tenth.fetched},
                                    {"tenth_bytes_fetched", tenth.fetched_bytes},
                                    {"tenth_seconds", again},
                                    {"goal", 0.9},
                                    {"ratio", slowest / whole}}));
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 3) return fmt::print(stderr, "usage: muster-bench-image RAW-FILE FOLDER\n"), 2;
  return muster::run(argv[1], argv[2]);
}
