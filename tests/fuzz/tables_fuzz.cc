// What programs print as tables: perftest, nvidia-smi, ss, and the tools whose results are imported; and what
// DHCP servers answer.
#include <cmath>

#include "controller/doctor/judges.h"
#include "controller/report/import/import.h"
#include "kernels/gpu/logic/gpu_logic.h"
#include "kernels/rdma/rdma.h"
#include "tests/fuzz/targets.h"

namespace muster::fuzz {
namespace {

void read_perftest(const std::string& text) {
  using kernels::PerfTest;
  for (const PerfTest test : {PerfTest::bandwidth, PerfTest::latency}) {
    const auto read = kernels::parse_perftest(text, test);
    if (!read.ok()) continue;
    const double figure = test == PerfTest::bandwidth ? read->gbps : read->typical_us;
    demand(figure > 0 && std::isfinite(figure), "a measurement without a figure");
  }
}

void read_smi(const std::string& text) {
  auto gpus = kernels::gpu::parse_smi(text);
  for (const auto& gpu : gpus)
    for (const auto& [name, number] : gpu.numbers)
      demand(std::isfinite(number), "a counter that is no number");
  kernels::gpu::merge_smi(gpus, gpus);
  for (const auto& gpu : gpus) {
    const auto same = kernels::gpu::judge_smi(gpu, gpu);
    for (const auto& [name, number] : gpu.numbers) (void)kernels::gpu::not_reported(gpu, gpu, name);
    (void)kernels::gpu::same_bus(gpu.bus, gpus.front().bus);
    (void)same;
  }
}

void import_any(const std::string& text) {
  (void)import_output(text);
  for (const auto& format : import_formats()) {
    const auto read = import_output(text, format);
    if (!read.ok()) demand(read.error().code == Code::invalid, "an output rejected with another code");
  }
}

}  // namespace

void tables_fuzz(std::string_view bytes) {
  const std::string text(bytes);
  read_perftest(text);
  read_smi(text);
  import_any(text);
  (void)doctor::read_open_ports(text);
  if (bytes.size() > 32) {  // a packet's transaction is in it
    uint32_t transaction = 0;
    for (const char one : bytes.substr(28 + 4, 4)) transaction = transaction << 8 | static_cast<uint8_t>(one);
    if (const auto offer = doctor::read_dhcp_offer(bytes, transaction))
      demand(!offer->server.empty(), "an offer of no server");
  }
}

}  // namespace muster::fuzz
