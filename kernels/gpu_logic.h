// What the GPU kernels decide without a GPU: number formats and how large integers may be for a product to be
// exact, the right result, what nvidia-smi printed, the arithmetic of collectives. Tested on the host;
// kernels/gpu/ holds what needs CUDA.
//
// Thread: pure functions and values; golden_product() starts threads and joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/gpu/exact.h"
#include "kernels/sdc.h"

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

// Which program makes the product.
enum class Maker { library, mma, hopper };  // cuBLASLt; mma.sync; wgmma
const char* to_string(Maker maker);
// The own kernel that could make it on a GPU of compute capability `major`.`minor`; library when there is
// none.
Maker own_kernel(Format format, int major, int minor);
// Own kernels that have passed on a GPU of this compute capability. Others are used only when named, and
// their results are marked "unproven".
bool proven(Maker maker, int major, int minor);

// Whether tensor cores of this compute capability take such operands.
bool has_format(Format format, int major, int minor);

// Inputs are integers in -most ... most; with an edge of `k` every partial sum must be exact in the
// accumulator. fp32 and tf32 accumulators hold integers below 2^24; those of fp8 on Hopper keep about 14
// bits, so below 2^13 is relied on: for the whole sum in the library, for 128 products in the own kernel,
// which adds these in fp32. 0: no exact product of that edge.
int exact_most(Format format, Maker maker, size_t k);
// Edges that the own kernels take: their tiles are 128 x 256, and 128 bytes deep.
bool edge_fits(Maker maker, size_t n);

// The right product of integer_at() inputs with an edge of n, as a digest of its 32-bit words: what every
// healthy GPU gives. Integer arithmetic on the host. An int8 product is a number of 32 bits, an fp64 one of
// two words, the lower first.
sdc::Digest golden_product(size_t n, uint64_t seed, int most, Format format, size_t threads);

// bf16 operations per cycle of one multiprocessor's tensor cores, dense, sums in fp32 (data sheets); 0: not
// known.
int bf16_operations_per_cycle(int major, int minor);

// --- places where a bit can be flipped on purpose
// As in sdc.h. The library's registers cannot be reached: only its inputs and its output in memory.
bool can_flip(sdc::Site site, Maker maker);

// --- time series
struct Series {
  std::vector<double> values = {};
  double median = 0, p01 = 0,
         slowest_ratio = 0;      // p01: almost the slowest; slowest_ratio: p01 over the median
  double drift = 0;              // median of the last quarter over that of the first: throttling shows here
  Json json(size_t most) const;  // at most this many values, evenly spaced
};
Series summarise(std::vector<double> values);

// --- nvidia-smi
struct SmiGpu {
  std::string uuid = {}, serial = {}, name = {}, bus = {};
  std::map<std::string, double> numbers =
      {};  // by nvidia-smi's field name; what it does not support is absent
  std::map<std::string, std::string> words = {};  // the driver's version, and errors in place of numbers
};
// The requested fields, as its --query-gpu and --query-remapped-rows take them.
const std::string& smi_fields();
const std::string& smi_remap_fields();
// Output of --format=csv,nounits: a heading, then a line per GPU. Units in the heading ("clocks.current.sm
// [MHz]") are dropped; hexadecimal and yes/no become numbers.
std::vector<SmiGpu> parse_smi(const std::string& csv);
// Why `field` has no number, where it should: an error, or it had one before or after. "": the GPU does not
// count it.
std::string not_told(const SmiGpu& before, const SmiGpu& after, const std::string& field);
// Adds the numbers and words of `from` (by UUID).
void merge_smi(std::vector<SmiGpu>& into, const std::vector<SmiGpu>& from);
// CUDA prints bus addresses with a domain of four digits, nvidia-smi with eight.
bool same_bus(const std::string& a, const std::string& b);
// Faults: a remap that failed or waits for a reset, an uncorrected error that is new since `before`.
// Corrected errors that moved are `worn`.
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
// Bus bandwidth over algorithm bandwidth, as nccl-tests defines it; 0 with one rank where nothing crosses a
// link.
double bus_factor(Collective collective, int ranks);

// --- what is missing on the node
inline constexpr const char* kNcclLibrary = "libnccl.so.2";
// Why `check` could not run there, for the controller, which has a remedy for each. {"missing": "driver"}: it
// is absent or shows no GPU. {"missing": a library's name}, with "found" where a different major version is
// installed. Null: nothing that it needs is missing. `cublaslt`: by name, of the version this program was
// built with. `there` queries the loader.
Json missing_software(const std::string& check, bool driver, const std::string& cublaslt,
                      const std::function<bool(const std::string& library)>& there);

// "0-3,8,10-11"
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace muster::kernels::gpu
