// Slurm as it is: the words and marks of node states, and memory as slurmd counts it.
#include <fmt/format.h>

#include <sstream>

#include "agent/core/step.h"
#include "agent/facts/collect_facts.h"
#include "base/facts.h"
#include "base/slurm_state.h"
#include "controller/plan/cluster_context.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

// A head node whose sinfo shows one node, as the case has it ("node|state|reason").
struct Slurm {
  FakeMachine machine;
  StepContext context = machine.context();
  std::string node;

  explicit Slurm(const std::string& line) {
    const std::string text = line.substr(0, line.find('\n'));
    const size_t bar = text.find('|');
    REQUIRE(bar != std::string::npos);
    node = text.substr(0, bar);
    machine.put("/slurm/" + node, text.substr(bar + 1));
  }
  // A node that a person has taken out is left out of the test of all nodes, with a remark.
  Holds takes_jobs() {
    const Json params = {{"nodes", Json::array({{{"name", node}}})}, {"deadline_seconds", 0}};
    const auto looked = find_step_module("slurm_nodes")->check(context, params);
    return looked->note.empty() ? looked->holds : Holds::not_applicable;
  }
  Json wanted(const std::string& state) const {
    return {{"node", node}, {"state", state}, {"deadline_seconds", 0}};
  }
  Holds is(const std::string& state) {
    return find_step_module("slurm_node")->check(context, wanted(state))->holds;
  }
  Status make(const std::string& state) {
    return find_step_module("slurm_node")->apply(context, wanted(state));
  }
};

// What a case's machine has, through its facts and their way to the controller, as slurm.conf gets it; and
// what slurmd will report.
struct Memory {
  int64_t real_memory = 0, reported = 0;
};
Memory memory_of(const std::string& name, int64_t less_mib = 0) {
  FakeMachine machine;
  std::istringstream words(field_input(name, "memory.txt"));
  Memory out;
  for (std::string key, value; words >> key >> value;) {
    if (key == "block") machine.put("/sys/devices/system/memory/block_size_bytes", value + "\n");
    for (int i = 0; key == "blocks" && i < std::stoi(value); ++i)
      machine.put(fmt::format("/sys/devices/system/memory/memory{}/state", i), "online\n");
    if (key != "MemTotal") continue;
    const int64_t kib = std::stoll(value) - less_mib * 1024;
    machine.put("/proc/meminfo", fmt::format("MemTotal:       {} kB\n", kib));
    out.reported = kib / 1024;
  }
  const auto facts = collect_facts(machine.files());
  REQUIRE(facts.ok());
  const auto arrived = hardware_facts_from_json(to_json(*facts));
  REQUIRE(arrived.ok());
  Spec spec;
  spec.nodes.resize(1);
  spec.nodes[0].name = "node01";
  const std::map<std::string, const HardwareFacts*> machines = {{"node01", &*arrived}};
  out.real_memory = ClusterContext(spec, machines).of("").set->machines.at(0).at("memory_mib").get<int64_t>();
  return out;
}

}  // namespace

FIELD_CASE("slurm-planned-and-maint") {
  std::istringstream lines(field_input("slurm-planned-and-maint", "states.txt"));
  int tried = 0;
  for (std::string state, right; lines >> state >> right; ++tried) {
    INFO(state);
    CHECK(slurm::read_state(state).takes_jobs() == (right == "takes"));
    CHECK((Slurm("node01|" + state + "|none").takes_jobs() == Holds::yes) == (right == "takes"));
  }
  CHECK(tried == 34);
}

FIELD_CASE("slurm-planned-and-maint: a drain holds in a reservation, and resume really resumes") {
  Slurm s("node01|idle|none");
  s.machine.put("/slurm-maintenance", "");
  CHECK(s.takes_jobs() == Holds::not_applicable);
  CHECK(s.make("drain").ok());
  CHECK(s.is("drain") == Holds::yes);
  CHECK(s.is("resume") == Holds::no);
  CHECK(s.make("resume").ok());
  CHECK(s.machine.get("/slurm/node01").starts_with("idle|"));
  CHECK(s.is("resume") == Holds::yes);
}

