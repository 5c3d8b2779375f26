#include "agent/measuring/memory_programs.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/gzip.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// A kernel that refuses: vm.memfd_noexec=2.
struct RefusingPrograms : MemoryPrograms {
  using MemoryPrograms::MemoryPrograms;
  int make_memory_file() override {
    errno = EACCES;
    return -1;
  }
};

struct Bench {
  TempDir dir;
  std::unique_ptr<Process> process = make_process();
  std::string content = text_of_program("/bin/echo");
  int fetches = 0, folders = 0;
  std::string said;
  bool changed = false;

  static std::string text_of_program(const std::string& path) { return Files().read(path).value(); }
  CarriedProgram program() const {
    return {"echo", sha256(content).substr(7), static_cast<int64_t>(content.size())};
  }
  MemoryPrograms::Ports ports() {
    return {[this](const std::string& digest, const auto&) -> Result<PipeLink::Packed> {
              ++fetches;
              CHECK(digest == program().sha256);
              const std::string sent = changed ? content + " " : content;
              return PipeLink::Packed{gzip(sent).value(), sent.size()};
            },
            [this]() -> Result<std::string> {
              ++folders;
              return dir.path("");
            },
            [this](const std::string& text) { said = text; }};
  }
  // Run by a child of a child, as programs are that start themselves again.
  std::string output_of(const std::string& path) {
    return process->run({.argv = {"/bin/sh", "-c", "\"$1\" hello; :", "sh", path}})->out;
  }
};

}  // namespace

TEST_CASE("memory programs: executed by children and theirs, fetched once", "[agent][hosts]") {
  Bench bench;
  MemoryPrograms programs(*bench.process, bench.ports());
  const auto ready = programs.ready({bench.program()}, {});
  REQUIRE(ready.ok());
  CHECK(bench.output_of(ready->at("echo")) == "hello\n");
  CHECK(programs.ready({bench.program()}, {})->at("echo") == ready->at("echo"));
  CHECK(bench.fetches == 1);
  CHECK(bench.folders == 0);
  CHECK(bench.said.empty());
}

TEST_CASE("memory programs: where the kernel refuses, an unlinked file, and it is said", "[agent][hosts]") {
  Bench bench;
  RefusingPrograms programs(*bench.process, bench.ports());
  const auto ready = programs.ready({bench.program()}, {});
  REQUIRE(ready.ok());
  CHECK(bench.output_of(ready->at("echo")) == "hello\n");
  CHECK(bench.folders == 1);
  CHECK_FALSE(bench.said.empty());
  CHECK(Files().list(bench.dir.path("")).empty());
}

TEST_CASE("memory programs: what follows a program that ran may be a library", "[agent][hosts]") {
  Bench bench;
  const std::string program = bench.content;
  MemoryPrograms programs(*bench.process, bench.ports());
  REQUIRE(programs.ready({bench.program()}, {}).ok());
  bench.content = "no program";
  const auto library = programs.ready({bench.program()}, {});
  REQUIRE(library.ok());
  CHECK(Files().read(library->at("echo")).value_or("") == "no program");
  CHECK(bench.folders == 0);
}

TEST_CASE("memory programs: another digest is refused, and fetched again the next time", "[agent][hosts]") {
  Bench bench;
  MemoryPrograms programs(*bench.process, bench.ports());
  bench.changed = true;
  CHECK(programs.ready({bench.program()}, {}).error().code == Code::corrupt);
  bench.changed = false;
  CHECK(programs.ready({bench.program()}, {}).ok());
  CHECK(bench.fetches == 2);
}

TEST_CASE("carried programs: names, digests and sizes of an order", "[agent][hosts]") {
  const Json good = {{"name", "muster-accept"}, {"sha256", std::string(64, 'a')}, {"size", 10}};
  CHECK(carried_programs_of(Json::object())->empty());
  CHECK(carried_programs_of({{"programs", {good}}})->at(0).name == "muster-accept");
  CHECK(carried_programs_of({{"programs", 1}}).error().code == Code::invalid);
  for (const auto& [key, value] : std::map<std::string, Json>{
           {"name", "../x"}, {"sha256", "abc"}, {"sha256", "sha256:" + std::string(57, 'a')}, {"size", 0}}) {
    Json bad = good;
    bad[key] = value;
    CHECK(carried_programs_of({{"programs", {bad}}}).error().code == Code::invalid);
  }
}
