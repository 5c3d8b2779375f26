// What a session decides with: which plans are let through, which machine a name stands for, exit codes.
#include <barrier>
#include <filesystem>
#include <thread>

#include "controller/hosts/reached.h"
#include "controller/hosts/accept_core.h"
#include "controller/hosts/outcome.h"
#include "controller/trust/authority.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

Plan plan_of(ActionKind kind, const std::string& module, const Json& verify = nullptr) {
  Action action;
  action.id = "gpu01/accept";
  action.node = "gpu01";
  action.kind = kind;
  action.params = Json{{"steps", {{{"id", "a/b"}, {"module", module}, {"verify", verify}}}}};
  Plan plan;
  plan.actions = {action};
  return plan;
}

MachineParts machine(const std::string& uuid, const std::string& gpu) {
  MachineParts out;
  out.uuid = uuid;
  out.gpus = {gpu, gpu + "-b"};
  return out;
}

constexpr const char* kOne = "4c4c4544-0042-3010-8051-b4c04f4a3232";
constexpr const char* kOther = "5c4c4544-0042-3010-8051-b4c04f4a3232";

HostOutcome host(HostVerdict verdict) { return {"gpu01", verdict, ""}; }

}  // namespace

TEST_CASE("hosts: a plan that does more than to measure is refused", "[hosts]") {
  CHECK(measures_only(plan_of(ActionKind::check, "accept")).ok());
  CHECK(measures_only(plan_of(ActionKind::check, "accept_links")).ok());
  CHECK(measures_only(plan_of(ActionKind::check, "not_applicable")).ok());
  for (const ActionKind kind : {ActionKind::steps, ActionKind::reboot, ActionKind::image, ActionKind::netboot,
                                ActionKind::power_off, ActionKind::inventory})
    CHECK(measures_only(plan_of(kind, "accept")).error().code == Code::denied);
  for (const char* module : {"file", "command", "acceptance", ""})
    CHECK(measures_only(plan_of(ActionKind::check, module)).error().code == Code::denied);
  CHECK(!measures_only(plan_of(ActionKind::check, "accept", {{"module", "command"}})).ok());
  Plan destroys = plan_of(ActionKind::check, "accept");
  destroys.destroys.push_back({});
  CHECK(!measures_only(destroys).ok());
}

TEST_CASE("hosts: the history of a name goes on with the same machine only", "[hosts]") {
  TempDir dir;
  auto known = KnownMachines::read(dir.path("")).value();
  CHECK(known.meet("gpu01", machine(kOne, "GPU-1"), 3).same == SameMachine::unknown);
  CHECK(known.history_after().empty());
  REQUIRE(known.write().ok());

  auto later = KnownMachines::read(dir.path("")).value();
  MachineParts as_user = machine("", "GPU-1");
  CHECK(later.meet("gpu01", as_user, 4).same == SameMachine::yes);
  CHECK(later.history_after().empty());
  const auto changed = later.meet("gpu01", machine(kOther, "GPU-7"), 5);
  CHECK(changed.same == SameMachine::no);
  CHECK(!changed.changed.empty());
  CHECK(later.history_after() == std::map<std::string, int64_t>{{"gpu01", 5}});
  REQUIRE(later.write().ok());
  CHECK(KnownMachines::read(dir.path("")).value().history_after() == later.history_after());

  dir.write("machines.json", "[1");
  CHECK(KnownMachines::read(dir.path("")).error().code == Code::corrupt);
}

TEST_CASE("hosts: exit codes", "[hosts]") {
  using V = HostVerdict;
  CHECK(exit_of({host(V::accepted), host(V::accepted)}, false) == 0);
  CHECK(exit_of({host(V::accepted), host(V::degraded)}, false) == 5);
  CHECK(exit_of({host(V::accepted), host(V::failed)}, false) == 3);
  CHECK(exit_of({host(V::failed), host(V::not_reached)}, false) == 1);
  for (const V alone : {V::looked_at, V::not_accepted, V::busy, V::refused, V::not_reached})
    CHECK(exit_of({host(alone)}, false) == 3);
  CHECK(exit_of({host(V::accepted)}, true) == 1);
  CHECK(exit_of({host(V::accepted), host(V::looked_at)}, false) == 3);
  CHECK(exit_of({host(V::looked_at), host(V::failed)}, false) == 3);
  CHECK(verdict_word(3, {host(V::looked_at), host(V::looked_at)}) == "looked_at");
  CHECK(verdict_word(3, {host(V::looked_at), host(V::busy)}) == "partial");
  CHECK(verdict_word(3, {}) == "partial");

  NodeReport node;
  node.verdict = NodeVerdict::quarantined;
  node.checks.resize(1);
  node.checks[0].verdict = Verdict::skipped;
  CHECK(outcome_of(node, false).verdict == V::not_accepted);
  node.checks[0].verdict = Verdict::fail;
  CHECK(outcome_of(node, false).verdict == V::failed);
}

