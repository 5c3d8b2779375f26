// The table of Slurm's node states: every word and mark, and whose a drain is. And that of its releases.
#include "base/slurm_state.h"

#include <set>

#include "base/slurm_release.h"
#include "base/split.h"
#include "tests/catch.h"

using namespace muster;
using slurm::Drain;
using slurm::State;

namespace {

// "takes", or the names of what holds.
std::string in_words(const State& s) {
  std::string out;
  const auto add = [&](bool holds, const char* name) {
    if (holds) out += (out.empty() ? "" : " ") + std::string(name);
  };
  add(s.takes_jobs(), "takes");
  add(s.busy, "busy");
  add(s.unclear, "unclear");
  add(s.draining, "draining");
  add(s.drained(), "drained");
  add(s.lacking, "lacking");
  add(s.absent, "absent");
  add(s.down, "down");
  add(s.maintained, "maintained");
  add(s.reboots, "reboots");
  add(s.away(), "away");
  return out;
}

const State kDrained = slurm::read_state("drained"), kDown = slurm::read_state("down");

struct Row {
  const char* words;
  const char* right;
};
const Row kRows[] = {
    {"idle planned plnd reserved resv blocked block perfctrs npc", "takes"},
    {"mixed mix allocated alloc completing comp", "takes busy"},
    {"drained drain", "draining drained"},
    {"draining drng failing failg", "busy draining"},
    {"fail", "unclear draining"},
    {"inval", "unclear draining lacking away"},
    {"maint", "unclear maintained away"},
    {"reboot boot", "unclear absent reboots away"},
    {"unknown unk cloud resume resm undrain dynamic_norm dynamic_future power_up", "unclear absent away"},
    {"down", "absent down away"},
    {"future futr error err no_respond power_down powering_down powered_down pow_dn "
     "powering_up "
     "pow_up",
     "absent away"},
    {"IDLE IDLE+CLOUD IDLE+RESERVED IDLE+PLANNED IDLE+BLOCKED IDLE+PERFCTRS IDLE+DYNAMIC_NORM "
     "IDLE+DYNAMIC_FUTURE IDLE+RESUME "
     "IDLE+UNDRAIN IDLE+POWER_UP",
     "takes"},
    {"MIXED+PLANNED ALLOCATED+COMPLETING IDLE+COMPLETING MIXED+MAINTENANCE+RESERVED", "takes busy"},
    {"IDLE+REBOOT_REQUESTED", "takes reboots"},
    {"IDLE+DRAIN", "draining drained"},
    {"IDLE+FAIL IDLE+DRAIN+FAIL", "draining drained"},
    {"MIXED+DRAIN ALLOCATED+DRAIN IDLE+COMPLETING+DRAIN MIXED+FAIL", "busy draining"},
    {"UNKNOWN+DRAIN", "unclear draining absent away"},
    {"IDLE+DRAIN+INVALID_REG", "draining drained lacking away"},
    {"UNKNOWN+DRAIN+INVALID_REG", "unclear draining lacking absent away"},
    {"ALLOCATED+DRAIN+INVALID_REG", "busy draining lacking away"},
    {"IDLE+MAINTENANCE+RESERVED", "maintained away"},
    {"IDLE+DRAIN+MAINTENANCE+RESERVED", "draining drained maintained away"},
    {"DOWN+DRAIN", "draining drained absent down away"},
    {"IDLE+POWER_DRAIN", "draining drained absent away"},
    {"DOWN+DRAIN+REBOOT_ISSUED", "draining drained absent down reboots away"},
    {"IDLE+DRAIN+NOT_RESPONDING+REBOOT_REQUESTED", "draining drained absent reboots away"},
    {"IDLE+NOT_RESPONDING IDLE*+CLOUD IDLE+POWERED_DOWN IDLE+POWERING_DOWN IDLE+POWER_DOWN "
     "IDLE+POWERING_UP",
     "absent away"},
};

}  // namespace

TEST_CASE("slurm's states: every word", "[slurm]") {
  for (const auto& [words, right] : kRows)
    for (const auto& word : split(words, ' ')) {
      INFO(word);
      CHECK(in_words(slurm::read_state(word)) == right);
      CHECK(slurm::read_state(word).unknown.empty());
    }
}

TEST_CASE("slurm's states: each mark adds to each word, and takes nothing away", "[slurm]") {
  for (const auto& [words, right] : kRows)
    for (const auto& word : split(words, ' '))
      for (const char mark : std::string("*~#!%^@$-+")) {
        if (std::isupper(static_cast<unsigned char>(word[0])) != 0) continue;
        const State bare = slurm::read_state(word), marked = slurm::read_state(word + mark);
        INFO(word + mark);
        CHECK(marked.unknown.empty());
        CHECK(marked.draining == bare.draining);
        CHECK(marked.lacking == bare.lacking);
        CHECK(marked.down == bare.down);
        CHECK(marked.busy == (bare.busy || mark == '+'));
        CHECK(marked.maintained == ((bare.maintained || mark == '$') && !marked.busy));
        CHECK(marked.absent == (bare.absent || std::string("*~#!%^").find(mark) != std::string::npos));
        CHECK(marked.reboots == (bare.reboots || mark == '@' || mark == '^'));
      }
}

