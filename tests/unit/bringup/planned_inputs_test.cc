// Whatever a plan is made from, an approval is void when it changes, and the refusal names it.
#include "controller/bringup/planning_snapshot.h"

#include <functional>
#include <utility>

#include "base/json_dump.h"
#include "tests/catch.h"

using namespace muster;

namespace {

FactsText facts_text(const std::string& serial) {
  HardwareFacts facts;
  facts.system.serial = serial;
  return dump_ascii(to_json(facts));
}

HardwareFacts facts_of(const std::string& serial) { return *facts_text(serial).facts(); }

// With something in every field.
PlanningSnapshot world() {
  PlanningSnapshot s;
  s.spec = std::make_shared<const SpecRevision>(SpecRevision{7, "sha256:seven", {}});
  auto books = std::make_shared<Playbooks>();
  books->digests = {{"acceptance/quick", "sha256:q"}, {"base", "sha256:b"}};
  s.playbooks = books;
  s.looked_at["gpu07"] = {facts_text("SN7"), {"a"}};
  NodeObservation seen;
  seen.mode = wire::Mode::installed;
  seen.online = true;
  seen.state = NodeState::accepted;
  seen.image_digest = "sha256:i";
  seen.config_digest = "sha256:c";
  seen.product_uuid = "uuid-7";
  seen.held_by = HeldBy::run;
  seen.reason = "a drive is slow";
  seen.slot = "a";
  seen.accept_took = 5;
  s.in.nodes["gpu07"] = seen;
  seen.facts = seen.machine = facts_of("SN8");
  s.in.nodes["gpu08"] = seen;  // as a host that is adopted: nothing of it is stored yet
  s.in.images["cpu"] = {"sha256:cpu", "/images/cpu/1/manifest.json", false};
  s.in.request = {RequestKind::accept, {"gpu07", "gpu08"}, {"gpu07"}, "quick", false, false};
  s.in.public_values = {{"munge", "1"}};
  s.in.authority = "sha256:ca";
  s.in.follows = "h/3";
  s.in.controller_address = "10.20.0.1";
  s.in.own = {"uuid-0", {"52:54:00:00:00:01"}, {"10.20.0.1"}, {"head"}};
  s.in.programs = {{"/usr/sbin/muster-agent", "sha256:agent", 9, 0755}};
  s.in.kernel_options = "quiet";
  s.in.gpu_results = GpuResults{"sha256:report", {{"H100", {{"gpu bf16/tflops", {740, 8}}}}}};
  return s;
}

using Change = std::function<void(PlanningSnapshot&)>;
struct Case {
  const char* line;
  Change change;
};

std::vector<std::string> changes_by(const Change& change) {
  PlanningSnapshot now = world();
  change(now);
  return changed_inputs(inputs_of(world()), inputs_of(now));
}

void check_all(const std::vector<Case>& cases) {
  for (const auto& [line, change] : cases) {
    CAPTURE(line);
    CHECK(changes_by(change) == std::vector<std::string>{line});
  }
}

Change node(const std::function<void(NodeObservation&)>& change) {
  return [change](PlanningSnapshot& s) { change(s.in.nodes["gpu07"]); };
}
Change given(const std::function<void(NodeObservation&)>& change) {
  return [change](PlanningSnapshot& s) { change(s.in.nodes["gpu08"]); };
}
Change looked(const std::function<void(LookedAt&)>& change) {
  return [change](PlanningSnapshot& s) { change(s.looked_at["gpu07"]); };
}
Change input(const std::function<void(PlannerInput&)>& change) {
  return [change](PlanningSnapshot& s) { change(s.in); };
}
Change spec(int64_t revision, const std::string& digest) {
  return [=](PlanningSnapshot& s) {
    s.spec = std::make_shared<const SpecRevision>(SpecRevision{revision, digest, {}});
  };
}
Change books(const std::map<std::string, std::string>& digests) {
  return [=](PlanningSnapshot& s) {
    auto other = std::make_shared<Playbooks>();
    other->digests = digests;
    s.playbooks = other;
  };
}

}  // namespace

TEST_CASE("planned inputs: the same world is the same", "[bringup][approve]") {
  CHECK(changes_by([](PlanningSnapshot&) {}).empty());
}