TEST_CASE("hosts: what the generated spec gets of a host", "[hosts]") {
  std::vector<ReachedHost> hosts(1);
  hosts[0].name = "gpu01";
  hosts[0].address = "10.0.0.1";
  CHECK(accept_hosts(hosts).at(0).address == "10.0.0.1");
  // An agent that does not report its RDMA ports says nothing about them.
  CHECK_FALSE(accept_hosts(hosts).at(0).rdma_ports);
  hosts[0].look["rdma_ports"] = 8;
  CHECK(accept_hosts(hosts).at(0).rdma_ports == 8);
}

TEST_CASE("hosts: work that does not make a host busy becomes a note", "[hosts]") {
  std::vector<ReachedHost> hosts(3);
  hosts[0].name = "a", hosts[1].name = "b", hosts[2].name = "c";
  for (size_t n : {0, 2}) hosts[n].look = {{"notes", {"a core is in use"}}};
  const auto notes = look_notes(hosts);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("a core is in use") != std::string::npos);
  CHECK(notes[0].find("a, c") != std::string::npos);
}

TEST_CASE("hosts: a machine with the name of another host of the list is not measured", "[hosts]") {
  const ListedNames names = {{"gpu01", "gpu01"}, {"gpu02", "gpu02-site"}, {"gpu02-site", "gpu02-site"}};
  const auto refused = [&](const std::string& name, const std::string& hostname) {
    ReachedHost host;
    host.name = name;
    host.hostname = hostname;
    return mistaken_hosts({host}, names).count(name) > 0;
  };
  CHECK(refused("gpu01", "gpu02"));
  CHECK(refused("gpu01", "GPU02.site"));
  CHECK(refused("gpu02-site", "gpu01.site"));
  for (const char* fine : {"gpu01", "gpu01.site", "GPU01", "gpu99", "localhost", ""}) {
    INFO(fine);
    CHECK_FALSE(refused("gpu01", fine));
  }
  CHECK_FALSE(refused("gpu02-site", "gpu02"));
  ReachedHost host;
  host.name = "gpu01";
  host.hostname = "node9";
  CHECK(note_of_names({host}, names).find("node9") != std::string::npos);
  host.hostname = "gpu01.site";
  CHECK(note_of_names({host}, names) == "");
}

TEST_CASE("only hosts whose firmware names no maker of servers are simulated ones", "[hosts]") {
  const auto host = [](const std::string& name, const std::string& vendor) {
    HardwareFacts facts;
    facts.system.vendor = vendor;
    auto reached = reached_host(name, {to_json(facts), Json::object()});
    REQUIRE(reached.ok());
    return std::move(reached).value();
  };
  CHECK(all_simulated({host("node01", "SIMULATED"), host("node02", "SIMULATED")}));
  CHECK_FALSE(all_simulated({host("node01", "SIMULATED"), host("gpu02", "Supermicro")}));
  CHECK_FALSE(all_simulated({host("node01", "SIMULATED"), host("gpu02", "")}));
  CHECK_FALSE(all_simulated({}));
}

TEST_CASE("the key of reports is made once, however many first commands start together", "[hosts]") {
  TempDir folder;
  constexpr int kCommands = 8;
  std::barrier start(kCommands);
  std::vector<std::string> keys(kCommands);
  {
    std::vector<std::jthread> commands;
    for (int i = 0; i < kCommands; ++i)
      commands.emplace_back([&, i] {
        start.arrive_and_wait();
        const auto pair = shared_pair(folder.path("."), {"/report.key", "/report.pub"},
                                      [] { return pki::make_signing_key(); });
        keys[i] = pair.ok() ? pair->key_pem + pair->certificate_pem : pair.error().message;
      });
  }
  const Files files(folder.path("."));
  const std::string kept = files.read("/report.key").value() + files.read("/report.pub").value();
  for (const auto& key : keys) CHECK(key == kept);
}
