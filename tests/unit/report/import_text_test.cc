// Outputs as shells, terminals and launchers save them: the same numbers, or a refusal with the line.
#include "controller/report/import/import_text.h"

#include "controller/report/import/import.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

std::string golden(const std::string& name) {
  return text_of(std::string(source_dir()) + "/tests/golden/import/" + name + ".txt");
}

std::string every_line(const std::string& text, const std::string& before, const std::string& after) {
  std::string out = before;
  for (const char c : text)
    if (c == '\n')
      out += after + "\n" + before;
    else
      out += c;
  return out;
}

std::string utf16(const std::string& text, bool little) {
  std::string out = little ? "\xff\xfe" : "\xfe\xff";
  for (const char c : text) out += little ? std::string{c, '\0'} : std::string{'\0', c};
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

// One text for all that the import found.
std::string found_in(const std::string& text) {
  const auto read = import_output(text);
  if (!read.ok()) return "refused: " + read.error().message;
  std::string out = read->format + ": " + read->title;
  for (const auto& value : read->values)
    out += "; " + value.name + " " + value.subject + " " + std::to_string(value.value);
  for (const auto& problem : read->problems) out += "; ! " + problem;
  for (const auto& left : read->left_out) out += "; - " + left.what + ": " + left.why;
  return out;
}

}  // namespace

TEST_CASE("import: how an output was saved changes nothing") {
  for (const char* format : {"nccl-tests", "gpu-burn", "nvbandwidth", "fio", "ibnetdiscover"}) {
    CAPTURE(format);
    const std::string text = golden(format), found = found_in(text);
    REQUIRE_FALSE(found.starts_with("refused"));
    CHECK(found_in(every_line(text, "", "\r")) == found);
    CHECK(found_in("\xef\xbb\xbf" + text) == found);
    CHECK(found_in(utf16(text, true)) == found);
    CHECK(found_in(utf16(text, false)) == found);
    CHECK(found_in(every_line(text, "\x1b[1;32m", "\x1b[0m")) == found);
    CHECK(found_in(every_line(text, "[1,0]<stdout>:", "")) == found);
    CHECK(found_in(every_line(text, "[prterun-node01-4711@1,0]<stdout>: ", "")) == found);
    CHECK(found_in(every_line(text, " 0: ", "")) == found);
    CHECK(found_in(every_line(text, "15: ", "")) == found);
  }
  CHECK(plain_text("12:30: noon\n0000:17:00 x\n") == "12:30: noon\n0000:17:00 x\n");
}

TEST_CASE("import: the line that is refused is the file's, also with carriage returns") {
  const std::string bad = replaced(golden("nccl-tests"), "63896", "inf");
  CHECK(found_in(bad).find("line 50: ") != std::string::npos);
  CHECK(found_in(every_line(bad, "", "\r")) == found_in(bad));
  for (const char* number : {"nan", "63896,5", "-", "0x10"}) {
    CAPTURE(number);
    CHECK(found_in(replaced(golden("nccl-tests"), "63896", number)).find("not a number") !=
          std::string::npos);
  }
  for (const char* number : {"inf", "-nan", "269,33"})
    CHECK(found_in(replaced(golden("nvbandwidth"), "269.33", number)).find("is not a bandwidth") !=
          std::string::npos);
}

TEST_CASE("import: a deviation that is no number is a problem") {
  const std::string row = "134.44  235.26    ";
  for (const char* number : {"nan", "inf"})
    CHECK(found_in(replaced(golden("nccl-tests"), row + "N/A", row + number))
              .find(std::string("; ! largest deviation at 8 GiB: ") + number) != std::string::npos);
}

