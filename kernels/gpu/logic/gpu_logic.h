// The parts of the GPU kernels that need no GPU: number formats, the largest inputs for which a product is
// exact, the correct result, parsing of nvidia-smi's output, the arithmetic of collectives. Tested on the
// host. Thread safety: value types and stateless functions; golden_product() starts threads and joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/sdc.h"

namespace muster::kernels::gpu {

// --- number formats
struct FormatInfo {
  Format format = Format::bf16;
  const char* name = "";
  size_t bytes = 0;        // of an input element
  size_t exact_bytes = 0;  // of a result element in exact products: fp32, int32 or fp64
  const char* unit = "";
};
const std::vector<FormatInfo>& formats();
const FormatInfo* find_format(const std::string& name);

enum class Maker { library, mma, hopper };  // cuBLASLt; mma.sync; wgmma
const char* to_string(Maker maker);
// For a GPU of compute capability `major`.`minor`; Maker::library if there is no own kernel.
Maker own_kernel(Format format, int major, int minor);
// True for the library, and for own kernels whose tests have passed on a GPU of this compute capability.
// Others run only when requested by name, and their results are marked "unproven".
bool proven(Maker maker, int major, int minor);

// True if tensor cores of this compute capability support operands of this format.
bool has_format(Format format, int major, int minor);

// Returns the largest `most` for which a product of integers in -most ... most with matrix edge `k` is exact:
// each partial sum must fit the accumulator. fp32 accumulators hold integers below 2^24; fp8 on Hopper keeps
// about 14 bits, so sums must stay below 2^13: the whole sum in the library, 128 products in the own kernel,
// which adds these up in fp32. 0: no exact product with that edge.
int exact_most(Format format, Maker maker, size_t k);
// True if `n` is a matrix edge that `maker` supports: muster's own tiles are 128 x 256, 128 bytes deep.
bool edge_fits(Maker maker, size_t n);

// Returns the digest of the correct product of integer_at() inputs with edge n, over its 32-bit words: the
// digest that every healthy GPU must produce. Computed with integers on the host. An element of an int8
// product is one 32-bit word, of an fp64 product two, the lower first.
sdc::Digest golden_product(size_t n, uint64_t seed, int most, Format format, size_t threads);

// Dense, of one multiprocessor's tensor cores with fp32 sums, from data sheets; 0: not known.
int bf16_operations_per_cycle(int major, int minor);

// True if a bit can be flipped at this site (sdc.h). With the library: only in inputs and output memory.
bool can_flip(sdc::Site site, Maker maker);

// --- time series
struct Series {
  std::vector<double> values = {};
  double median = 0, p01 = 0,
         slowest_ratio = 0;      // p01: first percentile; slowest_ratio: p01 / median
  double drift = 0;              // median of last quarter / median of first quarter: below 1 if throttled
  Json json(size_t most) const;  // at most this many values, evenly spaced
};
Series summarise(std::vector<double> values);

// --- nvidia-smi
struct SmiGpu {
  std::string uuid = {}, serial = {}, name = {}, bus = {};
  // By nvidia-smi's field name; fields that the GPU does not support are absent.
  std::map<std::string, double> numbers = {};
  std::map<std::string, std::string> words = {};  // the driver's version, and errors in place of numbers
};
// The fields to request, as arguments of nvidia-smi's --query-gpu and --query-remapped-rows.
const std::string& smi_fields();
const std::string& smi_remap_fields();
// Parses nvidia-smi's --format=csv,nounits output: a heading, then one line per GPU. Units in the heading
// ("clocks.current.sm [MHz]") are dropped; hexadecimal and yes/no become numbers.
std::vector<SmiGpu> parse_smi(const std::string& csv);
// Returns why `field` has no number although it should: nvidia-smi printed an error, or only one of the two
// readings has a number. "" if nothing is missing, or if the GPU does not support the field.
std::string not_reported(const SmiGpu& before, const SmiGpu& after, const std::string& field);
// Adds the numbers and words in `from` to the GPUs with the same UUID in `into`.
void merge_smi(std::vector<SmiGpu>& into, const std::vector<SmiGpu>& from);
// True if both are the same PCI address: CUDA prints the domain with four digits, nvidia-smi with eight.
bool same_bus(const std::string& a, const std::string& b);
// `bad`: faults: a row remap that failed or is pending until a reset, uncorrected errors since `before`.
// `worn`: counters of corrected errors that rose since `before`; ECC that is off on a GPU with HBM, whose
// counters then prove nothing.
struct SmiVerdict {
  std::vector<std::string> bad = {}, worn = {};
};
SmiVerdict judge_smi(const SmiGpu& before, const SmiGpu& after);

// --- collectives
enum class Collective { all_reduce, all_gather, reduce_scatter, all_to_all, send_receive };
constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::all_gather,
                                       Collective::reduce_scatter, Collective::all_to_all,
                                       Collective::send_receive};
const char* to_string(Collective collective);
// Bus bandwidth over algorithm bandwidth as in nccl-tests; 0 with one rank: no data crosses a link.
double bus_factor(Collective collective, int ranks);

// --- software missing on the node
// Returns which software `check` lacks on this node; the controller has a remedy for each. {"missing":
// "driver"}: no driver, or it lists no GPU. {"missing": LIBRARY}, with "found" if another major version is
// installed. Null: nothing is missing. `cublaslt`: file name of the version this program was built with.
// `there`: true if the dynamic loader finds that library.
Json missing_software(const std::string& check, bool driver, const std::string& cublaslt,
                      const std::function<bool(const std::string& library)>& there);

// Parses a kernel CPU list such as "0-3,8,10-11"; malformed ranges are skipped.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace muster::kernels::gpu
