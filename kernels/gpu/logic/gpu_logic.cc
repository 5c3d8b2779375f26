#include "kernels/gpu/logic/gpu_logic.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <thread>

#include "base/cuda_driver.h"
#include "base/lower.h"
#include "base/gpu_models.h"
#include "base/split.h"
#include "base/words.h"

namespace muster::kernels::gpu {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == at)
      out.emplace_back();
    else
      out.back() += c;
  }
  for (auto& word : out) word = trim(word);
  return out;
}

std::optional<double> number(const std::string& word) {
  if (word == "Yes" || word == "Enabled" || word == "Active") return 1;
  if (word == "No" || word == "Disabled" || word == "Not Active") return 0;
  char* end = nullptr;
  const double value = word.starts_with("0x") ? static_cast<double>(std::strtoull(word.c_str(), &end, 16))
                                              : std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value)) return {};
  return value;
}

// Newer drivers print these names in the heading for fields that were requested by their older names.
std::string field_name(std::string heading) {
  heading = trim(heading.substr(0, heading.find('[')));
  if (heading == "clocks.current.sm") return "clocks.sm";
  if (heading == "clocks.current.memory") return "clocks.mem";
  if (heading == "clocks_event_reasons.active") return "clocks_throttle_reasons.active";
  return heading;
}

// Computes rows first ... last - 1 of the n x n result.
void golden_rows(const std::vector<int16_t>& a, const std::vector<int16_t>& bt, size_t n, size_t first,
                 size_t last, Format format, sdc::Digest& out) {
  for (size_t i = first; i < last; ++i)
    for (size_t j = 0; j < n; ++j) {
      const int16_t *x = &a[i * n], *y = &bt[j * n];
      int32_t sum = 0;
      for (size_t k = 0; k < n; ++k) sum += static_cast<int32_t>(x[k]) * y[k];
      const uint64_t at = uint64_t{i} * n + j;
      if (format == Format::fp64) {
        const double value = sum;
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        out.add(2 * at, static_cast<uint32_t>(bits));
        out.add(2 * at + 1, static_cast<uint32_t>(bits >> 32));
      } else {
        out.add(at,
                format == Format::int8 ? static_cast<uint32_t>(sum) : bits_of_float(static_cast<float>(sum)));
      }
    }
}

}  // namespace

const std::vector<FormatInfo>& formats() {
  static const std::vector<FormatInfo> all = {
      {Format::bf16, "bf16", 2, 4, "TFLOP/s"}, {Format::fp16, "fp16", 2, 4, "TFLOP/s"},
      {Format::tf32, "tf32", 4, 4, "TFLOP/s"}, {Format::fp8, "fp8", 1, 4, "TFLOP/s"},
      {Format::int8, "int8", 1, 4, "TOP/s"},   {Format::fp64, "fp64", 8, 8, "TFLOP/s"}};
  return all;
}

const FormatInfo* find_format(const std::string& name) {
  for (const auto& info : formats())
    if (info.name == name) return &info;
  return nullptr;
}

constexpr Words<Maker, 3> kMakerNames = {
    {{Maker::library, "cublaslt"}, {Maker::mma, "own mma.sync"}, {Maker::hopper, "own wgmma"}}};
const char* to_string(Maker maker) { return word_of(kMakerNames, maker).data(); }

Maker own_kernel(Format format, int major, int minor) {
  if (format != Format::bf16 && format != Format::fp8) return Maker::library;
  if (major == 9 && minor == 0) return Maker::hopper;
  const bool has_fp8 = major > 8 || (major == 8 && minor >= 9);
  return major >= 8 && (format == Format::bf16 || has_fp8) ? Maker::mma : Maker::library;
}

// An entry needs a successful run of that kernel, on that compute capability, in bench/results/.
bool proven(Maker maker, int major, int minor) {
  return maker == Maker::library || (maker == Maker::hopper && major == 9 && minor == 0);
}

bool has_format(Format format, int major, int minor) {
  return format != Format::fp8 || major > 8 || (major == 8 && minor >= 9);
}

int exact_most(Format format, Maker maker, size_t k) {
  constexpr size_t kSingle = size_t{1} << 24, kShort = size_t{1} << 13, kPromoted = 128;
  for (int most = 7; most > 0; --most) {
    const size_t term = static_cast<size_t>(most * most);
    bool fits = k * term < kSingle;
    if (format == Format::fp8)
      fits = fits && (maker == Maker::library ? k : std::min(k, kPromoted)) * term < kShort;
    if (format == Format::int8 || format == Format::fp64) fits = k * term < (size_t{1} << 31);
    if (fits) return most;
  }
  return 0;
}

