#include "controller/report/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "controller/report/drive_floors.h"
#include "controller/report/measured.h"
#include "controller/report/network_bounds.h"
#include "controller/spec/spec.h"

namespace muster {
namespace {

// Sources of the table. Fleet: microsoft/superbench-results v0.4.0 (729 nodes). Guide:
// Azure/AI-benchmarking-guide Azure_Results. ML: stas00/ml-engineering compute/accelerator. Fryer:
// huggingface/gpu-fryer README. NB: NVIDIA/nvbandwidth README and issues. NT: NVIDIA/nccl-tests issues 290
// and 153. DCGM: NVIDIA/DCGM diag-skus comments.
constexpr const char* kFleet = "superbench-results v0.4.0, 729 nodes";
constexpr const char* kGuide = "Azure AI-benchmarking-guide";
constexpr const char* kMl = "ml-engineering, MAMF table";
// Measured on one card of each model, for 3 to 5 s at its power limit of 700 W. Published figures are higher
// if they are from the first milliseconds, or from inputs that need less power.
constexpr const char* kOwn = "muster's own run, bench/results/2026-11-27-NVIDIA-*.json";

// Usable share of a 400 Gb/s port's rate with large messages: 48.5 of 50 GB/s (nccl-tests issue 290).
constexpr double kPortPayload = 0.97;

Derived without(std::string why) { return {std::nullopt, std::move(why)}; }

double number_in(const Json& json, const char* key) {
  const auto it = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && it != json.end() && it->is_number() ? it->get<double>() : 0;
}
const Json& detail_of(const Json& result) {
  static const Json kNone;
  const auto it = result.is_object() ? result.find("detail") : result.end();
  return result.is_object() && it != result.end() ? *it : kNone;
}

// The smallest share of one core's highest clock that all cores sustain under load: EPYC 9654 2.4 of 3.7 GHz,
// EPYC 9965 2.25 of 3.7 (AMD's product pages). With AVX-512, small Intel Xeons of the first generations fall
// below their base clock to the same extent: a pair of ten-core ones at 2.2 GHz was reported with 230
// GFLOP/s, a third of what the base clock would give.
constexpr double kLoadedClock = 0.6;

// Cores x FLOP per cycle x clock. The measuring kernel reports the clock, and only cores that it could use.
Derived cpu_peak(const Json& result) {
  const Json& d = detail_of(result);
  double cores = number_in(d, "physical_cores"), flops = number_in(d, "flops_per_cycle");
  const double mhz = number_in(d, "cpu_mhz"), threads = number_in(d, "threads");
  if (cores <= 0 || flops <= 0)
    return without("the measurement does not report the number of cores and the FLOP per cycle");
  if (mhz <= 0) return without("this machine does not report its processors' clock rate");
  const double all = std::max(cores, number_in(d, "machine_cores"));
  if (threads > 0) cores = std::min(cores, threads);
  const bool one_unit = text_of(field(d, "variant")) == "avx512f" && number_in(d, "units_512") != 2;
  if (one_unit) flops = std::min(flops, 16.0);
  const double share = one_unit || text_of(field(d, "clock")) == "highest" ? kLoadedClock : 1;
  const double peak = cores * flops * mhz / 1000 * share;
  return {peak, fmt::format("{:.0f}{} cores x {:.0f} FLOP/cycle x {:.2f} GHz{} = {:.4g} GFLOP/s", cores,
                            cores < all ? fmt::format(" of {:.0f}", all) : "", flops, mhz / 1000,
                            share < 1 ? fmt::format(" x {} (clock with all cores busy)", share) : "", peak)};
}

// The minimum number of channels for these modules, if the machine does not report it: two modules may share
// a channel, and three if no channel runs faster than DDR4-2133.
double fewest_channels(double modules, double rate) {
  const bool three = rate <= 2133 && std::fmod(modules, 3) == 0;
  return std::ceil(modules / (three ? 3 : 2));
}

// Channels x transfers per second x 8 bytes.
Derived dimm_bandwidth(const Json& result) {
  const Json& d = detail_of(result);
  const double count = number_in(d, "dimms"), rate = number_in(d, "dimm_mt_s"),
               reported = number_in(d, "channels"), cores = number_in(d, "physical_cores"),
               all = number_in(d, "machine_cores");
  if (count <= 0 && field(d, "dimms_denied") == true)
    return without("not looked at: reading the table of memory modules requires root");
  if (count <= 0 || rate <= 0) return without("SMBIOS does not report the memory modules' speed");
  // A few cores cannot use the bandwidth of all channels.
  if (cores < all) return without(fmt::format("only {:.0f} of {:.0f} cores could be used", cores, all));
  const double channels = reported > 0 ? std::min(reported, count) : fewest_channels(count, rate);
  const double bound = channels * rate * 8;
  return {bound, fmt::format("{:.0f} channels{} x {:.0f} MT/s x 8 bytes = {:.0f} MB/s", channels,
                             reported > 0 ? "" : fmt::format(" (the fewest for {:.0f} modules)", count), rate,
                             bound)};
}

Derived gpu_value(const std::string& name, const HardwareFacts* facts) {
  if (!facts || facts->gpus.empty()) return without("no GPU in this node's inventory");
  const std::string& model = facts->gpus.front().model;
  for (const auto& row : gpu_table())
    if (row.quantity == name && glob_match(row.model, model))
      return {row.value, fmt::format("healthy {} reach {:.4g} ({}{})", model, row.value, row.source,
                                     row.peak > 0 ? fmt::format("; data sheet {:.4g}", row.peak) : "")};
  return without(fmt::format("the GPU table has no {} for {}", name, model));
}

double table_value(const std::string& quantity, const std::string& model) {
  for (const auto& row : gpu_table())
    if (row.quantity == quantity && glob_match(row.model, model)) return row.value;
  return 0;
}

// The bound of an NCCL all-reduce, computed from the GPUs, ports and algorithm that the measurement used.
Derived nccl_bus(const Json& result, const HardwareFacts* facts) {
  if (!facts || facts->gpus.empty()) return without("no GPU in this node's inventory");
  const Json& metrics = result.is_object() && result.contains("metrics") ? result["metrics"] : Json();
  const auto of = [&](const char* name) {
    return metrics.contains(name) ? number_in(metrics[name], "value") : 0;
  };
  const double nodes = of("ranks"), gpus = of("gpus");
  if (nodes < 1 || gpus < nodes) return without("the measurement does not report how many GPUs took part");
  const std::string& model = facts->gpus.front().model;
  CollectiveShape shape;
  shape.nodes = static_cast<int>(nodes);
  shape.gpus_per_node = static_cast<int>(gpus / nodes);
  shape.intra_switch_gbps = table_value("gpu_node_allreduce_gbps", model);
  shape.intra_ring_gbps = table_value("gpu_node_ring_gbps", model);
  // Without a figure for rings of its own, the GPU has no reductions in the NVLink switches: NCCL uses rings.
  if (shape.intra_ring_gbps <= 0) {
    shape.intra_ring_gbps = shape.intra_switch_gbps;
    shape.algorithm = CollectiveShape::Algorithm::ring;
  }
  if (shape.intra_ring_gbps <= 0)
    return without(fmt::format("the GPU table has no all-reduce figure within one node for {}", model));
  const auto it = result.find("detail");
  if (it != result.end() && it->is_object() && it->value("algorithm", Json()) == "Ring")
    shape.algorithm = CollectiveShape::Algorithm::ring;
  if (shape.nodes == 1) return collective_bound(shape);
  const NcclRails rails = nccl_rails(field(detail_of(result), "rails"));
  if (!rails.unknown.empty()) return without(rails.unknown);
  shape.nics_per_node = std::min(rails.count, shape.gpus_per_node);
  shape.nic_gbps = rails.gbps / 8 * kPortPayload;
  Derived bound = collective_bound(shape);
  if (!rails.which.empty()) bound.text += "; " + rails.which;
  return bound;
}

}  // namespace

const std::vector<std::string>& derivable() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = {"cpu_peak",     "dimm_bandwidth", "nic_payload",
                                    "rdma_payload", "nccl_bus",       kDriveModels};
    for (const auto& row : gpu_table())
      if (std::find(out.begin(), out.end(), row.quantity) == out.end()) out.push_back(row.quantity);
    return out;
  }();
  return names;
}