TEST_CASE("planned inputs: the spec, the playbooks, the images", "[bringup][approve]") {
  check_all({
      {"spec: revision 8 is now stored", spec(8, "sha256:seven")},
      {"spec: revision 8 is now stored", spec(8, "sha256:eight")},
      {"spec: its text has changed", spec(7, "sha256:other")},
      {"playbook base: its text has changed",
       books({{"acceptance/quick", "sha256:q"}, {"base", "sha256:x"}})},
      {"playbook base: it no longer exists", books({{"acceptance/quick", "sha256:q"}})},
      {"playbook motd: it is new",
       books({{"acceptance/quick", "sha256:q"}, {"base", "sha256:b"}, {"motd", "sha256:m"}})},
      {"image cpu: it is a different build",
       input([](PlannerInput& in) { in.images["cpu"].digest = "sha256:x"; })},
      {"image cpu: it is a different build",
       input([](PlannerInput& in) { in.images["cpu"].manifest_path = "/x"; })},
      {"image cpu: its support for automatic rollback changed",
       input([](PlannerInput& in) { in.images["cpu"].trial = true; })},
      {"image cpu: it no longer exists", input([](PlannerInput& in) { in.images.clear(); })},
      {"image gpu: it is new", input([](PlannerInput& in) { in.images["gpu"] = {}; })},
  });
}

TEST_CASE("planned inputs: what is known of a node", "[bringup][approve]") {
  check_all({
      {"node gpu07: its agent is now silent", node([](NodeObservation& n) { n.online = false; })},
      {"node gpu07: its agent now runs in system 'ram', not 'installed'",
       node([](NodeObservation& n) { n.mode = wire::Mode::ram; })},
      {"node gpu07: it is no longer known which system its agent runs in",
       node([](NodeObservation& n) { n.mode.reset(); })},
      {"node gpu07: its state is now degraded, not accepted",
       node([](NodeObservation& n) { n.state = NodeState::degraded; })},
      {"node gpu07: its state is now quarantined, not accepted", node([](NodeObservation& n) {
         n.state = NodeState::quarantined;
         n.held_by = HeldBy::an_operator;
         n.reason = "by an operator";
       })},
      {"node gpu07: it runs a different image",
       node([](NodeObservation& n) { n.image_digest = "sha256:x"; })},
      {"node gpu07: it is configured differently",
       node([](NodeObservation& n) { n.config_digest = "sha256:x"; })},
      {"node gpu07: the name is bound to a different machine",
       node([](NodeObservation& n) { n.product_uuid = "uuid-x"; })},
      {"node gpu07: its data is from an older copy of the database",
       node([](NodeObservation& n) { n.doubtful = true; })},
      {"node gpu07: it is now quarantined by 'operator', not by 'run'",
       node([](NodeObservation& n) { n.held_by = HeldBy::an_operator; })},
      {"node gpu07: it is quarantined for a different reason",
       node([](NodeObservation& n) { n.reason = "fans"; })},
      {"node gpu07: the measured duration of its last acceptance changed",
       node([](NodeObservation& n) { n.accept_took = 6; })},
      {"node gpu07: it is now in a trial boot", node([](NodeObservation& n) { n.on_trial = true; })},
      {"node gpu07: it now runs from slot 'b', not 'a'", node([](NodeObservation& n) { n.slot = "b"; })},
      {"node gpu09: it is new", input([](PlannerInput& in) { in.nodes["gpu09"] = {}; })},
      {"node gpu08: it no longer exists", input([](PlannerInput& in) { in.nodes.erase("gpu08"); })},
  });
}

TEST_CASE("planned inputs: what was found in a node", "[bringup][approve]") {
  check_all({
      {"node gpu07: its inventory is different", looked([](LookedAt& at) { at.facts = facts_text("SN9"); })},
      {"node gpu07: its inventory is different", looked([](LookedAt& at) { at.written = {"b"}; })},
      {"node gpu07: its inventory is different", looked([](LookedAt& at) { at.written.clear(); })},
      {"node gpu07: the content of its disks is no longer known", looked([](LookedAt& at) {
         at.written = {"", "a"};
       })},
      {"node gpu08: the content of its disks is no longer known",
       given([](NodeObservation& n) { n.facts.reset(); })},
      {"node gpu08: its inventory is different",
       given([](NodeObservation& n) { n.facts = facts_of("SN9"); })},
      {"node gpu08: its inventory is different",
       given([](NodeObservation& n) { n.machine = facts_of("SN9"); })},
  });
  // The same in other words is the same.
  CHECK(changes_by(looked([](LookedAt& at) { at.facts = " " + at.facts.text() + "\n"; })).empty());
}

