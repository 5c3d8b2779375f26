#include "agent/joining/adopting.h"

#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using muster::tests::FakeMachine;

namespace {

struct Requested {
  std::vector<BootParameters> joins = {};
  Result<std::string> outcome = std::string("login01");
};

// One answer per line, after the one that says it is ready.
std::vector<Json> answers(FakeMachine& machine, const std::string& lines, Requested& requested) {
  Files files = machine.files();
  const auto join = [&requested](const BootParameters& boot) {
    requested.joins.push_back(boot);
    return requested.outcome;
  };
  std::istringstream in(lines);
  std::ostringstream out;
  answer_adopter({files, machine, join}, in, out);
  std::vector<Json> said;
  std::istringstream received(out.str());
  for (std::string line; std::getline(received, line);) said.push_back(Json::parse(line));
  REQUIRE_FALSE(said.empty());
  CHECK(said.front() == Json{{"ready", true}});
  said.erase(said.begin());
  return said;
}

const std::string kJoin =
    R"({"ask":"join","url":"https://10.20.0.1:7443","pin":"sha256:aa","token":"t","node":"login01"})";

}  // namespace

TEST_CASE("an adopter is answered line by line, and a bad line is not the end", "[adopt]") {
  FakeMachine machine;
  Requested requested;
  const auto said =
      answers(machine, "no json\n[]\n{\"ask\":\"reboot\"}\n{\"ask\":\"join\",\"url\":\"u\"}\n" + kJoin + "\n",
              requested);
  REQUIRE(said.size() == 5);
  for (size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(said[i]["error"]["code"] == "invalid");
  }
  CHECK(said[4] == Json{{"node", "login01"}});
  REQUIRE(requested.joins.size() == 1);
  CHECK(requested.joins[0].token == "t");
  CHECK(requested.joins[0].pin == "sha256:aa");
}

TEST_CASE("an adopter hears why joining was refused, and may ask again", "[adopt]") {
  FakeMachine machine;
  Requested requested;
  requested.outcome = fail(Code::conflict, "this host belongs to a different controller");
  const auto said = answers(machine, kJoin + "\n" + kJoin + "\n", requested);
  REQUIRE(said.size() == 2);
  for (const auto& one : said) {
    CHECK(one["error"]["code"] == "conflict");
    CHECK(one["error"]["message"] == "this host belongs to a different controller");
  }
}

TEST_CASE("an adopter that looks gets what is there, and nothing is written or joined", "[adopt]") {
  FakeMachine machine;
  REQUIRE(machine.files().make_directories("/run/systemd/system").ok());
  Requested requested;
  const std::string look = R"({"ask":"look","node":"login01","pin":"sha256:aa","steps":)";
  const auto said = answers(
      machine,
      look + "[]}\n" + look +
          R"([{"id":"base/motd","module":"file","params":{"path":"/etc/motd","content":"hello\n"}}]})" + "\n",
      requested);
  REQUIRE(said.size() == 2);
  CHECK(said[0]["refusal"] == "");
  CHECK(said[0]["steps"].empty());
  REQUIRE(said[1]["steps"].size() == 1);
  CHECK(said[1]["steps"][0]["outcome"] == "would_change");
  CHECK_FALSE(machine.files().exists("/etc/motd"));
  CHECK_FALSE(machine.files().exists(kAgentProgram));
  CHECK(requested.joins.empty());
}

TEST_CASE("the program that settles is the one that runs, written once", "[adopt]") {
  FakeMachine machine;
  const Files files = machine.files();
  REQUIRE(files.write("/proc/self/exe", "the agent").ok());
  REQUIRE(settle_program(files).ok());
  CHECK(files.read(kAgentProgram).value() == "the agent");
  // Left alone where it is right already: a program that runs is not replaced by itself.
  const std::string real = files.real(kAgentProgram);
  const auto before = std::filesystem::last_write_time(real);
  const auto inode = [&] {
    struct stat st = {};
    REQUIRE(stat(real.c_str(), &st) == 0);
    return st.st_ino;
  };
  const auto first = inode();
  REQUIRE(settle_program(files).ok());
  CHECK(inode() == first);
  CHECK(std::filesystem::last_write_time(real) == before);
  REQUIRE(files.write("/proc/self/exe", "a newer agent").ok());
  REQUIRE(settle_program(files).ok());
  CHECK(files.read(kAgentProgram).value() == "a newer agent");
}
