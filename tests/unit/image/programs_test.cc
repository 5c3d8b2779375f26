// The programs that every system carries, by digest.
#include "controller/image/programs.h"

#include <chrono>
#include <filesystem>

#include "base/digest.h"
#include "controller/options/options.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// A controller's own files, and what is made of them.
struct Bench {
  TempDir dir;
  DaemonOptions options = {};
  Programs programs{ProgramPaths{options.agent_binary, options.accept_binary}};

  Bench() {
    options.agent_binary = dir.path("muster-agent");
    options.accept_binary = dir.path("muster-accept");
    dir.write("muster-agent", "the agent");
    dir.write("muster-accept", "acceptance");
  }
  std::map<std::string, wire::SlotProgram> by_path() {
    std::map<std::string, wire::SlotProgram> out;
    const auto all = programs.list();
    REQUIRE(all.ok());
    for (const auto& one : *all) CHECK(out.emplace(one.path, one).second);
    return out;
  }
  std::string agent_digest() { return by_path().at("/usr/sbin/muster-agent").sha256; }
};

std::string hex_of(const std::string& digest) { return digest.substr(digest.find(':') + 1); }

}  // namespace

TEST_CASE("programs: without an agent nothing is given out", "[image][in-place]") {
  Bench b;
  SECTION("not there") { std::filesystem::remove(b.options.agent_binary); }
  SECTION("none is named") { b.options.agent_binary.clear(); }
  SECTION("a folder") {
    std::filesystem::remove(b.options.agent_binary);
    std::filesystem::create_directory(b.options.agent_binary);
  }
  const auto none = b.programs.list();
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == Code::not_found);
  CHECK(b.programs.path_of(sha256("the agent")).empty());
  CHECK(b.programs.path_of(sha256("acceptance")) == b.options.accept_binary);  // it is there all the same
}

TEST_CASE("programs: the list has what a node needs to check and to install each", "[image][in-place]") {
  Bench b;
  const auto all = b.by_path();
  REQUIRE(all.size() == 2);
  const auto& agent = all.at("/usr/sbin/muster-agent");
  CHECK(agent.sha256 == sha256("the agent"));
  CHECK(agent.size == 9);
  CHECK(agent.mode == 0755);
  const auto& accept = all.at("/usr/lib/muster/muster-accept");
  CHECK(accept.sha256 == sha256("acceptance"));
  CHECK(accept.size == 10);
  CHECK(accept.mode == 0755);
}

TEST_CASE("programs: the agent alone, where no acceptance programs are named", "[image][in-place]") {
  Bench b;
  b.options.accept_binary.clear();
  b.dir.write("muster-mpi-check", "mpi");
  CHECK(b.by_path().size() == 1);
  CHECK(b.programs.path_of(sha256("acceptance")).empty());
}

TEST_CASE("programs: a file is found by its digest and by the hex part of it, and by nothing else",
          "[image][in-place]") {
  Bench b;
  const std::string digest = b.agent_digest();
  CHECK(b.programs.path_of(digest) == b.options.agent_binary);
  CHECK(b.programs.path_of(hex_of(digest)) == b.options.agent_binary);
  CHECK(b.programs.path_of(hex_of(sha256("acceptance"))) == b.options.accept_binary);
  for (const std::string& other :
       {std::string(), std::string("sha256:"), std::string("../muster-agent"), b.options.agent_binary,
        sha256("another"), digest + "0", hex_of(digest).substr(1)}) {
    CAPTURE(other);
    CHECK(b.programs.path_of(other).empty());
  }
}

TEST_CASE("programs: one that was replaced has another digest, and the old one is served no more",
          "[image][in-place]") {
  Bench b;
  const std::string old = b.agent_digest();
  std::string content = "a newer agent";
  SECTION("of another size") { b.dir.write("muster-agent", content); }
  SECTION("of the same size, at another time") {
    content = "THE AGENT";
    const auto before = std::filesystem::last_write_time(b.options.agent_binary);
    b.dir.write("muster-agent", content);
    std::filesystem::last_write_time(b.options.agent_binary, before + std::chrono::seconds(2));
  }
  SECTION("by a file of an older date") {
    content = "THE AGENT";
    const auto before = std::filesystem::last_write_time(b.options.agent_binary);
    b.dir.write("muster-agent", content);
    std::filesystem::last_write_time(b.options.agent_binary, before - std::chrono::hours(24));
  }
  SECTION("without a request for the list") {
    b.dir.write("muster-agent", content);
    CHECK(b.programs.path_of(sha256(content)) == b.options.agent_binary);
  }
  CHECK(b.programs.path_of(old).empty());
  CHECK(b.programs.path_of(hex_of(old)).empty());
  CHECK(b.agent_digest() == sha256(content));
  CHECK(b.by_path().at("/usr/sbin/muster-agent").size == static_cast<int64_t>(content.size()));
  CHECK(b.programs.path_of(sha256(content)) == b.options.agent_binary);
  CHECK(b.programs.path_of(sha256("acceptance")) == b.options.accept_binary);  // the other is what it was
}

TEST_CASE("programs: of those beside the acceptance program the ones that are there are listed",
          "[image][in-place]") {
  Bench b;
  b.dir.write("muster-mpi-check", "mpi");
  b.dir.write("muster-something", "not a program of ours");
  auto all = b.by_path();
  CHECK(all.size() == 3);
  CHECK(all.at("/usr/lib/muster/muster-mpi-check").sha256 == sha256("mpi"));
  CHECK(b.programs.path_of(sha256("mpi")) == b.dir.path("muster-mpi-check"));
  CHECK(b.programs.path_of(sha256("not a program of ours")).empty());
  b.dir.write("muster-accept-gpu", "gpu");
  CHECK(b.by_path().count("/usr/lib/muster/muster-accept-gpu") == 1);
  std::filesystem::create_directory(b.dir.path("perftest"));
  b.dir.write("perftest/ib_write_bw", "bandwidth");
  CHECK(b.by_path().at("/usr/lib/muster/ib_write_bw").sha256 == sha256("bandwidth"));
  std::filesystem::remove_all(b.dir.path("perftest"));
  std::filesystem::remove(b.dir.path("muster-mpi-check"));
  all = b.by_path();
  CHECK(all.count("/usr/lib/muster/muster-mpi-check") == 0);
  CHECK(all.size() == 3);
  CHECK(b.programs.path_of(sha256("mpi")).empty());
}