TEST_CASE("planned inputs: the request", "[bringup][approve]") {
  const auto request = [](const std::function<void(PlanRequest&)>& change) {
    return input([change](PlannerInput& in) { change(in.request); });
  };
  const std::vector<Change> changes = {
      request([](PlanRequest& r) { r.kind = RequestKind::up; }),
      request([](PlanRequest& r) { r.nodes = {"gpu07,gpu08"}; }),
      request([](PlanRequest& r) { r.nodes = {"gpu07"}; }),
      request([](PlanRequest& r) { r.force.clear(); }),
      request([](PlanRequest& r) { r.profile = "burn"; }),
      request([](PlanRequest& r) { r.through_ram = true; }),
      request([](PlanRequest& r) { r.reimage = true; }),
      request([](PlanRequest& r) { r.batch.emplace(); }),
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    const auto changed = changes_by(changes[i]);
    REQUIRE(changed.size() == 1);
    CHECK(changed.front().starts_with("request: "));
  }
}

TEST_CASE("planned inputs: the controller and its machine", "[bringup][approve]") {
  check_all({
      {"value munge: now '2'", input([](PlannerInput& in) { in.public_values["munge"] = "2"; })},
      {"value munge: it no longer exists", input([](PlannerInput& in) { in.public_values.clear(); })},
      {"authority: now 'sha256:x'", input([](PlannerInput& in) { in.authority = "sha256:x"; })},
      {"newest run: a new run has begun", input([](PlannerInput& in) { in.follows = "h/4"; })},
      {"controller's address: now '10.20.0.2'",
       input([](PlannerInput& in) { in.controller_address = "10.20.0.2"; })},
      {"address of the controller's metrics: now '10.20.0.2'",
       input([](PlannerInput& in) { in.metrics_address = "10.20.0.2"; })},
      {"own machine: the controller's own uuid changed", input([](PlannerInput& in) { in.own.uuid = "x"; })},
      {"own machine: the controller's own macs changed",
       input([](PlannerInput& in) { in.own.macs.clear(); })},
      {"own machine: the controller's own addresses changed",
       input([](PlannerInput& in) { in.own.addresses.insert("10.20.0.9"); })},
      {"own machine: the controller's own names changed",
       input([](PlannerInput& in) { in.own.names = {"x"}; })},
      {"program /usr/sbin/muster-agent: it is a different build",
       input([](PlannerInput& in) { in.programs[0].sha256 = "sha256:x"; })},
      {"program /usr/sbin/muster-agent: it is a different build",
       input([](PlannerInput& in) { in.programs[0].size = 10; })},
      {"program /usr/sbin/muster-agent: it is a different build",
       input([](PlannerInput& in) { in.programs[0].mode = 0700; })},
      {"program /usr/lib/x: it is new", input([](PlannerInput& in) {
         in.programs.push_back({"/usr/lib/x", "y"});
       })},
      {"kernel options: now 'debug'", input([](PlannerInput& in) { in.kernel_options = "debug"; })},
      {"lab: this is now a lab's controller", input([](PlannerInput& in) { in.lab = true; })},
      {"GPU results: now 'sha256:x'", input([](PlannerInput& in) { in.gpu_results->digest = "sha256:x"; })},
      {"GPU results: it no longer exists", input([](PlannerInput& in) { in.gpu_results.reset(); })},
  });
  const auto speed = [](const std::function<void(ProvenSpeed&)>& change) {
    return input([change](PlannerInput& in) { change(in.gpu_results->models["H100"]["gpu bf16/tflops"]); });
  };
  CHECK(changes_by(speed([](ProvenSpeed& s) { s.value = 741; })).size() == 1);
  CHECK(changes_by(speed([](ProvenSpeed& s) { s.gpus = 9; })).size() == 1);
}

TEST_CASE("planned inputs: a plan lists programs in their order, so another order is a change",
          "[bringup][approve]") {
  PlanningSnapshot before = world();
  before.in.programs.push_back({"/usr/sbin/muster-accept", "sha256:accept", 9, 0755});
  PlanningSnapshot now = before;
  std::swap(now.in.programs[0], now.in.programs[1]);
  CHECK(changed_inputs(inputs_of(before), inputs_of(now)).size() == 2);
  CHECK(changed_inputs(inputs_of(before), inputs_of(before)).empty());
}

TEST_CASE("planned inputs: of many changes the first few are named, and how many there are",
          "[bringup][approve]") {
  CHECK(in_one_line({}).empty());
  CHECK(in_one_line({"a: x", "b: y"}) == "a: x; b: y");
  CHECK(in_one_line({"1", "2", "3", "4", "5", "6"}) == "1; 2; 3; 4; and 2 more");
}