bool edge_fits(Maker maker, size_t n) {
  return n > 0 && n % (maker == Maker::library ? 16 : 256) == 0 && n <= 65536;
}

sdc::Digest golden_product(size_t n, uint64_t seed, int most, Format format, size_t threads) {
  std::vector<int16_t> a(n * n), bt(n * n);
  for (size_t i = 0; i < n * n; ++i) a[i] = static_cast<int16_t>(integer_at(seed, i, most));
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < n; ++j)
      bt[j * n + k] = static_cast<int16_t>(integer_at(seed, n * n + k * n + j, most));
  threads = std::clamp<size_t>(threads, 1, n);
  std::vector<sdc::Digest> parts(threads);
  std::vector<std::thread> pool;
  for (size_t t = 0; t < threads; ++t)
    pool.emplace_back(
        [&, t] { golden_rows(a, bt, n, n * t / threads, n * (t + 1) / threads, format, parts[t]); });
  for (auto& thread : pool) thread.join();
  sdc::Digest out;
  for (const auto& part : parts) out.sum += part.sum, out.mixed ^= part.mixed;
  return out;
}

int bf16_operations_per_cycle(int major, int minor) {
  if (major == 8 && minor == 0) return 2048;   // A100: 312 TFLOP/s with 108 at 1.41 GHz
  if (major == 8 && minor == 9) return 1024;   // L40S: 362 with 142 at 2.52 GHz
  if (major == 9 && minor == 0) return 4096;   // H100: 989 with 132 at 1.83 GHz
  if (major == 10 && minor == 0) return 8192;  // B200: 2250 with 148 at 1.85 GHz
  return 0;
}

bool can_flip(sdc::Site site, Maker maker) {
  const bool in_registers = site == sdc::Site::accumulator || site == sdc::Site::output_register;
  return maker != Maker::library || !in_registers;
}

Json Series::json(size_t most) const {
  Json out = Json::array();
  const size_t count = std::min(most, values.size());
  for (size_t i = 0; i < count; ++i) out.push_back(rounded(values[i * values.size() / count]));
  return out;
}

Series summarise(std::vector<double> values) {
  Series out;
  if (values.empty()) return out;
  out.median = median(values);
  out.p01 = percentile(values, 0.01);
  out.slowest_ratio = out.median > 0 ? out.p01 / out.median : 0;
  const auto quarter = static_cast<std::ptrdiff_t>(std::max<size_t>(values.size() / 4, 1));
  const double first = median({values.begin(), values.begin() + quarter});
  out.drift = first > 0 ? median({values.end() - quarter, values.end()}) / first : 0;
  out.values = std::move(values);
  return out;
}

const std::string& smi_fields() {
  static const std::string fields =
      "uuid,serial,name,pci.bus_id,driver_version,ecc.errors.corrected.volatile.total,ecc.errors.uncorrected."
      "volatile.total,ecc.errors.corrected.aggregate.total,ecc.errors.uncorrected.aggregate.total,clocks.sm,"
      "clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu,temperature.memory,clocks_throttle_"
      "reasons.active,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max,"
      "ecc."
      "mode.current";
  return fields;
}
const std::string& smi_remap_fields() {
  static const std::string fields =
      "gpu_uuid,remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows."
      "failure";
  return fields;
}

std::vector<SmiGpu> parse_smi(const std::string& csv) {
  std::vector<SmiGpu> out;
  std::vector<std::string> headings;
  for (const auto& line : split(csv, '\n')) {
    const auto words = split(line, ',');
    if (headings.empty()) {
      if (words.size() < 2) continue;  // a warning before the table
      for (const auto& word : words) headings.push_back(field_name(word));
      continue;
    }
    if (words.size() != headings.size()) continue;
    SmiGpu gpu;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& name = headings[i];
      if (name == "uuid" || name == "gpu_uuid")
        gpu.uuid = words[i];
      else if (name == "serial")
        gpu.serial = number(words[i]) ? words[i] : "";
      else if (name == "name")
        gpu.name = words[i];
      else if (name == "pci.bus_id")
        gpu.bus = words[i];
      else if (name == "driver_version")
        gpu.words[name] = words[i];
      else if (const auto value = number(words[i]))
        gpu.numbers[name] = *value;
      else if (words[i] != "[N/A]" && words[i] != "N/A" && words[i] != "[Not Supported]")
        gpu.words[name] = words[i];
    }
    out.push_back(std::move(gpu));
  }
  return out;
}