TEST_CASE("slurm's states: what is not in the table is away, may have jobs, and is named", "[slurm]") {
  for (const char* text : {"hibernating", "idle+hibernating", "IDLE+HIBERNATING", "idle&", "", "?", "*"}) {
    INFO(text);
    const State state = slurm::read_state(text);
    CHECK_FALSE(state.unknown.empty());
    CHECK_FALSE(state.takes_jobs());
    CHECK(state.away());
    CHECK_FALSE(state.drained());
    CHECK((state.busy || state.unclear));
  }
  CHECK(slurm::read_state("idle+hibernating&").unknown == "hibernating &");
}

TEST_CASE("slurm's drains: a reason is muster's when it is muster's to the letter", "[slurm]") {
  const std::pair<const char*, Drain> reasons[] = {
      {"muster reimage", Drain::reimage},
      {"muster drain", Drain::drain},
      {"muster health: memory_uncorrected +2 (mc1)", Drain::health},
      // As Slurm leaves them after a reboot that it made.
      {"muster reimage : reboot issued", Drain::reimage},
      {"muster drain : reboot timed out", Drain::drain},
      {"muster reimage : reboot requested : reboot issued", Drain::reimage},
      // 24.11 adds it when a boot takes longer than SlurmdTimeout.
      {"muster reimage : Not responding", Drain::reimage},
      {"muster reimage : Low RealMemory (reported:900 < 100.00% of configured:1000)", Drain::reimage},
      {"Low RealMemory (reported:900 < 100.00% of configured:1000)", Drain::registration},
      {"Low socket*core*thread count, Low CPUs", Drain::registration},
      {"gres/gpu count reported lower than configured (1 < 2)", Drain::registration},
      {"gres/gpu:h100 count too low (1 < 8)", Drain::registration},
      {"gres/gpu GRES autodetected core affinity 0-23 on node n1 doesn't match socket boundaries.",
       Drain::registration},
      {"Could not unpack gres data", Drain::registration},
  };
  for (const auto& [reason, right] : reasons) {
    INFO(reason);
    CHECK(slurm::drain_of(reason) == right);
    CHECK(slurm::is_decision(kDrained, reason) == (right == Drain::drain || right == Drain::health));
    CHECK_FALSE(slurm::is_decision(kDown, reason));
  }
  for (const char* reason :
       {"", "none", "muster", "mustering out: replace this old box", "muster reimages",
        "muster reimage, ask Ann", "muster reimage : ask Ann", "muster drains", "muster health",
        "muster healthy", "muster health:x", "Muster drain", " muster drain", "not for muster reimage",
        "bad fan", "weekly : reboot issued", "Lower the blinds", "Not responding"}) {
    INFO(reason);
    CHECK(slurm::drain_of(reason) == Drain::person);
    CHECK(slurm::is_decision(kDrained, reason));
  }
  for (const char* own_words : {"gres/gpu 3 is dead, RMA 77", "gres/gpu", "gres/gpu counts wrongly"}) {
    INFO(own_words);
    CHECK(slurm::drain_of(own_words) == Drain::person);
  }
}

TEST_CASE("slurm's states: who has set a node down", "[slurm]") {
  for (const char* reason : {"", "bad fan", "RMA 123 : ask Ann", "Not responding to Ann", "reboot loop"}) {
    INFO(reason);
    for (const char* down : {"down", "down*"}) CHECK(slurm::is_decision(slurm::read_state(down), reason));
    for (const char* other : {"idle", "idle*", "powered_down", "unknown", "reboot^"})
      CHECK_FALSE(slurm::is_decision(slurm::read_state(other), reason));
  }
  // By slurmctld, which leaves a reason in front that outlasted its drain.
  for (const char* reason : {"Not responding", "Node unexpectedly rebooted", "bad fan : Not responding",
                             "weekly : reboot issued : reboot timed out", "ResumeTimeout reached"}) {
    INFO(reason);
    CHECK_FALSE(slurm::is_decision(kDown, reason));
  }
}

TEST_CASE("slurm's releases: the archives' versions are known, with the cgroups that each reads", "[slurm]") {
  const std::pair<const char*, bool> unified[] = {{"21.08.5-2ubuntu1", false},
                                                  {"slurm-wlm 21.08.5", false},
                                                  {"22.05.8-4+deb12u3", true},
                                                  {"23.11.4-1.2ubuntu5", true},
                                                  {"24.11.5-4", true}};
  for (const auto& [version, reads] : unified) {
    INFO(version);
    const auto release = slurm::release_of(version);
    REQUIRE(release);
    CHECK(slurm::reads_unified_cgroups(*release) == reads);
  }
  // A node that goes from one of Ubuntu's releases to the next keeps its queue.
  CHECK(slurm::unread(*slurm::release_of("21.08.5"), *slurm::release_of("23.11.4")) != "");
  CHECK(slurm::unread(*slurm::release_of("22.05.8"), *slurm::release_of("23.11.4")) == "");
}
