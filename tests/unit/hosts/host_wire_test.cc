// The wire with the agent of this build at its other end, in shells of this machine.
#include "controller/hosts/host_wire.h"

#include "tests/unit/hosts/wire_bench.h"

using namespace muster;

namespace {

wire::WorkOrder order_of(const std::string& id, wire::OrderKind kind, Json params = Json::object()) {
  return {OrderId(id), kind, std::move(params), kMinute};
}
Json check_params() {
  return {{"mode", "check"},
          {"stop_on_failure", false},
          {"steps", {{{"id", "a/pcie"}, {"module", "accept"}, {"params", {{"kernel", "pcie"}}}}}}};
}

}  // namespace

TEST_CASE("host wire: looked at, an inventory, and nothing is left", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  bench.open();
  bench.until([&] { return bench.looked.has_value() || bench.lost; });
  REQUIRE(bench.looked);
  REQUIRE(bench.hello);
  CHECK(bench.hello->how == "user");
  CHECK(bench.hello->why_user == "sudo: a password is required");
  CHECK(bench.hello->folder == bench.dir.path("run"));
  CHECK(bench.hello->boot_id == Files().read_line("/proc/sys/kernel/random/boot_id"));
  CHECK(bench.looked->facts.contains("disks"));
  CHECK(bench.looked->look.contains("busy"));
  CHECK(bench.files_left() == std::vector<std::string>{});  // already now
  bench.offer(order_of("1-a/inventory#1", wire::OrderKind::inventory));
  bench.until([&] { return bench.finished("1-a/inventory#1") != nullptr; });
  CHECK(bench.finished("1-a/inventory#1")->data["ok"] == true);
  CHECK(bench.events_taken.front().kind == "hello");
  CHECK(bench.events_taken.front().data["mode"] == "adopted");
  CHECK(bench.processes().size() == 2);  // the agent and its guard
  bench.leave();
  CHECK_FALSE(bench.lost);
  bench.nothing_left();
}

TEST_CASE("host wire: orders that change something are refused by the agent", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  bench.open();
  Json apply = check_params();
  apply["mode"] = "apply";
  bench.offered = {order_of("1", wire::OrderKind::reboot)};
  bench.until([&] { return bench.finished("1") || bench.lost; });
  bench.offer(order_of("2", wire::OrderKind::steps, apply));
  bench.until([&] { return bench.finished("2") || bench.lost; });
  bench.offer(order_of("3", wire::OrderKind::check, apply));
  bench.until([&] { return bench.finished("3") || bench.lost; });
  REQUIRE_FALSE(bench.lost);
  for (const char* id : {"1", "2", "3"}) {
    CHECK(bench.finished(id)->data["ok"] == false);
    CHECK(bench.finished(id)->data["code"] == "invalid");
  }
  bench.leave();
  bench.nothing_left();
}

TEST_CASE("host wire: a check gets the programs that its order names, once", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  const std::string program =
      "#!/bin/sh\necho '{\"check\":\"pcie\",\"version\":1,\"outcome\":\"measured\",\"blame\":[],"
      "\"metrics\":{},\"detail\":{}}'\n";
  const std::string digest = sha256(program).substr(7);
  bench.programs[digest] = program;
  Json params = check_params();
  params["programs"] = {{{"name", "muster-accept"}, {"sha256", digest}, {"size", program.size()}}};
  bench.open();
  bench.offered = {order_of("1", wire::OrderKind::check, params)};
  bench.until([&] { return bench.finished("1") || bench.lost; });
  bench.offer(order_of("2", wire::OrderKind::check, params));
  bench.until([&] { return bench.finished("2") || bench.lost; });
  REQUIRE_FALSE(bench.lost);
  CHECK(bench.programs_read == 1);
  params["programs"][0]["sha256"] = std::string(64, '0');
  bench.offer(order_of("3", wire::OrderKind::check, params));
  bench.until([&] { return bench.finished("3") || bench.lost; });
  CHECK(bench.finished("3")->data["code"] == "not_found");
  bench.leave();
  bench.nothing_left();
}