void merge_smi(std::vector<SmiGpu>& into, const std::vector<SmiGpu>& from) {
  for (auto& gpu : into)
    for (const auto& more : from)
      if (gpu.uuid == more.uuid) {
        gpu.numbers.insert(more.numbers.begin(), more.numbers.end());
        gpu.words.insert(more.words.begin(), more.words.end());
      }
}

std::string not_reported(const SmiGpu& before, const SmiGpu& after, const std::string& field) {
  for (const SmiGpu* gpu : {&after, &before})
    if (const auto word = gpu->words.find(field); word != gpu->words.end())
      return "nvidia-smi reports '" + word->second + "'";
  if (before.numbers.count(field) != after.numbers.count(field))
    return "only one of the two readings contains this counter";
  return "";
}

bool same_bus(const std::string& a, const std::string& b) {
  const auto plain = [](const std::string& bus) {
    const std::string text = lower(bus);
    return text.substr(std::min(text.find_first_not_of('0'), text.size()));
  };
  return plain(a) == plain(b);
}

SmiVerdict judge_smi(const SmiGpu& before, const SmiGpu& after) {
  SmiVerdict out;
  const auto value = [](const SmiGpu& gpu, const std::string& name) {
    const auto it = gpu.numbers.find(name);
    return it == gpu.numbers.end() ? 0.0 : it->second;
  };
  if (value(after, "remapped_rows.failure") > 0)
    out.bad.push_back("a memory row could not be remapped: the GPU must be replaced");
  if (value(after, "remapped_rows.pending") > 0)
    out.bad.push_back("the remap of a memory row is pending: the GPU must be reset");
  const auto moved = [&](const std::string& name) { return value(after, name) - value(before, name); };
  for (const char* count : {"ecc.errors.uncorrected.volatile.total", "remapped_rows.uncorrectable"})
    if (moved(count) > 0)
      out.bad.push_back(fmt::format("{} rose by {:.0f} during the test", count, moved(count)));
  for (const char* count : {"ecc.errors.corrected.volatile.total", "remapped_rows.correctable"})
    if (moved(count) > 0)
      out.worn.push_back(fmt::format("{} rose by {:.0f} during the test", count, moved(count)));
  const auto reports = [&](const char* name) { return after.numbers.count(name) > 0; };
  const bool off = reports("ecc.mode.current") ? value(after, "ecc.mode.current") == 0
                                               : !reports("ecc.errors.uncorrected.volatile.total");
  const GpuModel* model = find_gpu_model(after.name);
  if (off && model && model->hbm) out.worn.push_back("ECC is off");
  return out;
}

constexpr Words<Collective, 5> kCollectiveNames = {{{Collective::all_reduce, "all_reduce"},
                                                    {Collective::all_gather, "all_gather"},
                                                    {Collective::reduce_scatter, "reduce_scatter"},
                                                    {Collective::all_to_all, "all_to_all"},
                                                    {Collective::send_receive, "send_receive"}}};
const char* to_string(Collective collective) { return word_of(kCollectiveNames, collective).data(); }

double bus_factor(Collective collective, int ranks) {
  if (ranks < 2) return 0;  // one rank only copies within its GPU's memory
  const double n = ranks;
  if (collective == Collective::all_reduce) return 2 * (n - 1) / n;
  return collective == Collective::send_receive ? 1 : (n - 1) / n;
}

Json missing_software(const std::string& check, bool driver, const std::string& cublaslt,
                      const std::function<bool(const std::string& library)>& there) {
  if (!driver) return {{"missing", "driver"}};
  const bool trains = check == "gpu-training";
  if ((trains || check == "gpu-gemm" || check == "gpu-sdc") && !there(cublaslt)) {
    Json out = {{"missing", cublaslt}};
    const std::string stem = cublaslt.substr(0, cublaslt.rfind('.') + 1);
    for (int major = kOldestCublaslt; major <= kNewestCublaslt; ++major)
      if (const std::string other = stem + std::to_string(major); other != cublaslt && there(other))
        out["found"] = other;
    return out;
  }
  if ((trains || check == "gpu-nccl") && !there(kNcclLibrary)) return {{"missing", kNcclLibrary}};
  return nullptr;
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> out;
  for (const auto& range : split(text, ',')) {
    int first = 0, last = 0;
    const int found = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    if (found == 1) last = first;
    if (found < 1 || first < 0 || last > 65535) continue;
    for (int cpu = first; cpu <= last; ++cpu) out.push_back(cpu);
  }
  return out;
}

}  // namespace muster::kernels::gpu
