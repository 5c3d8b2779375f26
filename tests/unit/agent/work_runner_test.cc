#include "agent/work/work_runner.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using wire::OrderKind;

namespace {

// A runner with every function there is, and what was called.
struct Bench {
  tests::FakeMachine machine;
  Files files = machine.files();
  WorkFunctions functions;
  std::vector<std::string> called;

  Bench() {
    functions.image = [this](const wire::WorkOrder&, const WorkRunner::Emit&, const CancelCheck&) {
      return noted("image");
    };
    functions.kexec = [this](const wire::WorkOrder&, const CancelCheck&) { return noted("kexec"); };
    functions.leave_ready = [this] { return done("leave_ready"); };
    functions.drop_ready = [this] { return done("drop_ready"); };
    functions.write_slot = [this](const wire::WorkOrder&, const WorkRunner::Emit&, const CancelCheck&) {
      return noted("write_slot");
    };
    functions.boot_slot = [this](const Json&) { return noted("boot_slot"); };
    functions.leave_slot = [this](const CancelCheck&, const CancelCheck&) { return done("leave_slot"); };
    functions.drop_slot = [this] { return done("drop_slot"); };
    functions.boot_disk = [this](const Json&, const CancelCheck&) { return done("boot_disk"); };
    functions.reboot = [this](const Json&, const CancelCheck&) { return done("reboot"); };
    functions.power_off = [this](const Json&, const CancelCheck&) { return done("power_off"); };
  }
  Result<Json> noted(const std::string& name) {
    called.push_back(name);
    return Json{{"by", name}};
  }
  Status done(const std::string& name) {
    called.push_back(name);
    return Ok{};
  }
  // Its worker has ended when this returns.
  WorkOutcome run(const wire::WorkOrder& order, OrderPart part = OrderPart::work) {
    WorkOutcome out;
    const auto reactor = make_reactor(1);  // one that was stopped does not run again
    const auto runner = make_work_runner(*reactor, files, machine, "node01", functions);
    runner->run(
        order, part, [](const std::string&, Json) {},
        [&](WorkOutcome outcome) {
          out = std::move(outcome);
          reactor->stop();
        });
    reactor->run();
    return out;
  }
};

wire::WorkOrder order_of(OrderKind kind) {
  wire::WorkOrder order;
  order.id = "1-0/n#1";
  order.kind = kind;
  return order;
}

void check_refused(Bench& b, const WorkOutcome& outcome) {
  CHECK(b.called.empty());
  REQUIRE_FALSE(outcome.status.ok());
  CHECK(outcome.status.error().code == Code::invalid);
}

}  // namespace

TEST_CASE("an order is carried out by the function of its kind", "[agent]") {
  struct Row {
    OrderKind kind;
    const char* function;
  };
  for (const Row row : {Row{OrderKind::image, "image"}, Row{OrderKind::kexec, "kexec"},
                        Row{OrderKind::write_slot, "write_slot"}, Row{OrderKind::boot_slot, "boot_slot"},
                        Row{OrderKind::boot_disk, "boot_disk"}, Row{OrderKind::reboot, "reboot"},
                        Row{OrderKind::power_off, "power_off"}}) {
    Bench b;
    INFO(row.function);
    CHECK(b.run(order_of(row.kind)).status.ok());
    CHECK(b.called == std::vector<std::string>{row.function});
  }
}

TEST_CASE("an order whose function this system does not have is refused", "[agent]") {
  for (const OrderKind kind :
       {OrderKind::image, OrderKind::kexec, OrderKind::write_slot, OrderKind::boot_slot, OrderKind::boot_disk,
        OrderKind::reboot, OrderKind::power_off}) {
    Bench b;
    b.functions = {};
    check_refused(b, b.run(order_of(kind)));
  }
}

