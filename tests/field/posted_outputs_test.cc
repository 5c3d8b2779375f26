// Outputs that people posted with a question, and what the thread concluded: the import says the same.
#include <fmt/ranges.h>

#include <optional>

#include "controller/report/import/import.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

struct Posted {
  const char* file;
  const char* source;
  const char* conclusion;
  size_t problems;
  const char* says;  // in a problem, or what is left out, or why there is no figure; "": nothing of these
  const char* name;  // of a value; "": none is looked at
  double value;
  std::optional<double> expected;
};

const Posted kPosted[] = {
    {"nccl-h100-256m.txt",
     "NVIDIA/nccl-tests 212",
     "256 MiB is too small to reach the peak",
     0,
     "256 MiB is too small",
     "busbw",
     437.43,
     {}},
    {"nccl-h100-ring.txt", "IBM/pytorch-communication-benchmarks 1",
     "366 is what a ring reaches; NVLS reaches 480", 0, "", "busbw", 366.43, 366},
    {"nccl-a100-deviation.txt", "NVIDIA/nccl 583", "the usual rate of eight A100; 5e-07 is rounding", 0, "",
     "busbw", 230.92, 231},
    {"nccl-one-rank.txt",
     "NVIDIA/nccl-tests 249",
     "one GPU has no bus bandwidth",
     0,
     "there is one rank",
     "latency",
     45.2,
     {}},
    {"nccl-three-hosts.txt",
     "NVIDIA/nccl-tests 119",
     "reasonable for four HDR ports in each host",
     0,
     "24 ranks on 3 hosts",
     "busbw",
     96.35,
     {}},
    {"nccl-srun-label.txt",
     "a provider's guide",
     "as expected over 16 ports of 100 Gb/s; not validated",
     0,
     "not checked in 2 of 2 rows",
     "busbw",
     188.88,
     {}},
    {"nvbandwidth-invalid-value.txt",
     "NVIDIA/nvbandwidth 34",
     "copies between GPUs are wrong: nothing is measured",
     3,
     "Invalid value",
     "",
     0,
     {}},
    {"nvbandwidth-all-waived.txt",
     "NVIDIA/nvbandwidth 13",
     "no peer access on these GPUs: nothing is wrong",
     0,
     "waived",
     "",
     0,
     {}},
    {"nvbandwidth-six-a6000.txt",
     "NVIDIA/nvbandwidth 50",
     "good for PCIe without NVLink",
     0,
     "",
     "device_to_device_memcpy_read_ce",
     21.9,
     {}},
    {"nvbandwidth-core-dump.txt",
     "NVIDIA/nvbandwidth 15",
     "a test crashes; copies both ways are uneven",
     2,
     "device_to_device_memcpy_read_ce did not end",
     "host_to_device_bidirectional_memcpy_ce",
     11.24,
     {}},
    {"gpu-burn-error-unknown.txt",
     "wilicc/gpu-burn 123",
     "\"OK\" means nothing: no GPU computed",
     9,
     "computed nothing",
     "healthy",
     0,
     {}},
    {"gpu-burn-soft-kill.txt",
     "wilicc/gpu-burn 96",
     "normal; the kill is how it ends",
     0,
     "",
     "healthy",
     1,
     {}},
    {"fio-without-bytes.txt",
     "axboe/fio 272",
     "the rates are there, in KiB/s",
     0,
     "",
     "read_mbps",
     246.89,
     {}},
    {"fio-among-text.txt", "axboe/fio 1627", "12.4 GB/s", 0, "", "read_mbps", 12411.97, {}},
    {"ibnetdiscover-split-ndr.txt",
     "a cluster's handbook",
     "adapters are connected by split cables, at half the rate of the spine",
     0,
     "does not list the node",
     "cables",
     5,
     {}},
};

bool says(const Imported& imported, const std::string& words) {
  const auto has = [&](const std::string& text) { return text.find(words) != std::string::npos; };
  for (const auto& value : imported.values)
    if (!value.expected && has(value.expected_text)) return true;
  for (const auto& left : imported.left_out)
    if (has(left.what + ": " + left.why)) return true;
  for (const auto& problem : imported.problems)
    if (has(problem)) return true;
  return false;
}

}  // namespace

FIELD_CASE("posted-outputs") {
  for (const auto& posted : kPosted) {
    INFO(posted.file << ", " << posted.source << ": " << posted.conclusion);
    const auto out = import_output(field_input("posted-outputs", posted.file));
    INFO((out.ok() ? fmt::format("{}", fmt::join(out->problems, "\n")) : out.error().message));
    REQUIRE(out.ok());
    CHECK(out->problems.size() == posted.problems);
    CHECK((std::string(posted.says).empty() || says(*out, posted.says)));
    if (std::string(posted.name).empty()) {
      CHECK(out->values.empty());
      continue;
    }
    const ImportedValue* found = nullptr;
    for (const auto& value : out->values)
      if (!found && value.name == posted.name) found = &value;
    REQUIRE(found);
    CHECK(found->value == Approx(posted.value).epsilon(1e-3));
    CHECK(found->expected == posted.expected);
  }
}

FIELD_CASE(
    "posted-outputs: two tests that were built without MPI are no test of both hosts") {  // nccl-tests 182
  const auto out = import_output(field_input("posted-outputs", "nccl-without-mpi.txt"));
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().message.find("built without MPI") != std::string::npos);
}

}  // namespace muster::tests
