// Memory of a GPU: bandwidth, a pattern test of all free memory, and the error counters before and after.
//
// How to run:  muster-accept-gpu memory [--seconds 5] [--rounds 0] [--max-mib 0] [--inject-flip 0:WORD:BIT]
// Reference:   pattern_at() (kernels/cpu/exact.h). The counters are nvidia-smi's own.
// Structure:   four bandwidth loops over arrays larger than the cache, median of the samples; then all free
//              memory in pieces: write a pattern to all of it, then compare all of it, so that every
//              word must keep its value while the rest is processed.
// Expected:    the table of controller/report/expected.cc; every word right; counters unchanged
//              (docs/acceptance-gpu.md).
// Ran on:      one H200, one H100 (bench/results).
#include <algorithm>
#include <fmt/format.h>

#include "kernels/gpu/device.h"
#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {
namespace {

constexpr size_t kPiece = size_t{1} << 30, kSmallestPiece = size_t{2} << 20;
constexpr size_t kReserve = size_t{512} << 20;  // for the driver, other contexts, the display
constexpr int kSamples = 20;

struct Loop {
  Stream what;
  const char* metric;
  double arrays;  // read or written
};
constexpr Loop kLoops[] = {{Stream::write, "write_gbps", 1},
                           {Stream::read, "read_gbps", 1},
                           {Stream::copy, "copy_gbps", 2},
                           {Stream::triad, "triad_gbps", 3}};

Status measure_bandwidth(const Gpu& gpu, Measurement& out) {
  const size_t bytes = std::min(std::max(size_t{2} << 30, gpu.l2 * 8), gpu.memory / 8) / 65536 * 65536;
  TRY(const CudaStream stream, CudaStream::open());
  TRY(Timer timer, Timer::open());
  TRY(const DeviceMemory a, device_memory(bytes));
  TRY(const DeviceMemory b, device_memory(bytes));
  TRY(const DeviceMemory c, device_memory(bytes));
  TRY(const DeviceMemory sink, device_memory(sizeof(unsigned long long)));
  auto* odd = static_cast<unsigned long long*>(sink.get());
  TRY_(cuda(cudaMemsetAsync(odd, 0, sizeof *odd, stream.get()), "cudaMemsetAsync"));
  const size_t words = bytes / 16;
  for (void* array : {a.get(), b.get(), c.get()})
    TRY_(cuda(run_stream(Stream::write, array, nullptr, nullptr, words, odd, stream.get()), "write"));
  for (const auto& loop : kLoops) {
    std::vector<double> rates;
    for (int i = 0; i < kSamples + 2; ++i) {
      TRY_(timer.start(stream.get()));
      TRY_(cuda(run_stream(loop.what, c.get(), a.get(), b.get(), words, odd, stream.get()), loop.metric));
      TRY(const double seconds, timer.stop(stream.get()));
      if (i >= 2)
        rates.push_back(loop.arrays * static_cast<double>(bytes) / seconds / 1e9);  // two to warm up
    }
    const Series series = summarise(std::move(rates));
    out.metrics[loop.metric] = {series.median, "GB/s"};
    out.detail["series"][loop.metric] = series.json(kSamples);
  }
  // Reads back the result of triad: the xor of four equal floats is zero.
  TRY_(cuda(run_stream(Stream::read, nullptr, c.get(), nullptr, words, odd, stream.get()), "read"));
  unsigned long long wrong = 0;
  TRY_(cuda(cudaMemcpyAsync(&wrong, odd, sizeof wrong, cudaMemcpyDeviceToHost, stream.get()),
            "cudaMemcpyAsync"));
  TRY_(stream.wait());
  out.detail["array_bytes"] = bytes;
  if (wrong > 0)
    out.outcome = Outcome::corrupt, out.error = fmt::format("{} words of the arrays changed", wrong);
  return Ok{};
}

struct Piece {
  DeviceMemory memory;
  size_t words = 0;
  uint64_t first = 0;  // number of its first word among those of all pieces
};

// Allocates all free memory except a reserve, in pieces that get smaller once no large one is available.
Result<std::vector<Piece>> take_memory(uint64_t max_bytes) {
  size_t free_bytes = 0, all = 0;
  TRY_(cuda(cudaMemGetInfo(&free_bytes, &all), "cudaMemGetInfo"));
  uint64_t left = free_bytes > kReserve ? free_bytes - kReserve : 0;
  if (max_bytes > 0) left = std::min<uint64_t>(left, max_bytes);
  std::vector<Piece> out;
  uint64_t words = 0;
  for (size_t size = kPiece; size >= kSmallestPiece;) {
    if (left < size) {
      size /= 2;
      continue;
    }
    auto memory = device_memory(size);
    if (!memory && memory.error().code != Code::unavailable) return memory.error();
    if (!memory) {
      size /= 2;
      continue;
    }
    out.push_back({std::move(memory).value(), size / 8, words});
    words += size / 8;
    left -= size;
  }
  if (out.empty()) return fail(Code::unavailable, "no GPU memory is free");
  return out;
}

Status one_pattern(const std::vector<Piece>& pieces, int round, uint64_t seed, const Flip* flip, Wrong* wrong,
                   const CudaStream& stream) {
  for (const auto& piece : pieces)
    TRY_(cuda(write_pattern(piece.memory.get(), piece.words, round, piece.first, seed, stream.get()),
              "write pattern"));
  if (flip) {
    const size_t word = flip->index % pieces.front().words;
    TRY_(cuda(
        flip_bit(pieces.front().memory.get(), word * 8 + flip->bit % 64 / 8, flip->bit % 8, stream.get()),
        "flip"));
  }
  for (const auto& piece : pieces)
    TRY_(cuda(check_pattern(piece.memory.get(), piece.words, round, piece.first, seed, wrong, stream.get()),
              "check pattern"));
  return stream.wait();
}

Status test_patterns(const GpuMemoryOptions& options, Measurement& out) {
  TRY(const CudaStream stream, CudaStream::open());
  TRY(const DeviceMemory memory, device_memory(sizeof(Wrong)));
  auto* wrong = static_cast<Wrong*>(memory.get());
  TRY(const std::vector<Piece> pieces, take_memory(options.max_bytes));
  const double start = seconds_now();
  int round = 0;
  const auto more = [&] {
    if (options.rounds > 0) return round < options.rounds;
    return round < kPatterns || seconds_now() < start + options.seconds;
  };
  for (; more() && out.outcome == Outcome::measured; ++round) {
    Wrong found;
    const uint64_t seed = 1 + static_cast<uint64_t>(round / kPatterns);
    TRY_(cuda(cudaMemcpyAsync(wrong, &found, sizeof found, cudaMemcpyHostToDevice, stream.get()),
              "cudaMemcpyAsync"));
    TRY_(one_pattern(pieces, round, seed, options.flip && round == 0 ? &*options.flip : nullptr, wrong,
                     stream));
    TRY_(cuda(cudaMemcpyAsync(&found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream.get()),
              "cudaMemcpyAsync"));
    TRY_(stream.wait());
    if (found.count == 0) continue;
    out.outcome = Outcome::corrupt;
    out.error = fmt::format(
        "{} word(s) of memory are wrong in pattern {}; the first one is number {}: found {:016x}, possibly "
        "in a neighbouring wrong word, instead of {:016x}",
        found.count, round % kPatterns, found.first, found.found, pattern_at(round, found.first, seed));
  }
  const Piece& last = pieces.back();
  const double bytes = static_cast<double>(last.first + last.words) * 8;
  out.metrics["tested_gib"] = {bytes / (1 << 30), "GiB"};
  out.detail["patterns"] = round;
  out.detail["pattern_seconds"] = seconds_now() - start;
  return Ok{};
}

// Adds the counters over the whole test; for a GPU that nvidia-smi does not list they are not read, which
// does not count as a pass (controller/report/judge.cc).
void judge_counters(const Gpu& gpu, const std::vector<SmiGpu>& before, Measurement& out) {
  std::string why;
  const auto after = query_smi(&why);
  const SmiGpu *first = smi_of(before, gpu), *last = smi_of(after, gpu);
  if (!first || !last) {
    out.detail["counters"] =
        "not read: " + (why.empty() ? std::string("nvidia-smi does not list this GPU") : why);
    return;
  }
  const auto moved = [&](const char* name) -> std::optional<double> {
    const auto a = first->numbers.find(name), b = last->numbers.find(name);
    if (a == first->numbers.end() || b == last->numbers.end()) return {};
    return b->second - a->second;
  };
  out.detail["absent"] = Json::array();
  const auto now = [&](const char* name) -> std::optional<double> {
    const auto it = last->numbers.find(name);
    return it == last->numbers.end() ? std::nullopt : std::optional<double>(it->second);
  };
  const auto report = [&](const char* metric, const char* field, std::optional<double> count,
                          const char* unit) {
    if (count)
      out.metrics[metric] = {*count, unit};
    else if (const std::string gap = not_reported(*first, *last, field); !gap.empty())
      out.detail["absent"].push_back(fmt::format("{}: {}", metric, gap));
    else  // no ECC, or no row remapping (before Ampere): this GPU has no such counter
      out.detail["absent"].push_back(metric);
  };
  const char *corrected = "ecc.errors.corrected.volatile.total",
             *uncorrected = "ecc.errors.uncorrected.volatile.total", *pending = "remapped_rows.pending",
             *failed = "remapped_rows.failure";
  report("ecc_corrected", corrected, moved(corrected), "errors");
  report("ecc_uncorrected", uncorrected, moved(uncorrected), "errors");
  report("remap_pending", pending, now(pending), "rows");
  report("remap_failed", failed, now(failed), "rows");
  const SmiVerdict verdict = judge_smi(*first, *last);
  out.detail["counters"] = {{"bad", verdict.bad}, {"worn", verdict.worn}};
  if (verdict.bad.empty() || out.outcome != Outcome::measured) return;
  out.outcome = Outcome::failed;
  out.error = verdict.bad.front();
}

Result<Measurement> measure(const Gpu& gpu, const GpuMemoryOptions& options,
                            const std::vector<SmiGpu>& before) {
  Measurement out;
  out.detail["verified"] = "every word of all free memory against its pattern, bit by bit";
  TRY_(measure_bandwidth(gpu, out));
  if (out.outcome == Outcome::measured) TRY_(test_patterns(options, out));
  judge_counters(gpu, before, out);
  if (out.outcome != Outcome::measured) out.faulty_parts = {"memory of GPU " + gpu.uuid};
  return out;
}

}  // namespace

Measurement run_gpu_memory(const GpuMemoryOptions& options) {
  const auto before = query_smi();
  return measure_gpus("gpu-memory", options.gpus, Order::at_once,
                      [&](const Gpu& gpu, size_t) { return measure(gpu, options, before); });
}

}  // namespace muster::kernels::gpu
