// The command driver's own refusals, over a real program.
#include "controller/power/command_driver.h"

#include <unistd.h>

#include <filesystem>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/fakes/jump_waiter.h"
#include "tests/fakes/power_program.h"

using namespace muster;
namespace fs = std::filesystem;

namespace {

constexpr DurationMs kCall = kMinute;

struct Bench {
  testing::PowerProgram program;
  PowerTarget target;
  int refusals = 0;
  Bench() {
    target.node = "gpu01";
    target.address = "pdu1:7";
    target.user = "admin";
    target.password = "pdu-secret";
    target.program = "outlet";
    target.on_refused = [this] { ++refusals; };
  }
  std::unique_ptr<Power> power() const {
    return make_command_power(target, testing::jump_waiter(), program.folder(), make_process());
  }
  // What becomes of each call where the program's whole text is this.
  Code state_code(const std::string& text) {
    program.write("#!/bin/sh\n" + text);
    const auto state = power()->state(kCall);
    REQUIRE_FALSE(state.ok());
    return state.error().code;
  }
};

}  // namespace

TEST_CASE("a program gets one JSON object, nothing of our environment and no arguments", "[power][command]") {
  Bench bench;
  ::setenv("MUSTER_TEST_LEAK", "leaked", 1);
  bench.target.expected_uuid = "12345678-9abc-def0-1234-56789abcdef0";
  REQUIRE(bench.power()->state(kCall).ok());
  ::unsetenv("MUSTER_TEST_LEAK");
  const auto call = parse_json(bench.program.get("calls"));
  REQUIRE(call.ok());
  CHECK(call->at("contract") == 1);
  CHECK(call->at("verb") == "state");
  CHECK(call->at("node") == "gpu01");
  CHECK(call->at("address") == "pdu1:7");
  CHECK(call->at("password") == "pdu-secret");
  CHECK(call->at("uuid") == bench.target.expected_uuid);
  CHECK(bench.program.get("env").find("leaked") == std::string::npos);
  CHECK(bench.program.get("env").find("pdu-secret") == std::string::npos);
}

TEST_CASE("a program that others can change is not run", "[power][command]") {
  Bench bench;
  using fs::perms;
  const auto refused = [&](const std::string& path, perms mode) {
    fs::permissions(path, mode);
    const auto state = bench.power()->state(kCall);
    fs::permissions(path, perms(0755));
    return !state.ok() && state.error().code == Code::denied;
  };
  CHECK(refused(bench.program.path(), perms(0775)));
  CHECK(refused(bench.program.path(), perms(0757)));
  CHECK(refused(bench.program.folder(), perms(0777)));
  CHECK(bench.program.get("calls").empty());
  CHECK(bench.power()->state(kCall).ok());
  fs::rename(bench.program.path(), bench.program.folder() + "/behind");
  fs::create_symlink("behind", bench.program.path());
  CHECK(bench.power()->state(kCall).error().code == Code::invalid);
}

TEST_CASE("a program is named without a path", "[power][command]") {
  for (const std::string& name :
       {std::string("../../bin/sh"), std::string("/bin/sh"), std::string("a/b"), std::string(".."),
        std::string(""), std::string("-x"), std::string("a b")}) {
    Bench bench;
    bench.target.program = name;
    INFO(name);
    CHECK_FALSE(command_driver().make(bench.target).ok());
  }
  Bench bench;
  ::setenv("MUSTER_POWER_PROGRAMS", bench.program.folder().c_str(), 1);
  const auto power = command_driver().make(bench.target);
  ::unsetenv("MUSTER_POWER_PROGRAMS");
  REQUIRE(power.ok());
  CHECK((*power)->state(kCall).ok());
}

TEST_CASE("a program's errors keep their meaning; what is no answer is none", "[power][command]") {
  Bench bench;
  const auto error = [](const std::string& code) {
    return "echo '{\"error\":{\"code\":\"" + code + "\",\"message\":\"so\"}}'\nexit 1\n";
  };
  CHECK(bench.state_code(error("unavailable")) == Code::unavailable);
  CHECK(bench.state_code(error("invalid")) == Code::invalid);
  CHECK(bench.state_code(error("wrong-machine")) == Code::denied);
  CHECK(bench.refusals == 0);
  CHECK(bench.state_code(error("denied")) == Code::denied);
  CHECK(bench.refusals == 1);
  CHECK(bench.state_code(error("whatever")) == Code::failed);
  CHECK(bench.state_code("exit 0\n") == Code::failed);
  CHECK(bench.state_code("echo '{\"power\":\"on\"}'; exit 3\n") == Code::failed);
  CHECK(bench.state_code("echo '{\"power\":\"maybe\"}'\n") == Code::failed);
  CHECK(bench.state_code("echo '[1]'\n") == Code::failed);
  CHECK(bench.state_code("exec yes '{\"power\":\"on\"}'\n") == Code::unavailable);  // ended at its 256 kB
}

