// Slurm as it is: the words and marks of node states.
#include <sstream>

#include "agent/step.h"
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
  Holds takes_jobs() {
    const Json params = {{"nodes", Json::array({{{"name", node}}})}, {"deadline_seconds", 0}};
    return find_step_module("slurm_nodes")->check(context, params)->holds;
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

}  // namespace

FIELD_CASE("slurm-planned-and-maint") {
  std::istringstream lines(field_input("slurm-planned-and-maint", "states.txt"));
  int tried = 0;
  for (std::string state, right; lines >> state >> right; ++tried) {
    INFO(state);
    CHECK(Slurm("node01|" + state + "|none").takes_jobs() == (right == "takes" ? Holds::yes : Holds::no));
  }
  CHECK(tried == 34);
}

FIELD_CASE("slurm-planned-and-maint: a drain holds in a reservation, and resume really resumes") {
  Slurm s("node01|idle|none");
  s.machine.put("/slurm-maintenance", "");
  CHECK(s.takes_jobs() == Holds::no);
  CHECK(s.make("drain").ok());
  CHECK(s.is("drain") == Holds::yes);
  CHECK(s.is("resume") == Holds::no);
  CHECK(s.make("resume").ok());
  CHECK(s.machine.get("/slurm/node01").rfind("idle|", 0) == 0);
  CHECK(s.is("resume") == Holds::yes);
}

FIELD_CASE("slurm-planned-and-maint: each mark behind drained") {
  for (const char* mark : {"", "*", "~", "#", "!", "%", "$", "@", "^", "-", "+"}) {
    INFO(mark);
    CHECK(Slurm("node01|drained" + std::string(mark) + "|x").is("drain") == Holds::yes);
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
  CHECK(s.takes_jobs() == Holds::no);
  CHECK(s.is("drain") == Holds::yes);
  CHECK(s.make("resume").ok());
  CHECK(s.machine.get("/slurm/" + s.node).rfind("idle|", 0) == 0);
}

FIELD_CASE("slurm-drained-in-maintenance") {
  Slurm s(field_input("slurm-drained-in-maintenance", "sinfo.txt"));
  CHECK(s.takes_jobs() == Holds::no);
  CHECK(s.is("drain") == Holds::no);
  CHECK(s.is("resume") == Holds::no);
}

}  // namespace muster::tests