Derived derive(const std::string& name, const Json& result, const HardwareFacts* facts) {
  if (name == "cpu_peak") return cpu_peak(result);
  if (name == "dimm_bandwidth") return dimm_bandwidth(result);
  if (name == "nic_payload") return nic_payload(result, facts);
  if (name == "nccl_bus") return nccl_bus(result, facts);
  if (name == "rdma_payload") return rdma_payload(result);
  return gpu_value(name, facts);
}

const std::vector<GpuExpectation>& gpu_table() {
  static const std::vector<GpuExpectation> rows = {
      {"*A100*SXM*", "gpu_bf16_tflops", 261, 312, kFleet},
      {"*A100*SXM*", "gpu_tf32_tflops", 127, 156, kFleet},
      {"*A100*SXM*", "gpu_fp64_tflops", 18.95, 19.5, kFleet},
      {"*A100*SXM*", "gpu_int8_tops", 467, 624, kFleet},
      {"*A100*SXM*80GB*", "gpu_copy_gbps", 1610, 2039, kGuide},
      {"*A100*SXM*80GB*", "gpu_triad_gbps", 1700, 2039, kGuide},
      {"*A100*SXM*", "gpu_h2d_gbps", 25.9, 31.5, kFleet},
      {"*A100*SXM*", "gpu_d2h_gbps", 25.9, 31.5, kFleet},
      {"*A100*SXM*", "gpu_p2p_gbps", 274, 300, "nvbandwidth README"},
      {"*A100*SXM*", "gpu_node_allreduce_gbps", 231, 300, kFleet},
      {"*H100*HBM3*", "gpu_bf16_tflops", 695, 989, kOwn},
      {"*H100*HBM3*", "gpu_fp8_tflops", 1245, 1979, kOwn},
      {"*H100*HBM3*", "gpu_tf32_tflops", 345, 494.5, kOwn},
      {"*H100*HBM3*", "gpu_copy_gbps", 2900, 3350, kGuide},
      {"*H100*HBM3*", "gpu_triad_gbps", 2970, 3350, kGuide},
      {"*H100*HBM3*", "gpu_h2d_gbps", 51, 63, "vpbenchmarking; nvbandwidth issue 24"},
      {"*H100*HBM3*", "gpu_d2h_gbps", 46.8, 63, "vpbenchmarking; nvbandwidth issue 24"},
      {"*H100*HBM3*", "gpu_p2p_gbps", 376, 450, "vpbenchmarking"},
      {"*H100*HBM3*", "gpu_node_allreduce_gbps", 476, 0, "nccl-tests issue 290, NVLS"},
      {"*H100*HBM3*", "gpu_node_ring_gbps", 366, 450, "nccl-tests issue 290, ring"},
      {"NVIDIA H200*", "gpu_bf16_tflops", 695, 989, kOwn},
      {"NVIDIA H200*", "gpu_fp8_tflops", 1245, 1979, kOwn},
      {"NVIDIA H200*", "gpu_copy_gbps", 4010, 4800, "Azure AI-benchmarking-guide ND_H200_v5"},
      {"NVIDIA H200*", "gpu_triad_gbps", 4150, 4800, "Azure AI-benchmarking-guide ND_H200_v5"},
      {"NVIDIA H200*", "gpu_h2d_gbps", 55.1, 63, kMl},
      {"NVIDIA H200*", "gpu_d2h_gbps", 55.1, 63, kMl},
      {"NVIDIA H200*", "gpu_p2p_gbps", 396, 450, kMl},
      {"NVIDIA H200*", "gpu_node_allreduce_gbps", 480, 0,
       "Azure AI-benchmarking-guide ND_H200_v5, NVLS, 8 GiB"},
      {"NVIDIA H200*", "gpu_node_ring_gbps", 367.6, 450, kMl},
      {"NVIDIA B200*", "gpu_bf16_tflops", 1745, 2250, kMl},
      {"NVIDIA B200*", "gpu_fp8_tflops", 3432, 4500, kMl},
      {"NVIDIA B200*", "gpu_node_allreduce_gbps", 838, 0, "NVIDIA/nccl issues, NVLS"},
      {"NVIDIA B200*", "gpu_node_ring_gbps", 682, 900, "NVIDIA/nccl issues, ring"},
  };
  return rows;
}

