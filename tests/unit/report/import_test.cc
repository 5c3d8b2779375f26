// Outputs of other tools: recordings of real machines are read to known numbers, damaged ones are refused
// with the place.
#include "controller/report/import/import.h"

#include <fstream>
#include <sstream>

#include "cli/run.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

std::string golden(const std::string& name) {
  std::ifstream in(source_dir() + "/tests/golden/import/" + name + ".txt");
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

const ImportedValue& get(const Imported& imported, const std::string& name, const std::string& subject = "") {
  for (const auto& value : imported.values)
    if (value.name == name && (subject.empty() || value.subject == subject)) return value;
  static const ImportedValue kNone;
  FAIL("no value " << name << " " << subject);
  return kNone;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

std::string problem(const std::string& text, const std::string& format) {
  const auto read = import_output(text, format);
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().code == Code::invalid);
  return read.error().message;
}

}  // namespace

TEST_CASE("every recording is recognised by its content") {
  for (const auto& format : import_formats()) {
    CAPTURE(format);
    const auto read = import_output(golden(format));
    REQUIRE(read.ok());
    CHECK(read->format == format);
    CHECK_FALSE(read->title.empty());
  }
  CHECK(problem("hello", "").find("nccl-tests") != std::string::npos);
  CHECK(problem(golden("fio"), "xml").find("unknown format 'xml'") != std::string::npos);
}

TEST_CASE("nccl-tests: the largest size, beside what eight such GPUs reach") {
  const auto read = import_output(golden("nccl-tests"));
  REQUIRE(read.ok());
  CHECK(read->title == "8 ranks on A100-SXM4-40GB");
  CHECK(get(*read, "busbw").value == 235.26);
  CHECK(get(*read, "busbw").subject == "8 GiB");
  CHECK(get(*read, "busbw").expected == 231.0);
  CHECK(get(*read, "busbw in place").value == 235.03);
  CHECK(get(*read, "latency").value == 34.73);
  CHECK(read->problems.empty());
  REQUIRE(read->left_out.size() == 3);
  CHECK(read->left_out[0].what == "largest deviation");
  CHECK(read->left_out[0].why == "not checked in 32 of 32 rows");
  CHECK(read->left_out[1].what == "largest deviation in place");
  CHECK(read->left_out[2].what == "2 rows of size 0");
  const std::string row =
      "  8589934592    2147483648   float     sum    63896  134.44  235.26    N/A    63959  134.30  235.03   "
      " N/A";
  const std::string seven = replaced(golden("nccl-tests"), row, row.substr(0, row.size() - 3) + "7");
  const auto wrong = import_output(seven);
  REQUIRE(wrong.ok());
  CHECK(wrong->problems.empty());  // the closing line says whether a deviation is too large
  CHECK(get(*wrong, "largest deviation").value == 7);
  const auto counted = import_output(replaced(
      replaced(seven, "busbw  error     time", "busbw #wrong     time"), "busbw  error", "busbw #wrong"));
  REQUIRE(counted.ok());
  CHECK(get(*counted, "wrong elements").value == 7);
  CHECK(counted->problems == std::vector<std::string>{"7 elements were wrong"});
  CHECK(problem(replaced(golden("nccl-tests"), row, row.substr(0, 60)), "").find("line 50: ") !=
        std::string::npos);
  CHECK(problem(replaced(golden("nccl-tests"), "63896", "fast"), "").find("is not a number") !=
        std::string::npos);
  CHECK(problem("algbw busbw\n", "").find("contains no row") != std::string::npos);
}

TEST_CASE("gpu-burn: a verdict per GPU, whatever its exit status was") {
  const auto read = import_output(golden("gpu-burn"));
  REQUIRE(read.ok());
  CHECK(read->title == "8 GPUs, NVIDIA A100-SXM4-80GB");
  CHECK(get(*read, "healthy", "GPU 7").value == 1);
  CHECK(get(*read, "best", "GPU 0").value == 7150);
  CHECK(read->problems.empty());
  const auto faulty = import_output(replaced(replaced(golden("gpu-burn"), "GPU 3: OK", "GPU 3: FAULTY"),
                                             "errors: 0 - 0", "errors: 0 - 12"));
  REQUIRE(faulty.ok());
  CHECK(get(*faulty, "healthy", "GPU 3").value == 0);
  CHECK(faulty->problems == std::vector<std::string>{"GPU 3 is FAULTY", "GPU 1 had 12 errors"});
  CHECK(problem(replaced(golden("gpu-burn"), "Tested", "Testing"), "").find("did not finish") !=
        std::string::npos);
  CHECK(problem(replaced(golden("gpu-burn"), "GPU 6: OK", ""), "").find("7 of 8") != std::string::npos);
  for (const char* count : {"Tested 1e300 GPUs", "Tested 1e19 GPUs", "Tested -8 GPUs", "Tested 0 GPUs"})
    (void)problem(replaced(golden("gpu-burn"), "Tested 8 GPUs", count), "");
}

