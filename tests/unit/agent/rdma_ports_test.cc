// rdma_ports over made-up /sys/class/infiniband trees: which ports are judged, and by what.
#include <functional>

#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

struct Fabric {
  tests::FakeMachine machine;
  StepContext context = machine.context();
  static std::string folder(const std::string& device, int port) {
    return "/sys/class/infiniband/" + device + "/ports/" + std::to_string(port);
  }
  void port(const std::string& device, const std::string& state, const std::string& physical,
            int number = 1) {
    machine.put(folder(device, number) + "/state", state + "\n");
    if (!physical.empty()) machine.put(folder(device, number) + "/phys_state", physical + "\n");
    count(device, "counters/symbol_error", 0, number);
    count(device, "counters/link_downed", 0, number);
  }
  void count(const std::string& device, const std::string& file, int value, int number = 1) {
    machine.put(folder(device, number) + "/" + file, std::to_string(value) + "\n");
  }
  CheckResult check(Json params) {
    params["deadline_seconds"] = 0;
    const StepModule* module = find_step_module("rdma_ports");
    REQUIRE(check_parameters(*module, params).ok());
    const auto result = module->check(context, params);
    REQUIRE(result.ok());
    return *result;
  }
  // What happens while the counters are watched.
  CheckResult watched(const std::function<void()>& meanwhile) {
    context.say = [&](const std::string&) { meanwhile(); };
    return check({{"watch_seconds", 0}});
  }
};

const char *kActive = "4: ACTIVE", *kInit = "2: INIT", *kDown = "1: DOWN", *kLink = "5: LinkUp",
           *kPolling = "2: Polling", *kDisabled = "3: Disabled";

}  // namespace

TEST_CASE("rdma_ports: a port without a cable stops no node; one with a link must be active", "[rdma]") {
  Fabric f;
  f.port("mlx5_0", kActive, kLink);
  f.port("mlx5_1", kDown, kPolling);   // storage's, not cabled
  f.port("mlx5_2", kDown, kDisabled);  // the management network's
  CHECK(f.check(Json::object()).holds == Holds::yes);
  f.port("mlx5_3", kInit, kLink);  // no subnet manager
  const CheckResult init = f.check(Json::object());
  CHECK(init.holds == Holds::no);
  CHECK(init.diff.find("mlx5_3") != std::string::npos);
  CHECK(init.diff.find("mlx5_1") == std::string::npos);
}

TEST_CASE("rdma_ports: no device, and no port with a link, are never a pass", "[rdma]") {
  Fabric f;
  CHECK(f.check(Json::object()).holds == Holds::no);
  CHECK(f.check({{"watch_seconds", 0}}).holds == Holds::no);
  f.port("mlx5_0", kDown, kPolling);
  CHECK(f.check(Json::object()).holds == Holds::no);
  CHECK(f.check({{"watch_seconds", 0}}).holds == Holds::no);
}

TEST_CASE("rdma_ports: declared ports must be there and active, and no other counts", "[rdma]") {
  Fabric f;
  f.port("mlx5_0", kActive, kLink);
  f.port("mlx5_1", kInit, kLink);
  f.port("mlx4_0", kActive, kLink, 1);
  f.port("mlx4_0", kDown, kPolling, 2);
  CHECK(f.check({{"ports", {"mlx5_0", "mlx4_0/1"}}}).holds == Holds::yes);
  CHECK(f.check({{"ports", {"mlx5_0/1"}}}).holds == Holds::yes);
  CHECK(f.check({{"ports", {"mlx5_0", "mlx5_1"}}}).holds == Holds::no);
  CHECK(f.check({{"ports", {"mlx4_0"}}}).holds == Holds::no);  // both of it
  CHECK(f.check({{"ports", {"mlx5_0", "mlx5_9"}}}).diff.find("mlx5_9") != std::string::npos);
}

TEST_CASE("rdma_ports: for a driver that does not report the cable the state counts", "[rdma]") {
  Fabric f;
  f.port("rxe0", kActive, "");
  CHECK(f.check(Json::object()).holds == Holds::yes);
  f.port("rxe0", "5: ACTIVE_DEFER", "");
  CHECK(f.check(Json::object()).holds == Holds::no);
}

TEST_CASE("rdma_ports: what was counted since the driver was loaded is no error; what comes now is",
          "[rdma]") {
  Fabric f;
  f.port("mlx5_0", kActive, kLink);
  f.port("mlx5_1", kDown, kPolling);
  f.count("mlx5_0", "counters/link_downed", 1);
  f.count("mlx5_0", "counters/symbol_error", 4711);
  CHECK(f.watched([] {}).holds == Holds::yes);
  CHECK(f.watched([&] { f.count("mlx5_0", "counters/symbol_error", 4712); }).holds == Holds::yes);
  CHECK(f.watched([&] { f.count("mlx5_0", "counters/symbol_error", 9000); }).holds == Holds::no);
  CHECK(f.watched([&] { f.count("mlx5_0", "counters/link_downed", 2); }).holds == Holds::no);
  CHECK(f.watched([&] { f.count("mlx5_1", "counters/symbol_error", 100); }).holds ==
        Holds::yes);  // not one that is judged
  CHECK(f.watched([&] { f.port("mlx5_0", kDown, kPolling); }).holds == Holds::no);
}

TEST_CASE("rdma_ports: of a counter that stands at its end nothing can be told", "[rdma]") {
  Fabric f;
  f.port("mlx5_0", kActive, kLink);
  f.port("mlx5_1", kActive, kLink);
  f.count("mlx5_1", "counters/symbol_error", 65535);
  const CheckResult ended = f.watched([] {});
  CHECK(ended.holds == Holds::not_applicable);
  CHECK(ended.diff.find("mlx5_1: symbol_error") != std::string::npos);
  CHECK(f.watched([&] { f.count("mlx5_0", "counters/link_downed", 1); }).holds == Holds::no);
  f.count("mlx5_1", "counters/symbol_error", 0);
  CHECK(f.watched([&] { f.count("mlx5_1", "counters/symbol_error", 65535); }).holds == Holds::no);
}

TEST_CASE("rdma_ports: ports that count nothing are said to, and are no pass", "[rdma]") {
  Fabric f;
  const std::string folder = Fabric::folder("irdma0", 1);
  f.machine.put(folder + "/state", "4: ACTIVE\n");
  CHECK(f.check({{"watch_seconds", 0}}).holds == Holds::not_applicable);
  f.machine.put(folder + "/hw_counters/link_downed", "0\n");  // as soft-RoCE has it
  CHECK(f.watched([&] { f.machine.put(folder + "/hw_counters/link_downed", "1\n"); }).holds == Holds::no);
}

}  // namespace muster