TEST_CASE("an order's programs are ready before its steps, which run them", "[agent][carried]") {
  wire::WorkOrder order = order_of(OrderKind::check);
  const Json program = {{"name", "muster-accept"}, {"sha256", std::string(64, 'a')}, {"size", 7}};
  order.params = {{"mode", "check"},
                  {"steps",
                   {{{"id", "counters"},
                     {"module", "accept"},
                     {"params", {{"kernel", "counters"}, {"options", {{"save", "{folder}/c.json"}}}}}}}},
                  {"base_url", "http://10.20.0.1:7480"},
                  {"programs", {program}}};
  Bench b;
  b.functions.folder = "/dev/shm/x";
  Json requested;
  b.functions.programs = [&](const Json& params, const std::vector<CarriedProgram>& programs,
                             const CancelCheck&) -> Result<std::map<std::string, std::string>> {
    CHECK(b.machine.calls.empty());
    requested = params["base_url"];
    REQUIRE(programs.size() == 1);
    return std::map<std::string, std::string>{{programs[0].name, "/memory/accept"}};
  };
  SECTION("and steps get them, and where to leave files") {
    b.run(order);
    CHECK(requested == "http://10.20.0.1:7480");
    CHECK(b.machine.called("/memory/accept counters --save /dev/shm/x/c.json"));
  }
  SECTION("they cannot be had") {
    b.functions.programs = [](const Json&, const auto&, const CancelCheck&) {
      return Result<std::map<std::string, std::string>>(fail(Code::not_found, "muster-accept: not served"));
    };
    const WorkOutcome outcome = b.run(order);
    REQUIRE_FALSE(outcome.status.ok());
    CHECK(outcome.status.error().code == Code::not_found);
    CHECK(outcome.status.error().message.find("muster-accept") != std::string::npos);
    CHECK(b.machine.calls.empty());
  }
  SECTION("a system that takes none refuses") {
    b.functions.programs = {};
    check_refused(b, b.run(order));
    CHECK(b.machine.calls.empty());
  }
  SECTION("what it names is wrong") {
    order.params["programs"][0]["name"] = "../sh";
    check_refused(b, b.run(order));
    CHECK(b.machine.calls.empty());
  }
  SECTION("without any, nothing is made ready") {
    order.params.erase("programs");
    b.functions.programs = {};
    b.run(order);
    CHECK(b.machine.called("/usr/sbin/muster-accept counters"));
  }
}

TEST_CASE("a look at the steps of a node at work starts no test of them; an acceptance does",
          "[agent][preview]") {
  Bench b;
  b.machine.put("/etc/motd", "x\n");
  const Json verify = {{"module", "wait_for"},
                       {"params", {{"command", {"docker", "run"}}, {"deadline_seconds", 0}}}};
  wire::WorkOrder order = order_of(GENERATE(OrderKind::steps, OrderKind::check));
  order.params = {{"mode", "check"},
                  {"steps",
                   {{{"id", "motd"},
                     {"module", "file"},
                     {"params", {{"path", "/etc/motd"}, {"content", "x\n"}}},
                     {"verify", verify}}}}};
  b.run(order);
  CHECK(b.machine.called("docker run") == (order.kind == OrderKind::check));
}

TEST_CASE("what got ready goes or is undone, and nothing else is", "[agent][kexec]") {
  Bench b;
  CHECK(b.run(order_of(OrderKind::kexec), OrderPart::leave).status.ok());
  CHECK(b.run(order_of(OrderKind::kexec), OrderPart::drop).status.ok());
  CHECK(b.called == std::vector<std::string>{"leave_ready", "drop_ready"});
  b.called.clear();
  CHECK(b.run(order_of(OrderKind::boot_slot), OrderPart::leave).status.ok());
  CHECK(b.run(order_of(OrderKind::boot_slot), OrderPart::drop).status.ok());
  CHECK(b.called == std::vector<std::string>{"leave_slot", "drop_slot"});
  Bench other;
  check_refused(other, other.run(order_of(OrderKind::steps), OrderPart::leave));
}