TEST_CASE("import: of several runs in a file each is shown, and one that ended early is a problem") {
  for (const char* format : {"nccl-tests", "gpu-burn", "nvbandwidth"}) {
    CAPTURE(format);
    const std::string text = golden(format);
    const auto two = import_output(text + text);
    REQUIRE(two.ok());
    const auto one = import_output(text);
    CHECK(two->values.size() == 2 * one->values.size());
    CHECK(two->values.front().subject.starts_with("run 1"));
    CHECK(two->values.back().subject.starts_with("run 2"));
    CHECK(two->problems.size() == 2 * one->problems.size());
  }
  const std::string nccl = golden("nccl-tests");
  const auto cut = import_output(nccl.substr(0, nccl.find("# Out of bounds")) + nccl);
  REQUIRE(cut.ok());
  REQUIRE(cut->problems.size() == 1);
  CHECK(cut->problems[0].find("run 1: ") == 0);
  CHECK(cut->values.front().subject.starts_with("run 2"));
  CHECK(cut->left_out.front().what == "run 1");
  const std::string burn = golden("gpu-burn");
  const auto faulty = import_output(replaced(burn, "GPU 3: OK", "GPU 3: FAULTY") + burn);
  REQUIRE(faulty.ok());
  CHECK(faulty->problems == std::vector<std::string>{"run 1: GPU 3 is FAULTY"});
}

TEST_CASE("import: a file that was cut off is refused, or shown as not ended") {
  for (const char* format : {"nccl-tests", "gpu-burn", "nvbandwidth", "fio"}) {
    const std::string text = golden(format);
    for (size_t tenth = 1; tenth < 10; ++tenth) {
      CAPTURE(format, tenth);
      const std::string found = found_in(text.substr(0, text.size() * tenth / 10));
      CHECK((found.starts_with("refused") || found.find("did not end") != std::string::npos ||
             found.find("; ! ") != std::string::npos));
    }
  }
}

TEST_CASE("import: fio documents one after the other, an error of a job that did nothing") {
  const std::string text = golden("fio");
  const auto two = import_output("fio-3.16\n" + text + "\nrand_read_write: (groupid=0): err= 0\n" + text);
  REQUIRE(two.ok());
  CHECK(two->values.size() == 2 * import_output(text)->values.size());
  const auto nothing = import_output(
      R"({"fio version": "fio-3.35", "jobs": [{"jobname": "w", "error": 28, "write": {"io_bytes": 0}}]})");
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().message.find("error 28") != std::string::npos);
  const auto zero = import_output(
      R"({"fio version": "fio-3.35", "jobs": [{"jobname": "w", "error": 0, "write": {"io_bytes": 4096,
          "iops": 1}, "trim": {"io_bytes": 4096}}, {"jobname": "idle"}]})");
  REQUIRE(zero.ok());
  CHECK(zero->values.size() == 1);
  REQUIRE(zero->left_out.size() == 3);
  CHECK(zero->left_out[0].what == "write_mbps (w)");
  CHECK(zero->left_out[1].what == "trim (w)");
  CHECK(zero->left_out[2].what == "job idle");
}

TEST_CASE("import: columns of nccl-tests by their names") {
  const std::string header =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n"
      "#  Rank  0 Group  0 Pid 1 on a device  0 [0000:18:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid 2 on a device  1 [0000:19:00] NVIDIA H100 80GB HBM3\n";
  const std::string end = "# Avg bus bandwidth : 1\n";
  const std::string cpu = found_in(header +
                                   "# size count type redop root cputime algbw busbw #wrong timestamp\n"
                                   "8388608 2097152 float sum -1 12.5 20 20 0 2025-01-01 10:00:00\n" +
                                   end);
  CHECK(cpu.find("latency 8 MiB") == std::string::npos);
  CHECK(cpu.find("- latency: the output has the time of the CPU") != std::string::npos);
  CHECK(cpu.find("busbw 8 MiB 20.0") != std::string::npos);
  const std::string one_side = found_in(header + "#size time algbw busbw\n8388608 12.5 20 20\n" + end);
  CHECK(one_side.find("latency 8 MiB 12.5") != std::string::npos);
  CHECK(one_side.find("in place") == std::string::npos);
  const std::string zero = found_in(header +
                                    "# size count type redop root time algbw busbw #wrong\n"
                                    "8388608 2097152 float sum -1 12.5 0.00 0.00 0\n" +
                                    end);
  CHECK(zero.find("- busbw (8 MiB): 0") != std::string::npos);
  CHECK(found_in(header + "8388608 2097152 float sum -1 12.5 20 20 0\n# algbw busbw\n" + end)
            .find("there is no header above this row") != std::string::npos);
}
