// A chunk server in maintenance mode: when that is begun, and that it ends.
#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using tests::FakeMachine;

namespace {

struct Volume {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule& module = *find_step_module("moosefs_maintenance");
  Json params = {
      {"master", "10.20.0.11"}, {"address", "10.20.0.12"}, {"state", "on"}, {"deadline_seconds", 0}};

  Volume() { machine.put("/mfs/servers", "10.20.0.11 10.20.0.12 10.20.0.13"); }
  std::string mode(const std::string& server) const { return machine.get("/mfs/maintenance/" + server); }
  Status apply() { return module.apply(context, params); }
  Holds holds() {
    const auto looked = module.check(context, params);
    REQUIRE(looked.ok());
    return looked->holds;
  }
};

}  // namespace

TEST_CASE("moosefs: maintenance is not begun while a chunk lacks a copy") {
  Volume v;
  const std::string what = GENERATE("missing", "endangered", "undergoal");
  v.machine.put("/mfs/" + what, "2");
  const Status waited = v.apply();
  REQUIRE_FALSE(waited.ok());
  CHECK(waited.error().code == Code::failed);
  CHECK(waited.error().message.find("2 chunks are " + what) != std::string::npos);
  CHECK_FALSE(v.machine.called("-CM"));
  CHECK(v.holds() == Holds::no);
  (void)v.machine.files().remove("/mfs/" + what).ok();
  REQUIRE(v.apply().ok());
  CHECK(v.module.verify(v.context, v.params).ok());
  CHECK(v.holds() == Holds::yes);
  CHECK(v.mode("10.20.0.12") == "on");
  CHECK(v.mode("10.20.0.11").empty());
  // Not by an operator before, either.
  v.machine.put("/mfs/" + what, "1");
  CHECK(v.holds() == Holds::no);
  CHECK(v.apply().error().code == Code::failed);
}

TEST_CASE("moosefs: a master that does not say how its chunks are is not taken at a good word") {
  Volume v;
  REQUIRE(v.machine.files().remove("/mfs/servers").ok());
  v.params["address"] = "10.20.0.11";
  CHECK(v.apply().error().code == Code::failed);
  CHECK_FALSE(v.machine.called("-CM"));
}

TEST_CASE("moosefs: maintenance ends whatever the chunks are, and costs nothing where there is none") {
  Volume v;
  v.params["state"] = "off";
  v.machine.put("/mfs/undergoal", "7");
  CHECK(v.holds() == Holds::yes);
  CHECK(v.machine.calls.size() == 1);
  v.machine.put("/mfs/maintenance/10.20.0.12", "on");
  CHECK(v.holds() == Holds::no);
  CHECK_FALSE(v.module.verify(v.context, v.params).ok());
  REQUIRE(v.apply().ok());
  CHECK(v.mode("10.20.0.12") == "off");
  CHECK(v.holds() == Holds::yes);
}

TEST_CASE("moosefs: a chunk server that the master does not know has no maintenance to end, nor to begin") {
  Volume v;
  v.params["address"] = "10.20.0.14";
  CHECK(v.module.check(v.context, v.params).error().code == Code::not_found);
  (void)v.apply().ok();
  CHECK_FALSE(v.module.verify(v.context, v.params).ok());
  v.machine.calls.clear();
  v.params["state"] = "off";
  CHECK(v.holds() == Holds::no);  // it may be on its way
  CHECK_FALSE(v.apply().ok());
  CHECK_FALSE(v.machine.called("-CM"));
  v.machine.put("/mfs/servers", "10.20.0.11 10.20.0.14");
  CHECK(v.holds() == Holds::yes);
}

TEST_CASE("moosefs: a host that is busy has the time to ask its master") {
  Volume v;
  v.params["state"] = GENERATE("on", "off");
  const bool on = v.params["state"] == "on";
  v.machine.put("/mfs/maintenance/10.20.0.12", on ? "off" : "on");
  v.machine.takes["mfscli"] = 2 * kMinute;
  CHECK(v.holds() == Holds::no);
  REQUIRE(v.apply().ok());
  CHECK(v.module.verify(v.context, v.params).ok());
  CHECK(v.mode("10.20.0.12") == (on ? "on" : "off"));
}

TEST_CASE("moosefs: a master that does not answer now is waited for, and no maintenance is begun blindly") {
  Volume v;
  v.params["state"] = GENERATE("on", "off");
  v.machine.takes["mfscli"] = 60 * kMinute;
  CHECK(v.holds() == Holds::no);
  CHECK(v.apply().error().code == Code::failed);
  CHECK_FALSE(v.machine.called("-CM"));
  CHECK_FALSE(v.module.verify(v.context, v.params).ok());
}