TEST_CASE("an order without a word of what became of it is a timeout, never failed", "[power][command]") {
  Bench bench;
  bench.program.write(
      "#!/bin/sh\nread -r call\ncase $call in *verb*state*) echo '{\"power\":\"off\"}';; *) exit 1;; esac\n");
  const Status on = bench.power()->on(kCall);
  REQUIRE_FALSE(on.ok());
  CHECK(on.error().code == Code::timeout);
}

TEST_CASE("a program that hangs is killed at its deadline with what it started", "[power][command]") {
  Bench bench;
  bench.program.write("#!/bin/sh\nsleep 1000 & echo $! >${0%/*/*}/child\nwait\n");
  const auto state = bench.power()->state(300);
  REQUIRE_FALSE(state.ok());
  CHECK(state.error().code == Code::unavailable);
  const std::string child = bench.program.get("child");
  REQUIRE_FALSE(child.empty());
  // Gone, or a zombie that is not reaped here, as soon as the kernel has come round to it.
  const auto over = [&] {
    const std::string stat =
        Files("/").read("/proc/" + child.substr(0, child.size() - 1) + "/stat").value_or(") Z");
    return stat.substr(stat.rfind(')') + 2, 1) == "Z";
  };
  for (int i = 0; i < 500 && !over(); ++i) ::usleep(10'000);
  CHECK(over());
}

TEST_CASE("an order is not begun where it could be killed in between", "[power][command]") {
  Bench bench;
  CHECK(bench.power()->on(4 * kSecond).error().code == Code::unavailable);
  CHECK_FALSE(bench.program.runs());
  CHECK(bench.program.get("calls").find("\"on\"") == std::string::npos);
}

TEST_CASE("a machine that is not the node's is not switched", "[power][command]") {
  Bench bench;
  bench.program.set("more", ",\"uuid\":\"12345678-9abc-def0-1234-56789abcdef0\"");
  bench.target.expected_uuid = "12345678-9abc-def0-1234-56789abcdef1";
  CHECK(bench.power()->on(kCall).error().code == Code::denied);
  bench.target.expected_uuid.clear();
  Machines machines;
  machines.bind("12345678-9abc-def0-1234-56789abcdef0", "gpu07");
  bench.target.machines = std::make_shared<const Machines>(machines);
  CHECK(bench.power()->on(kCall).error().code == Code::denied);
  CHECK_FALSE(bench.program.runs());
  bench.target.expected_uuid = "12345678-9ABC-DEF0-1234-56789abcdef0";
  CHECK(bench.power()->on(kCall).ok());
}

TEST_CASE("a machine that always boots from the network first needs no order", "[power][command]") {
  Bench bench;
  bench.program.set("network", "always");
  REQUIRE(bench.power()->boot_once_network(kCall).ok());
  CHECK(bench.program.get("calls").find("network-once") == std::string::npos);
  bench.program.set("network", "never");
  CHECK(bench.power()->boot_once_network(kCall).error().code == Code::invalid);
}

TEST_CASE("describe says whether a machine can be booted from the network, and what it boots next",
          "[power][command]") {
  Bench bench;
  const auto seen = [&] { return bench.power()->describe(kCall).value(); };
  CHECK(seen()["network_boot"] == true);
  CHECK(seen()["boots_network_next"] == false);
  REQUIRE(bench.power()->boot_once_network(kCall).ok());
  CHECK(seen()["boots_network_next"] == true);
  bench.program.set("dumb", "");
  CHECK_FALSE(seen().contains("boots_network_next"));
  bench.program.set("network", "never");
  CHECK(seen()["network_boot"] == false);
}

TEST_CASE("a program that is busy is called again, and is not failed", "[power][command]") {
  Bench bench;
  for (const char* verb : {"state", "capabilities", "network-once"}) {
    INFO(verb);
    bench.program.fails(verb, 1, "conflict");
    CHECK(bench.power()->boot_once_network(kCall).error().code == Code::unavailable);
    CHECK(bench.power()->boot_once_network(kCall).ok());
  }
  CHECK_FALSE(bench.program.runs());
}

TEST_CASE("a machine that cannot be booted from the network is not switched off for it", "[power][command]") {
  Bench bench;
  bench.program.set("network", "never");
  REQUIRE(bench.power()->on(kCall).ok());
  const auto power = bench.power();
  CHECK(boot_from_network(*power, kCall).error().code == Code::invalid);
  CHECK(bench.program.runs());
}

TEST_CASE("a password that a program repeats goes no further", "[power][command]") {
  Bench bench;
  bench.target.user = "root";
  bench.target.password = "hunter2";
  SECTION("in its trace") { bench.program.write("#!/bin/sh\ncat >&2\nexit 1\n"); }
  SECTION("in its answer") {
    bench.program.write(
        "#!/bin/sh\necho '{\"error\": {\"code\": \"denied\", \"message\": \"root:hunter2 refused, "
        "hunter2\"}}'\n");
  }
  const auto state = bench.power()->state(kCall);
  REQUIRE_FALSE(state.ok());
  CHECK(state.error().message.find("***") != std::string::npos);
  CHECK(state.error().message.find("hunter2") == std::string::npos);
}