TEST_CASE("a departure does not hold up the end of this process", "[agent]") {
  Bench b;
  std::atomic<bool> under_way = false;
  const auto wait = [&under_way](const CancelCheck& ended) -> Status {
    under_way = true;
    while (!ended()) std::this_thread::yield();
    return Ok{};
  };
  b.functions.leave_slot = [wait](const CancelCheck& ended, const CancelCheck&) { return wait(ended); };
  for (auto* leave : {&b.functions.boot_disk, &b.functions.reboot, &b.functions.power_off})
    *leave = [wait](const Json&, const CancelCheck& ended) { return wait(ended); };
  for (const OrderKind kind :
       {OrderKind::boot_slot, OrderKind::boot_disk, OrderKind::reboot, OrderKind::power_off}) {
    under_way = false;
    const auto reactor = make_reactor(1);
    const auto runner = make_work_runner(*reactor, b.files, b.machine, "node01", b.functions);
    runner->run(
        order_of(kind), kind == OrderKind::boot_slot ? OrderPart::leave : OrderPart::work,
        [](const std::string&, Json) {}, [](WorkOutcome) {});
    while (!under_way) std::this_thread::yield();
  }  // which waits for its worker
  CHECK(under_way);
}

TEST_CASE("a boot of the other slot can tell a withdrawal from the end of its process", "[agent]") {
  Bench b;
  std::atomic<bool> under_way = false, ended = false, withdrawn = false;
  b.functions.leave_slot = [&](const CancelCheck& is_ended, const CancelCheck& is_withdrawn) -> Status {
    under_way = true;
    while (!is_ended() && !is_withdrawn()) std::this_thread::yield();
    withdrawn = is_withdrawn();
    ended = is_ended();
    return fail(Code::cancelled, "not any more");
  };
  const bool by_order = GENERATE(true, false);
  {
    const auto reactor = make_reactor(1);
    const auto runner = make_work_runner(*reactor, b.files, b.machine, "node01", b.functions);
    bool over = false;
    runner->run(
        order_of(OrderKind::boot_slot), OrderPart::leave, [](const std::string&, Json) {},
        [&](const WorkOutcome& outcome) {
          over = !outcome.status.ok();
          reactor->stop();
        });
    while (!under_way) std::this_thread::yield();
    if (by_order) {
      runner->cancel();
      reactor->run();
      CHECK(over);
    }
  }  // which ends the runner
  CHECK(withdrawn == by_order);
  CHECK(ended == !by_order);
}

TEST_CASE("a restart that the system refuses is no failure of the other slot", "[agent]") {
  const bool refused = GENERATE(true, false);
  Bench b;
  b.functions.leave_slot = [refused](const CancelCheck&, const CancelCheck&) -> Status {
    return fail(refused ? Code::unavailable : Code::failed, "a lock is held");
  };
  const WorkOutcome end = b.run(order_of(OrderKind::boot_slot), OrderPart::leave);
  REQUIRE_FALSE(end.status.ok());
  CHECK(end.status.error().code == (refused ? Code::conflict : Code::failed));
  CHECK(end.result.contains("precondition") == refused);
}

TEST_CASE("an order of an unknown kind is refused under its word", "[agent]") {
  Bench b;
  // The word in which agents once told themselves to go.
  for (const char* word : {"", "format", "kexec-now"}) {
    wire::WorkOrder order = order_of(OrderKind::unknown);
    order.unknown_kind = word;
    const WorkOutcome outcome = b.run(order);
    check_refused(b, outcome);
    CHECK(outcome.status.error().message.find("'" + std::string(word) + "'") != std::string::npos);
  }
}

namespace {

// With a clock of the test's.
struct Preconditions : Bench {
  int seconds = 0;
  int64_t clock = 0;

  Preconditions() {
    functions.a_second = [this] { ++seconds, clock += kSecond; };
    functions.now = [this] { return clock; };
  }
  wire::WorkOrder order(OrderKind kind, const std::string& path) const {
    wire::WorkOrder out = order_of(kind);
    out.preconditions = Json::array(
        {{{"id", "a/drained"}, {"module", "command"}, {"params", {{"argv", {"drain"}}, {"creates", path}}}}});
    return out;
  }
};

}  // namespace

