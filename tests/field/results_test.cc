// Outputs of other tools as they really end: nothing that was not measured may look healthy.
#include "controller/report/import/import.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

Imported read(const std::string& name, const std::string& file = "input.txt") {
  const auto out = import_output(field_input(name, file));
  if (!out.ok()) FAIL(name << ": " << out.error().message);
  return *out;
}

bool refused(const std::string& name, const std::string& file = "input.txt") {
  const auto out = import_output(field_input(name, file));
  return !out.ok() && out.error().code == Code::invalid;
}

const ImportedValue& value(const Imported& imported, const std::string& name,
                           const std::string& subject = "") {
  for (const auto& one : imported.values)
    if (one.name == name && (subject.empty() || one.subject == subject)) return one;
  static const ImportedValue kNone;
  FAIL("no value " << name << " " << subject);
  return kNone;
}

// How many problems have this in them.
size_t problems(const Imported& imported, const std::string& about) {
  size_t found = 0;
  for (const auto& problem : imported.problems) found += problem.find(about) != std::string::npos;
  return found;
}

}  // namespace

FIELD_CASE("gpu-burn-init-failed") {
  const Imported none = read("gpu-burn-init-failed");
  CHECK(value(none, "healthy", "GPU 0").value == 0);
  CHECK(value(none, "healthy", "GPU 1").value == 0);
  CHECK(problems(none, "CUBLAS_STATUS_NOT_INITIALIZED") == 1);
  CHECK(none.problems.size() == 3);
  const Imported one = read("gpu-burn-init-failed", "one.txt");
  CHECK(value(one, "healthy", "GPU 0").value == 1);
  CHECK(value(one, "healthy", "GPU 1").value == 0);
  CHECK(one.problems.size() == 1);
}

FIELD_CASE("gpu-burn-side-by-side") {
  const Imported reported = read("gpu-burn-side-by-side");
  CHECK(problems(reported, "FAULTY") == 4);
  CHECK(problems(reported, "GPU 0 had") == 0);
  CHECK(problems(reported, "GPU 1 had 3 ") == 1);
  CHECK(problems(reported, "GPU 2 had") == 1);
  CHECK(problems(reported, "GPU 3 had 7 ") == 1);
}

FIELD_CASE("gpu-burn-no-clients") { CHECK(refused("gpu-burn-no-clients")); }

FIELD_CASE("nccl-aborted") {
  CHECK(refused("nccl-aborted"));
  CHECK(refused("nccl-aborted", "cut.txt"));
  const auto out = import_output(field_input("nccl-aborted", "input.txt"));
  CHECK(out.error().message.find("made-up error") != std::string::npos);
}

FIELD_CASE("nccl-aborted: with the results of another test behind it") {
  std::string second = field_input("nccl-aborted", "cut.txt");
  const auto out =
      import_output(field_input("nccl-aborted", "input.txt") + second + "# Avg bus bandwidth    : 27.9\n");
  REQUIRE(out.ok());
  CHECK(problems(*out, "made-up error") == 1);
}

FIELD_CASE("nccl-out-of-bounds") {
  const Imported reported = read("nccl-out-of-bounds");
  CHECK(value(reported, "wrong elements").value == 25);
  CHECK(!reported.problems.empty());
}

FIELD_CASE("nccl-failed-at-start") { CHECK(refused("nccl-failed-at-start")); }

FIELD_CASE("nccl-tagged-output") {
  const Imported reported = read("nccl-tagged-output");
  CHECK(reported.title == "2 ranks on NVIDIA H100 80GB HBM3");
  CHECK(value(reported, "busbw").value == 34.84);
  CHECK(reported.problems.empty());
}

FIELD_CASE("nvbandwidth-latency-unit") {
  const Imported reported = read("nvbandwidth-latency-unit");
  CHECK(reported.title == "2 devices, NVIDIA H100 80GB HBM3");
  CHECK(value(reported, "device_to_device_latency_sm").value == 990.25);
  CHECK(value(reported, "device_to_device_latency_sm").unit == "ns");
}

FIELD_CASE("nvbandwidth-waived") {
  const Imported reported = read("nvbandwidth-waived");
  CHECK(value(reported, "device_to_device_memcpy_read_ce").value == 389.10);
  CHECK(value(reported, "device_to_device_memcpy_read_ce").unit == "GB/s");
  CHECK(reported.problems.empty());
}

FIELD_CASE("nvbandwidth-several-processes") {
  CHECK(read("nvbandwidth-several-processes").title == "2 devices, NVIDIA GB200");
}

}  // namespace muster::tests
