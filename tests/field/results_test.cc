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

// Why this is left out; "" if it is not.
std::string left_out(const Imported& imported, const std::string& what) {
  for (const auto& left : imported.left_out)
    if (left.what.find(what) != std::string::npos) return left.why.empty() ? "no reason" : left.why;
  return "";
}

bool has_value(const Imported& imported, const std::string& name) {
  for (const auto& one : imported.values)
    if (one.name == name) return true;
  return false;
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

FIELD_CASE("import-not-allreduce") {
  for (const char* file : {"allgather8.txt", "alltoall8.txt", "allreduce_2x4.txt", "allreduce_small8.txt"}) {
    CAPTURE(file);
    const Imported reported = read("import-not-allreduce", file);
    CHECK_FALSE(value(reported, "busbw").expected.has_value());
    CHECK_FALSE(value(reported, "busbw").expected_text.empty());
    CHECK(reported.problems.empty());
  }
  std::string whole = field_input("import-not-allreduce", "allreduce_small8.txt");
  const std::string size = "   134217728";
  whole.replace(whole.find(size), size.size(), "  8589934592");
  const auto large = import_output(whole);
  REQUIRE(large.ok());
  CHECK(value(*large, "busbw").expected == 476.0);
}

FIELD_CASE("import-not-allreduce: without its name, the factor between its columns shows it") {
  std::string text = field_input("import-not-allreduce", "alltoall8.txt");
  text.erase(text.find("# Collective test starting"), 43);
  const auto reported = import_output(text);
  REQUIRE(reported.ok());
  CHECK_FALSE(value(*reported, "busbw").expected.has_value());
}

FIELD_CASE("nccl-not-checked") {
  const Imported reported = read("nccl-not-checked");
  CHECK_FALSE(has_value(reported, "wrong elements"));
  CHECK_FALSE(left_out(reported, "wrong elements").empty());
  const Imported half = read("import-not-allreduce", "alltoall8.txt");
  CHECK(value(half, "wrong elements").value == 0);
  CHECK(left_out(half, "wrong elements in place") == "not checked in 1 of 1 rows");
}

FIELD_CASE("nvbandwidth-lost-matrix") {
  const Imported reported = read("nvbandwidth-lost-matrix");
  CHECK(value(reported, "host_to_device_memcpy_ce").value == 11.0);
  CHECK(problems(reported, "host_to_device_memcpy_ce did not end") == 1);
  CHECK(problems(reported, "line 10") == 1);
  CHECK(problems(reported, "which is expected") == 1);
  CHECK_FALSE(left_out(reported, "1 test").empty());
}

FIELD_CASE("nvbandwidth-lost-matrix: a row that is missing shows in the sum") {
  std::string text = field_input("nvbandwidth-several-processes", "input.txt");
  const size_t sum = text.rfind("SUM"), row = text.rfind('\n', text.rfind('\n', sum - 2) - 1);
  text.erase(row, text.find('\n', row + 1) - row);
  CHECK_FALSE(import_output(text).ok());
}

FIELD_CASE("fio-2-zero") {
  const Imported reported = read("fio-2-zero", "input.json");
  CHECK(value(reported, "read_mbps").value == Approx(1279.78).epsilon(1e-4));
}

FIELD_CASE("ib-mixed-rates") {
  const Imported reported = read("ib-mixed-rates");
  CHECK(reported.problems.empty());
  CHECK(value(reported, "cables", "2xHDR").value == 3);
  CHECK(value(reported, "cables", "4xHDR").value == 2);
  std::string text = field_input("ib-mixed-rates", "input.txt");
  for (const char* end : {"node2 mlx5_0\" lid 12 2xHDR", "lid 12 lmc 0 \"leaf\" lid 1 2xHDR"}) {
    const size_t at = text.find(end);
    REQUIRE(at != std::string::npos);
    text[at + std::string(end).size() - 5] = '1';
  }
  const auto slow = import_output(text);
  REQUIRE(slow.ok());
  REQUIRE(slow->problems.size() == 1);
  CHECK(problems(*slow, "1xHDR") == 1);
  CHECK(problems(*slow, "node2") == 1);
}

FIELD_CASE("ib-mixed-rates: two links of a kind at two rates have no majority") {
  std::string text = field_input("ib-mixed-rates", "input.txt");
  for (const char* end : {"[32]\t\"S-0000000000000002\"[2]\t\t# \"spine\" lid 2 4xHDR",
                          "[2]\t\"S-0000000000000001\"[32]\t\t# \"leaf\" lid 1 4xHDR"}) {
    const size_t at = text.find(end);
    REQUIRE(at != std::string::npos);
    text[at + std::string(end).size() - 5] = '2';
  }
  const auto reported = import_output(text);
  REQUIRE(reported.ok());
  CHECK(reported->problems.empty());
  CHECK_FALSE(left_out(*reported, "rates of the ports between").empty());
}

}  // namespace muster::tests