Derived collective_bound(const CollectiveShape& s) {
  if (s.nodes < 1 || s.gpus_per_node < 1 || s.nics_per_node < 0 || s.nic_gbps < 0)
    return without("not a cluster");
  const double inside = s.intra_switch_gbps > 0 && s.algorithm != CollectiveShape::Algorithm::ring
                            ? s.intra_switch_gbps
                            : s.intra_ring_gbps;
  if (s.nodes == 1) return {inside, fmt::format("within one node: {:.4g} GB/s", inside)};
  const double nics = s.nics_per_node * s.nic_gbps;
  if (nics <= 0) return without("no network port connects the nodes");
  const double n = s.nodes, ranks = n * s.gpus_per_node;
  if (s.algorithm == CollectiveShape::Algorithm::ring) {
    const double bound = std::min(inside, nics);
    return {
        bound,
        fmt::format(
            "ring: min(inside {:.4g}, {} ports x {:.4g} = {:.4g}) GB/s, independent of the number of nodes",
            inside, s.nics_per_node, s.nic_gbps, nics)};
  }
  if (s.algorithm == CollectiveShape::Algorithm::sharp)
    return {
        inside,
        fmt::format(
            "reduction in the switches: {:.4g} GB/s as inside one node, independent of the number of nodes",
            inside)};
  // Each port transfers S/ports x 2(N-1)/N; busbw counts 2(ranks-1)/ranks x S.
  const double across = nics * n / (n - 1) * (ranks - 1) / ranks;
  const double bound = std::min(inside, across);
  return {bound,
          fmt::format("min(inside {:.4g}, {} ports x {:.4g} x {:.0f}/{:.0f} x {:.0f}/{:.0f} = {:.4g}) GB/s",
                      inside, s.nics_per_node, s.nic_gbps, n, n - 1, ranks - 1, ranks, across)};
}

}  // namespace muster