TEST_CASE("nvbandwidth: the worst cell of each matrix") {
  const auto read = import_output(golden("nvbandwidth"));
  REQUIRE(read.ok());
  CHECK(read->title == "1 device, NVIDIA GH200 480GB");
  CHECK(get(*read, "host_to_device_memcpy_ce").value == 269.33);
  CHECK(get(*read, "host_to_device_memcpy_ce").subject == "worst of 6");
  CHECK(get(*read, "host_device_latency_sm").value == 772.58);
  CHECK(get(*read, "host_device_latency_sm").unit == "ns");
  REQUIRE_FALSE(read->problems.empty());
  CHECK(read->problems[0] == "host_to_device_memcpy_ce: the lowest is 269.3, the highest 412.1 GB/s");
  CHECK(problem(replaced(golden("nvbandwidth"), "269.33    412.11", "269.33"), "")
            .find("line 13: the row has 2 values instead of 3") != std::string::npos);
  CHECK(problem(replaced(golden("nvbandwidth"), "269.33", "quick"), "").find("'quick' is not a bandwidth") !=
        std::string::npos);
  CHECK(problem("nvbandwidth Version: v0.6\n", "").find("contains no matrix") != std::string::npos);
}

TEST_CASE("nvbandwidth: devices are counted in both forms of their lines, and in no other") {
  const std::string text = golden("nvbandwidth"), line = "Device 0: NVIDIA GH200 480GB (00000009:01:00)";
  REQUIRE(text.find(line) != std::string::npos);
  const auto title = [&](const std::string& other) {
    const auto read = import_output(replaced(text, line, other));
    return read.ok() ? read->title : read.error().message;
  };
  CHECK(title(line + "\n" + line) == "2 devices, NVIDIA GH200 480GB");
  CHECK(title("Process 0 (host-1): device 0: NVIDIA H100 (0)") == "1 device, NVIDIA H100");
  CHECK(title("Process 0 (host-1): Device 123456: X") == "1 device, X");
  for (const char* other : {"Device 1234567: X", "Device : X", "Device 0 X", "Process 0 (): device 0: X",
                            "Process (h): device 0: X", "Process 0 (h) device 0: X", " Device 0: X",
                            "Device to Device Latency SM GPU(row) <-> GPU(column)"})
    CHECK(title(other) == "0 devices, ");
}

TEST_CASE("fio: read and write per job") {
  const auto read = import_output(golden("fio"));
  REQUIRE(read.ok());
  CHECK(read->title == "/dev/nvme0n1");
  CHECK(get(*read, "read_mbps", "rand_read_write").value == Approx(348.743777));
  CHECK(get(*read, "write_mbps").value == Approx(348.450387));
  CHECK(get(*read, "read_mbps").like.empty());  // 4 KiB at random places: ours are sequential
  const auto sequential = import_output(replaced(golden("fio"), "\"randrw\"", "\"rw\""));
  CHECK(get(*sequential, "read_mbps").like == "local storage/read_mbps");
  const auto random = import_output(replaced(golden("fio"), "\"randrw\"", "\"randread\""));
  CHECK(get(*random, "read_iops").like == "local storage/random_read_iops");
  CHECK(import_output(replaced(golden("fio"), "\"error\" : 0", "\"error\" : 5"))->problems ==
        std::vector<std::string>{"job rand_read_write ended with error 5"});
  CHECK_FALSE(problem(golden("fio").substr(0, 900), "").empty());
  CHECK(problem("{\"fio version\": \"3\", \"jobs\": []}", "").find("contains no jobs") != std::string::npos);
  CHECK(problem("{\"fio version\": \"3\", \"jobs\": [7]}", "").find("has no name") != std::string::npos);
}

TEST_CASE("ibnetdiscover: the fabric, and cables that do not add up") {
  const auto read = import_output(golden("ibnetdiscover"));
  REQUIRE(read.ok());
  CHECK(get(*read, "switches").value == 8);
  CHECK(get(*read, "adapters").value == 10);
  CHECK(get(*read, "cables", "4xHDR").value == 18);
  CHECK(read->problems.empty());
  const auto slow = import_output(replaced(golden("ibnetdiscover"), "lid 226 4xHDR", "lid 226 1xHDR"));
  REQUIRE(slow.ok());
  REQUIRE(slow->problems.size() == 1);
  CHECK(slow->problems[0].find("S01/U1 port 1 runs at 1xHDR") != std::string::npos);
  const auto crossed = import_output(
      replaced(golden("ibnetdiscover"), "\"S-0ff08c432172aa1a\"[21]", "\"S-0ff08c432172aa1a\"[22]"));
  REQUIRE(crossed.ok());
  CHECK(crossed->problems.size() >= 1);
  CHECK(problem(replaced(golden("ibnetdiscover"), "\"S-0ff08c432172aa1a\"[21]", "nowhere"), "")
            .find("the other end of the port is missing") != std::string::npos);
  CHECK(problem("devid=1\nsysimgguid=2\n", "").find("contains no cable") != std::string::npos);
}

TEST_CASE("muster report import prints, compares, and says what is wrong") {
  const TempDir dir;
  dir.write("nccl.log", golden("nccl-tests"));
  dir.write("bad.log", "nothing");
  const std::string good = dir.path("nccl.log"), bad = dir.path("bad.log");
  const auto import = [](const std::string& file) {
    const char* argv[] = {"muster", "--socket", "/nonexistent", "report", "import", file.c_str()};
    return cli::run(6, argv);
  };
  CHECK(import(good) == 0);
  CHECK(import(bad) == 2);
  CHECK(import(dir.path("missing")) == 2);
}