TEST_CASE("an order is not prepared while a precondition does not hold, and nothing is applied", "[agent]") {
  const OrderKind kind =
      GENERATE(OrderKind::boot_slot, OrderKind::kexec, OrderKind::power_off, OrderKind::reboot);
  Preconditions b;
  SECTION("for a minute") {
    const WorkOutcome end = b.run(b.order(kind, "/drained"));
    CHECK(end.status.error().code == Code::conflict);
    CHECK(end.result["precondition"] == "a/drained");
    CHECK(b.seconds == 60);
    CHECK(b.called.empty());
  }
  SECTION("not at once") {
    b.functions.a_second = [&b] {
      if (++b.seconds == 20) b.machine.put("/drained", "");
    };
    CHECK(b.run(b.order(kind, "/drained")).status.ok());
    CHECK(b.seconds == 20);
    // What prepares nothing else waits for its part.
    CHECK(b.called.empty() == (kind == OrderKind::power_off || kind == OrderKind::reboot));
  }
  SECTION("a step that this agent does not know") {
    wire::WorkOrder order = b.order(kind, "/drained");
    order.preconditions[0]["module"] = "of_a_later_version";
    CHECK(b.run(order).status.error().code == Code::invalid);
    CHECK(b.called.empty());
  }
  CHECK(b.machine.calls.empty());
}

TEST_CASE("a precondition about which others have decided is named as denied", "[agent]") {
  Preconditions b;
  wire::WorkOrder order = order_of(OrderKind::boot_slot);
  order.preconditions = Json::array({{{"id", "a/drained"},
                                      {"module", "slurm_node"},
                                      {"params",
                                       {{"node", "node01"},
                                        {"state", "drain"},
                                        {"reason", "muster reimage"},
                                        {"only_reason", "muster reimage"}}}}});
  const bool person = GENERATE(true, false);
  b.machine.put("/slurm/node01", person ? "drained|bad fan" : "idle|none");
  const WorkOutcome end = b.run(order);
  CHECK(end.status.error().code == Code::conflict);
  CHECK(end.result["precondition"] == "a/drained");
  CHECK(end.result.value("denied", "") == (person ? "a/drained" : ""));
  CHECK(b.called.empty());
}

TEST_CASE("a node leaves at once, or looks once more where the report took long", "[agent]") {
  struct Row {
    OrderKind kind;
    const char *leaves, *drops;
  };
  const Row row = GENERATE(Row{OrderKind::boot_slot, "leave_slot", "drop_slot"},
                           Row{OrderKind::kexec, "leave_ready", "drop_ready"},
                           Row{OrderKind::power_off, "power_off", ""}, Row{OrderKind::reboot, "reboot", ""});
  CAPTURE(row.leaves);
  Preconditions b;
  b.machine.put("/drained", "");
  const wire::WorkOrder order = b.order(row.kind, "/drained");
  const auto reactor = make_reactor(1);
  const auto runner = make_work_runner(*reactor, b.files, b.machine, "node01", b.functions);
  WorkOutcome out;
  std::function<void()> between = [] {};
  const auto leave = [&](WorkOutcome) {
    between();
    b.called.clear();
    runner->run(
        order, OrderPart::leave, [](const std::string&, Json) {},
        [&](WorkOutcome outcome) {
          out = std::move(outcome);
          reactor->stop();
        });
  };
  const bool late = GENERATE(false, true), resumed = GENERATE(false, true);
  CAPTURE(late, resumed);
  between = [&] {
    if (late) b.clock += 31 * kSecond;
    if (resumed) REQUIRE(b.files.remove("/drained").ok());
  };
  runner->run(
      order, OrderPart::work, [](const std::string&, Json) {}, leave);
  reactor->run();
  if (late && resumed) {
    CHECK(out.status.error().code == Code::conflict);
    CHECK(out.result["precondition"] == "a/drained");
    CHECK(b.called == (row.drops[0] ? std::vector<std::string>{row.drops} : std::vector<std::string>{}));
  } else {
    CHECK(out.status.ok());
    CHECK(b.called == std::vector<std::string>{row.leaves});
  }
  CHECK(b.seconds == 0);
}