FIELD_CASE("slurm-planned-and-maint: each mark behind drained") {
  for (const char* mark : {"", "*", "~", "#", "!", "%", "$", "@", "^", "-", "+"}) {
    INFO(mark);
    // A drain may end with a reboot that Slurm makes; `+` is for jobs that end.
    const bool lasts = std::string("@^+").find(mark) == std::string::npos || *mark == '\0';
    CHECK(Slurm("node01|drained" + std::string(mark) + "|x").is("drain") == (lasts ? Holds::yes : Holds::no));
    CHECK(Slurm("node01|drained" + std::string(mark) + "|x").is("resume") == Holds::no);
    // Its jobs have not ended yet.
    CHECK(Slurm("node01|draining" + std::string(mark) + "|x").is("drain") == Holds::no);
    CHECK(Slurm("node01|draining" + std::string(mark) + "|x").is("resume") == Holds::no);
  }
}

FIELD_CASE("slurm-planned-word") {
  Slurm s(field_input("slurm-planned-word", "sinfo.txt"));
  CHECK(s.takes_jobs() == Holds::yes);
  CHECK(s.is("resume") == Holds::yes);
}

FIELD_CASE("slurm-idle-without-answer") {
  CHECK(Slurm(field_input("slurm-idle-without-answer", "sinfo.txt")).takes_jobs() == Holds::no);
}

FIELD_CASE("slurm-drain-as-flag") {
  Slurm s(field_input("slurm-drain-as-flag", "sinfo.txt"));
  CHECK(s.takes_jobs() == Holds::not_applicable);
  CHECK(s.is("drain") == Holds::yes);
  CHECK(s.make("resume").ok());
  CHECK(s.machine.get("/slurm/" + s.node).starts_with("idle|"));
}

FIELD_CASE("slurm-drained-in-maintenance") {
  Slurm s(field_input("slurm-drained-in-maintenance", "sinfo.txt"));
  CHECK(s.takes_jobs() == Holds::not_applicable);
  CHECK(s.is("drain") == Holds::no);
  CHECK(s.is("resume") == Holds::no);
}

FIELD_CASE("slurm-memory-64g") {
  const Memory m = memory_of("slurm-memory-64g");
  CHECK(m.reported == 63693);
  CHECK(m.real_memory <= m.reported * 95 / 100);
  CHECK(m.real_memory >= m.reported * 94 / 100);
  // Where the next boot leaves a little less, no line of slurm.conf changes.
  CHECK(memory_of("slurm-memory-64g", 1).real_memory == m.real_memory);
}

FIELD_CASE("slurm-memory-of-a-rented-machine") {
  const Memory m = memory_of("slurm-memory-of-a-rented-machine");
  CHECK(m.reported == 63622);
  CHECK(m.real_memory < m.reported);
  CHECK(m.real_memory >= m.reported * 94 / 100);
}

FIELD_CASE("slurm-memory-all-of-it") {
  const Memory m = memory_of("slurm-memory-all-of-it");
  CHECK(m.real_memory <= m.reported * 95 / 100 + 1);  // of bytes, not of whole MiB
  CHECK(m.real_memory >= m.reported * 94 / 100);
}

FIELD_CASE("slurm-memory-rounded-up") {
  const Memory m = memory_of("slurm-memory-rounded-up");
  CHECK(m.real_memory <= m.reported);
  CHECK(m.real_memory > 0);
}

FIELD_CASE("slurm-memory-evicted") {
  const Memory m = memory_of("slurm-memory-evicted");
  CHECK(m.reported == 435161);
  CHECK(m.real_memory <= m.reported * 95 / 100);
  CHECK(m.real_memory >= m.reported * 94 / 100);
}

FIELD_CASE("slurm-memory-one-mib-less") {
  const Memory m = memory_of("slurm-memory-one-mib-less");
  CHECK(m.reported == 128517);
  CHECK(m.real_memory < m.reported - 1);
  CHECK(memory_of("slurm-memory-one-mib-less", 1).real_memory == m.real_memory);
}

}  // namespace muster::tests
