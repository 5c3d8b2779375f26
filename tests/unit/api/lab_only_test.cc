// A controller of real servers, and what only a lab's may do: each listener, and what was stored before.
#include "controller/bringup/bringup.h"
#include "controller/ports/store.h"
#include "controller/spec/lab_only.h"
#include "tests/fakes/muster_command.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using api::Listener;
using testing::Controller;
using testing::muster_command;
using testing::replaced;

namespace {

// Made when a test asks for it: `replaced` checks.
std::string real_spec() {
  return replaced(replaced(testing::kSpec, "profile: lab }", "profile: quick }"), "[ base, storage, shared ]",
                  "[ base, ssh, storage-local, storage-shared ]");
}
std::string lab_spec() { return real_spec() + "lab:\n  smp: 1\n"; }

struct Real : Controller {
  // Its state is a lab's with this spec, or one that an older version wrote.
  explicit Real(const std::string& stored) : Controller(source_dir() + "/playbooks") {
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", stored).status == 200);
  }
  void begins() {
    restart([this] { no_lab(); });
  }
  int put(const std::string& text, const std::string& query = "") {
    return call(Listener::local, "PUT", "/v1/spec" + query, text).status;
  }
  int plan(const Json& request) { return call(Listener::local, "POST", "/v1/plan", request.dump()).status; }
  Json status() { return parse_json(call(Listener::local, "GET", "/v1/status").body).value(); }
  int64_t revision() {
    return parse_json(call(Listener::local, "GET", "/v1/spec").body).value()["revision"].get<int64_t>();
  }
};

}  // namespace

TEST_CASE("a controller of real servers stores no spec that is a lab's", "[api][lab-only]") {
  Real c(real_spec());
  c.begins();
  const auto refused = c.call(Listener::local, "PUT", "/v1/spec?file=mine.yaml", lab_spec());
  REQUIRE(refused.status == 422);
  const Json errors = parse_json(refused.body).value()["errors"];
  REQUIRE(errors.size() == 1);
  CHECK(errors[0]["file"] == "mine.yaml");
  CHECK(errors[0]["path"] == "lab");
  CHECK(errors[0]["line"] == 1 + std::ranges::count(real_spec(), '\n'));
  CHECK(errors[0]["column"] == 1);
  CHECK(c.put(lab_spec(), "?dry=1") == 422);
  CHECK(c.call(Listener::local, "POST", "/v1/doctor", lab_spec()).status == 422);
  CHECK(c.put(replaced(real_spec(), "profile: quick }", "profile: lab }")) == 422);
  CHECK(c.revision() == 1);
  CHECK(c.put(real_spec() + "\n") == 200);
  CHECK_FALSE(c.status()["problems"].contains("spec"));
  CHECK(c.status()["lab"] == false);
  CHECK(c.status()["simulated"] == false);
  CHECK(parse_json(c.call(Listener::local, "GET", "/v1/version").body).value()["lab"] == false);
}

TEST_CASE("one that was stored before is not planned, and the status shows why", "[api][lab-only]") {
  Real c(lab_spec());
  CHECK(c.plan({{"kind", "auto"}}) == 200);
  CHECK_FALSE(c.status()["problems"].contains("spec"));
  CHECK(c.status()["lab"] == true);
  CHECK(c.status()["simulated"] == true);
  CHECK(parse_json(c.call(Listener::local, "GET", "/v1/version").body).value()["lab"] == true);
  c.begins();
  for (const char* kind : {"auto", "accept", "drain"}) CHECK(c.plan({{"kind", kind}}) == 422);
  CHECK(c.plan({{"kind", "reimage"}, {"nodes", {"node01"}}}) == 422);
  CHECK(c.call(Listener::local, "POST", "/v1/images/build", R"({"name": "cpu"})").status == 422);
  CHECK(c.status()["problems"].contains("spec"));
  CHECK(c.status()["nodes"].size() == 3);  // it is still known what there is
  CHECK(c.put(lab_spec()) == 422);         // also unchanged
  // The trial for a machine that is to be admitted: nothing would be stored.
  const auto possible = [&](const std::string& text) {
    std::promise<bool> is;
    c.on_reactor([&] {
      c.services().bringup.trial(testing::parsed(text), "node01", testing::seen_in_ram("node01"),
                                 [&](const auto& made) { is.set_value(made.ok()); });
    });
    return is.get_future().get();
  };
  CHECK_FALSE(possible(lab_spec()));
  CHECK(possible(real_spec()));
  CHECK(c.put(real_spec()) == 200);
  CHECK(c.plan({{"kind", "auto"}}) == 200);
  for (const char* profile : {"lab", "lab-compare"})
    CHECK(c.plan({{"kind", "accept"}, {"profile", profile}}) == 422);
  CHECK_FALSE(c.status()["problems"].contains("spec"));
}

TEST_CASE("a run that was planned for a lab's machines does not go on elsewhere", "[api][lab-only]") {
  const std::string by = GENERATE(as<std::string>{}, "section", "lab", "lab-compare");
  Real c(real_spec());
  std::promise<bool> started;
  c.on_reactor([&] {
    Plan plan;
    plan.kind = PlanKind::discover;
    plan.nodes = {"node01"};
    plan.simulated = by == "section";
    if (by != "section") plan.profile = by;
    Action look;
    look.id = "node01/inventory";
    look.node = "node01";
    look.kind = ActionKind::inventory;
    plan.actions = {look};
    c.services().bringup.executor().start(plan, "test",
                                          [&](Result<int64_t> id) { started.set_value(id.ok()); });
  });
  REQUIRE(started.get_future().get());
  const bool lab = GENERATE(true, false);
  c.restart([&] {
    if (!lab) c.no_lab();
  });
  c.open();
  for (int i = 0; i < 2; ++i) {  // what the start wrote is in the store then
    std::promise<void> written;
    c.on_reactor([&] { c.services().store.write({EventRow{}}, [&](Status) { written.set_value(); }); });
    written.get_future().get();
  }
  bool active = false;
  c.on_reactor([&] { active = c.services().bringup.executor().active(); });
  CHECK(active == lab);
  const Json runs = parse_json(c.call(Listener::local, "GET", "/v1/runs").body).value()["runs"];
  CHECK(runs[0]["state"] == (lab ? "running" : "failed"));
}

TEST_CASE("`muster up` of a lab's spec ends with 2 there; `spec check` says that it is a lab's",
          "[cli][lab-only]") {
  Real c(real_spec());
  c.begins();
  c.open();
  const TempDir dir;
  dir.write("lab.yaml", lab_spec());
  dir.write("real.yaml", real_spec());
  const auto up = muster_command({"up", dir.path("lab.yaml"), "--yes", "--socket", c.socket()});
  CHECK(up.exit == 2);
  CHECK(up.err.find(dir.path("lab.yaml") + ":25:1: lab: ") != std::string::npos);
  CHECK(c.revision() == 1);
  // And one that is stored.
  Real older(lab_spec());
  older.begins();
  older.open();
  CHECK(muster_command({"plan", "--socket", older.socket()}).exit == 2);
  const auto stored = muster_command({"up", "--yes", "--socket", older.socket()});
  CAPTURE(stored.err);
  CHECK(stored.exit == 2);
  const auto check = [&](const std::string& file) {
    const auto ran = muster_command({"spec", "check", dir.path(file), "--json"});
    CHECK(ran.exit == 0);
    return parse_json(ran.out).value();
  };
  CHECK(check("lab.yaml")["lab_only"] == true);
  CHECK(check("real.yaml")["lab_only"] == false);
}