TEST_CASE("host wire: as root it lies in a file system of its own", "[hosts]") {
  WireBench bench;
  if (::geteuid() != 0) return;
  const auto before = Files().list("/dev/shm");
  bench.open();
  bench.until([&] { return bench.looked.has_value() || bench.lost; });
  REQUIRE(bench.hello);
  CHECK(bench.hello->root);
  CHECK(bench.hello->how == "root");
  if (bench.hello->folder == "private tmpfs") {
    // Hidden from all others, and no longer in the way of what the host itself has there.
    for (const pid_t pid : bench.processes()) {
      const std::string process = "/proc/" + std::to_string(pid);
      CHECK(Files().read(process + "/mounts").value().find("muster /dev/shm") == std::string::npos);
      CHECK(Files().read_link(process + "/ns/mnt").value() != Files().read_link("/proc/self/ns/mnt").value());
    }
  }
  bench.leave();
  bench.nothing_left();
}

TEST_CASE("host wire: root by sudo where it needs no password, and not where that is not wanted", "[hosts]") {
  WireBench bench;
  if (::geteuid() != 0) return;
  bench.stub("id", "echo 1000");
  bench.stub("sudo", "touch " + bench.dir.path("used") + "; [ \"$1\" = -n ] && shift 3; exec \"$@\"");
  bench.options.as_user = GENERATE(true, false);
  if (GENERATE(true, false)) bench.stub("unshare", "echo 'not permitted' >&2; exit 1");
  bench.open();
  bench.until([&] { return bench.looked.has_value() || bench.lost; });
  REQUIRE(bench.hello);
  CHECK(bench.hello->how == (bench.options.as_user ? "user" : "sudo"));
  CHECK(bench.hello->why_user.empty());
  CHECK(Files().exists(bench.dir.path("used")) == !bench.options.as_user);
  bench.leave();
  bench.nothing_left();
}

TEST_CASE("host wire: a killed agent, guard or shell is a lost connection, and leaves nothing", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  bench.open();
  bench.until([&] { return bench.looked.has_value() || bench.lost; });
  REQUIRE(bench.looked);
  const auto pids = bench.processes();
  REQUIRE(pids.size() == 2);
  REQUIRE(::kill(pids[GENERATE(0, 1)], GENERATE(SIGKILL, SIGTERM, SIGHUP)) == 0);
  bench.until([&] { return bench.lost.has_value(); });
  CHECK(bench.lost->code == Code::unavailable);
  bench.nothing_left();
}

TEST_CASE("host wire: destroyed in the middle, nothing is left", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  bench.open();
  if (GENERATE(true, false)) {
    bench.until([&] { return bench.looked.has_value() || bench.lost; });
    REQUIRE(bench.looked);
  }
  bench.wire.reset();
  bench.nothing_left();
  CHECK_FALSE(bench.lost);
}

TEST_CASE("host wire: words of start-up files are no messages", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  bench.options.argv = bench.shell("/bin/sh");
  bench.options.argv.insert(
      bench.options.argv.end(),
      {"-c", "echo Welcome; echo '{\"poll\":1}'; printf 'no end of line'; exec /bin/sh"});
  bench.open();
  bench.until([&] { return bench.looked.has_value() || bench.lost; });
  CHECK(bench.looked);
  bench.leave();
  bench.nothing_left();
}

TEST_CASE("host wire: every shell there is reads the script", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  const std::string shell = GENERATE("dash", "bash", "busybox");
  if (!Files().exists("/usr/bin/" + shell)) return;
  bench.options.argv = bench.shell(shell);
  if (shell == "busybox") bench.options.argv.push_back("sh");
  bench.open();
  bench.until([&] { return bench.looked.has_value() || bench.lost; });
  CHECK(bench.looked);
  bench.leave();
  bench.nothing_left();
}
