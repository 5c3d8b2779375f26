#include "controller/report/expected.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/gpu_models.h"
#include "controller/report/drive_floors.h"
#include "controller/report/measured.h"
#include "controller/report/network_bounds.h"

namespace muster {
namespace {

// Usable share of a 400 Gb/s port's rate with large messages: 48.5 of 50 GB/s (nccl-tests issue 290).
constexpr double kPortPayload = 0.97;

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
  return {peak,
          fmt::format("{:.0f}{} cores x {:.0f} FLOP/cycle x {:.2f} GHz{} = {:.4g} GFLOP/s", cores,
                      cores < all ? fmt::format(" of {:.0f}", all) : "", flops, mhz / 1000,
                      share < 1 ? fmt::format(" x {} (clock with all cores busy)", share) : "", peak),
          "the clock in sysfs; the processor model's vector units"};
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
  return {
      bound,
      fmt::format("{:.0f} channels{} x {:.0f} MT/s x 8 bytes = {:.0f} MB/s", channels,
                  reported > 0 ? "" : fmt::format(" (the fewest for {:.0f} modules)", count), rate, bound),
      "SMBIOS type 17"};
}

Derived gpu_value(const std::string& quantity, const std::set<std::string>& gpus) {
  if (gpus.empty()) return without("no GPU in this node's inventory");
  if (gpus.size() > 1)
    return without(
        fmt::format("the measurement does not report which GPU it used of {}", fmt::join(gpus, ", ")));
  const std::string& model = *gpus.begin();
  const GpuFigure* figure = find_gpu_figure(model, quantity);
  if (!figure) return without(no_gpu_figure(model, quantity), model);
  return {figure->value,
          fmt::format("healthy {} reach {:.4g}{}", model, figure->value,
                      figure->peak > 0 ? fmt::format(", data sheet {:.4g}", figure->peak) : ""),
          figure->source};
}

// What one node with these GPUs reaches inside: as much as its slowest model.
Derived inside_node(const std::set<std::string>& gpus, const char* quantity) {
  Derived out = without("no GPU in this node's inventory");
  for (const auto& model : gpus) {
    const GpuFigure* figure = find_gpu_figure(model, quantity);
    if (!figure) return without(no_gpu_figure(model, quantity), model);
    if (!out.value || figure->value < *out.value) out = {figure->value, model, figure->source};
  }
  return out;
}

// The bound of an NCCL all-reduce, computed from the GPUs, ports and algorithm that the measurement used.
Derived nccl_bus(const Json& result, const std::set<std::string>& models) {
  if (models.empty()) return without("no GPU in this node's inventory");
  const Json& metrics = result.is_object() && result.contains("metrics") ? result["metrics"] : Json();
  const auto of = [&](const char* name) {
    return metrics.contains(name) ? number_in(metrics[name], "value") : 0;
  };
  const double nodes = of("ranks"), gpus = of("gpus");
  if (nodes < 1 || gpus < nodes) return without("the measurement does not report how many GPUs took part");
  CollectiveShape shape;
  shape.nodes = static_cast<int>(nodes);
  shape.gpus_per_node = static_cast<int>(gpus / nodes);
  const Derived by_switch = inside_node(models, "gpu_node_allreduce_gbps"),
                by_ring = inside_node(models, "gpu_node_ring_gbps");
  if (!by_switch.value && !by_ring.value) return by_switch;
  shape.intra_switch_gbps = by_switch.value.value_or(0);
  shape.intra_ring_gbps = by_ring.value.value_or(shape.intra_switch_gbps);
  // Without a figure for rings of its own, the GPU has no reductions in the NVLink switches: NCCL uses rings.
  const auto it = result.find("detail");
  if (!by_ring.value || (it != result.end() && it->is_object() && it->value("algorithm", Json()) == "Ring"))
    shape.algorithm = CollectiveShape::Algorithm::ring;
  const bool ring = shape.algorithm == CollectiveShape::Algorithm::ring || !by_switch.value;
  const auto bound = [&] {
    Derived out = collective_bound(shape);
    out.source = ring && by_ring.value ? by_ring.source : by_switch.source;
    return out;
  };
  if (shape.nodes == 1) return bound();
  const NcclRails rails = nccl_rails(field(detail_of(result), "rails"));
  if (!rails.unknown.empty()) return without(rails.unknown);
  shape.nics_per_node = std::min(rails.count, shape.gpus_per_node);
  shape.nic_gbps = rails.gbps / 8 * kPortPayload;
  Derived out = bound();
  if (!rails.which.empty()) out.text += "; " + rails.which;
  return out;
}

}  // namespace

const std::vector<std::string>& derivable() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = {"cpu_peak",     "dimm_bandwidth", "nic_payload",
                                    "rdma_payload", "nccl_bus",       kDriveModels};
    for (const auto& figure : gpu_figures())
      if (std::find(out.begin(), out.end(), figure.quantity) == out.end()) out.push_back(figure.quantity);
    return out;
  }();
  return names;
}

Derived derive(const std::string& name, const Json& result, const HardwareFacts* facts,
               std::set<std::string> gpus) {
  if (name == "cpu_peak") return cpu_peak(result);
  if (name == "dimm_bandwidth") return dimm_bandwidth(result);
  if (name == "nic_payload") return nic_payload(result, facts);
  if (name == "rdma_payload") return rdma_payload(result);
  if (gpus.empty() && facts)
    for (const auto& gpu : facts->gpus) gpus.insert(gpu.model);
  return name == "nccl_bus" ? nccl_bus(result, gpus) : gpu_value(name, gpus);
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
