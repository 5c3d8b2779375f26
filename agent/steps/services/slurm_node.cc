// slurm_node: drains a node, resumes it, or waits until a re-imaged node is registered as slurm.conf has it.
//
// A drain belongs to those who began it. One by a person or by the health check is left, with its reason, and
// fails nothing. A node that a person has set down is drained with their reason, so that its boot does not
// end what they decided, and is left from then on. With `only_reason` a drain of such a node ends at once,
// with Code::denied (no other error has it): its caller must leave the node to them. Drains that a run of
// muster left, and what slurmctld does by itself, are no decision and are taken over.
#include <fmt/format.h>

#include <algorithm>

#include "agent/core/parameters.h"
#include "agent/steps/services/slurm_query.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

enum class Goal { drain, registered, resume };

struct WantedNode {
  std::string node, state, reason = slurm::kDrainReason, only_reason;
  Texts measure;
  int64_t deadline_seconds = 60;
  Goal goal = Goal::drain;
};
MUSTER_PARAMETERS(
    WantedNode, required(node, "node name"),
    required(state,
             "drain: no new jobs, and none left | registered: drained, and registered since its boot as "
             "slurm.conf has it | resume: takes jobs"),
    optional(reason, "drain reason, shown by `sinfo -R`"),
    optional(only_reason,
             "resume: only a drain with this reason is ended, and with `muster` all but a person's. drain: "
             "where others keep the node out for another reason (a person's or the health check's drain, "
             "`state=down`, a reservation for maintenance), it is no drain, but an error"),
    optional(measure,
             "program that must succeed before a node that the health check drained is resumed; without it "
             "such a node is left"),
    optional(deadline_seconds, "how long to wait for slurmctld, for jobs to end, for the node to register"))

constexpr int64_t kVerifySeconds = 60;
constexpr int kRefusals = 3;  // of one change
// Looks: a slurmd that was just started again registers within a second or two. Until then slurmctld shows
// what the one before it registered.
constexpr int kTooLittle = 3;
constexpr DurationMs kMeasure = 4 * kMinute;
constexpr const char* kAllOfMuster = "muster";

Status complete_node(const StepContext&, WantedNode& want) {
  if (want.state == "drain")
    want.goal = Goal::drain;
  else if (want.state == "registered")
    want.goal = Goal::registered;
  else if (want.state == "resume")
    want.goal = Goal::resume;
  else
    return fail(Code::invalid,
                "slurm_node: 'state' must be drain, registered or resume, not '" + want.state + "'");
  return Ok{};
}

// Whether `only_reason` admits the node's drain.
bool is_meant(const SlurmNode& now, const WantedNode& want) {
  if (want.only_reason == kAllOfMuster) return now.drain() != slurm::Drain::person;
  return want.only_reason.empty() || slurm::is_reason(now.reason, want.only_reason);
}

// With `only_reason`, a node that others keep out is theirs.
bool is_of_others(const SlurmNode& now, const WantedNode& want) {
  if (want.only_reason.empty()) return false;
  return now.state.maintained || (is_left(now) && !is_meant(now, want));
}

bool is_ours(const SlurmNode& now, const WantedNode& want) {
  return now.state.draining && slurm::is_reason(now.reason, want.reason);
}

std::string left_as_it_is(const SlurmNode& now) { return "left as it is: " + in_words(now); }

// `state=down` ends when the node registers, and so with a boot: it is no drain.
bool is_out(const SlurmNode& now, const WantedNode& want) {
  return now.state.draining && (is_ours(now, want) || is_left(now));
}

// A job may have begun between two looks at the node; so its jobs are looked at last.
Result<CheckResult> check_drained(StepContext& context, const WantedNode& want, const SlurmNode& now) {
  const std::string note = !is_ours(now, want) && is_left(now) ? left_as_it_is(now) : "";
  if (!is_out(now, want) || now.state.busy) return CheckResult{Holds::no, in_words(now), note};
  // The drain may end with that restart (`scontrol reboot nextstate=resume`).
  if (now.state.reboots) return CheckResult{Holds::no, in_words(now) + ", and restarted by Slurm", note};
  TRY(const std::string jobs, jobs_on(context, want.node));
  if (!jobs.empty()) return CheckResult{Holds::no, in_words(now) + ", with jobs " + jobs, note};
  return CheckResult{Holds::yes, "", note};
}

// slurmctld keeps a node's last registration while it is away: only one since its boot counts. A clock that
// was corrected after slurmd started may put that start a little before the boot.
Result<bool> has_registered(StepContext& context, const WantedNode& want) {
  constexpr int64_t kCorrected = 60;
  TRY(const std::string stat, context.files.read("/proc/stat"));
  const size_t at = stat.find("\nbtime ");
  if (at == std::string::npos) return fail(Code::failed, "/proc/stat has no time of the boot");
  const int64_t boot = std::strtoll(stat.c_str() + at + 7, nullptr, 10);
  TRY(const int64_t started, registered_start(context, want.node));
  return started >= boot - kCorrected;
}

Result<CheckResult> check_registered(StepContext& context, const WantedNode& want, const SlurmNode& now) {
  if (now.state.absent) return differs(in_words(now));
  TRY(const bool registered, has_registered(context, want));
  if (!registered) return differs(want.node + " has not registered with slurmctld since its boot");
  // Only another start of its slurmd would register anything else.
  if (now.state.lacking) return fail(Code::conflict, in_words(now));
  return check_drained(context, want, now);
}

// Whether this step ends its drain. The health check's: only after a measurement. slurmctld refuses to resume
// a node that lacks something.
bool may_resume(const SlurmNode& now, const WantedNode& want) {
  if (!now.state.draining || now.state.lacking) return false;
  if (now.drain() == slurm::Drain::health) return !want.measure.empty();
  return is_meant(now, want);
}

// Returns what the measurement found; "" if it passed, or none is needed.
std::string found_on(StepContext& context, const WantedNode& want, const SlurmNode& now) {
  if (now.drain() != slurm::Drain::health) return "";
  if (now.state.busy) return "not measured: it has jobs";
  Command command;
  command.argv = want.measure;
  command.deadline = kMeasure;
  say(context, "measuring " + want.node + ", which is drained: " + now.reason);
  const auto out = run_ok(context.process, command);
  return out.ok() ? "" : out.error().message;
}

Result<CheckResult> check_resumed(StepContext& context, const WantedNode& want, const SlurmNode& now) {
  if (now.state.takes_jobs()) return holds();
  if (now.state.lacking) return differs(in_words(now));
  if (may_resume(now, want)) {
    const std::string found = found_on(context, want, now);
    if (found.empty()) return differs(in_words(now));
    return CheckResult{Holds::yes, "", fmt::format("{} ({})", left_as_it_is(now), found)};
  }
  // A reservation for maintenance is a person's decision as well.
  if (now.state.draining || is_left(now) || (now.state.maintained && !now.state.absent))
    return CheckResult{Holds::yes, "", left_as_it_is(now)};
  return differs(in_words(now));
}

Result<CheckResult> judge(StepContext& context, const WantedNode& want, const SlurmNode& now) {
  switch (want.goal) {
    case Goal::drain:
      if (is_of_others(now, want)) return fail(Code::denied, left_as_it_is(now));
      return check_drained(context, want, now);
    case Goal::registered:
      return check_registered(context, want, now);
    case Goal::resume:
      return check_resumed(context, want, now);
  }
  return fail(Code::invalid, "slurm_node: unknown state");
}

// What no wait changes: there is no such node, slurmctld refuses, others decide about the node, it registered
// with too little.
bool is_for_good(Code code) {
  return code == Code::not_found || code == Code::invalid || code == Code::denied || code == Code::conflict;
}

// Looks once and quickly: also the last look before a node is rebooted. While slurmctld does not answer, or
// the node has registered with too little, the state does not hold.
Result<CheckResult> check_node(StepContext& context, const WantedNode& want) {
  const auto judged = [&]() -> Result<CheckResult> {
    TRY(const SlurmNode now, slurm_node(context, want.node));
    return judge(context, want, now);
  }();
  if (judged.ok() || judged.error().code == Code::not_found || judged.error().code == Code::denied)
    return judged;
  return differs(judged.error().message);
}

// What brings a node that does not hold closer to it, as `scontrol update state=`; "": only time can.
std::string next_state(const WantedNode& want, const SlurmNode& now) {
  if (want.goal == Goal::resume) return may_resume(now, want) ? "resume" : "";
  const bool restarts = now.state.reboots && now.state.absent;
  // Its reason says what it lacks.
  const bool lacks = want.goal == Goal::registered && now.state.lacking;
  return is_out(now, want) || restarts || lacks ? "" : "drain";
}

// The drain of a node that a person has set down is theirs, also where they gave no reason: scontrol requires
// one for a drain.
std::string drain_reason(const WantedNode& want, const SlurmNode& now) {
  if (!is_left(now)) return want.reason;
  return now.reason.empty() ? "set down" : now.reason;
}

// Changes a node that does not hold; returns false if only time can.
using Change = std::function<Result<bool>(const SlurmNode& now)>;

// One look and change, and a second look if it changed something. Returns what is different.
Result<std::string> take_turn(StepContext& context, const WantedNode& want, const Change& change) {
  std::string diff;
  for (int look = 0; look < 2; ++look) {
    TRY(const SlurmNode now, slurm_node(context, want.node));
    TRY(const CheckResult judged, judge(context, want, now));
    diff = judged.holds == Holds::yes ? "" : judged.diff;
    if (diff.empty() || look > 0) break;
    TRY(const bool changed, change(now));
    if (!changed) break;
  }
  return diff;
}

// Takes turns until the state holds or the deadline passes, also while slurmctld does not answer.
Status wait_for(StepContext& context, const WantedNode& want, int64_t seconds, const Change& change) {
  Status given_up = Ok{};
  std::string reported;
  int too_little = 0;
  TRY(const CheckResult end, wait_until(context, seconds, [&]() -> Result<std::string> {
        auto diff = take_turn(context, want, change);
        const bool may_change =
            !diff.ok() && diff.error().code == Code::conflict && ++too_little < kTooLittle;
        if (!diff.ok() && is_for_good(diff.error().code) && !may_change) {
          given_up = diff.error();
          return std::string();
        }
        const std::string why = diff.ok() ? *diff : diff.error().message;
        if (!why.empty() && why != reported) say(context, "waiting: " + why);
        reported = why;
        return diff;
      }));
  TRY_(given_up);
  return end.holds == Holds::yes ? Status(Ok{}) : Status(fail(Code::timeout, end.diff));
}

// slurmctld resumes no node before it has registered, and it may restart between a look and a change; but a
// drain that it refuses each time it will refuse for the hours until the deadline.
Status apply_node(StepContext& context, const WantedNode& want) {
  int refusals = 0;
  return wait_for(context, want, want.deadline_seconds, [&](const SlurmNode& now) -> Result<bool> {
    const std::string state = next_state(want, now);
    if (state.empty()) return false;
    std::vector<std::string> argv = {"scontrol", "update", "nodename=" + want.node, "state=" + state};
    if (state == "drain") argv.push_back("reason=" + drain_reason(want, now));
    const auto changed = run_tool(context, argv);
    if (changed.ok()) return true;
    const bool for_good = state == "drain" && ++refusals == kRefusals;
    return for_good ? fail(Code::invalid, changed.error().message) : changed.error();
  });
}

// slurmctld may be restarting right after the work is done.
Status verify_node(StepContext& context, const WantedNode& want) {
  return wait_for(context, want, std::min(kVerifySeconds, want.deadline_seconds),
                  [](const SlurmNode&) -> Result<bool> { return false; });
}

}  // namespace

StepModule slurm_node_module() {
  return step_module<WantedNode>({
      .name = "slurm_node",
      .help = "Drains a node in Slurm and waits until its jobs have ended, resumes it, or waits until a "
              "drained node is registered as slurm.conf has it. A drain by a person or by the health check "
              "is left, with a remark; a node that a person has set down is drained with their reason. "
              "Retries until the deadline while slurmctld does not answer.",
      .check = check_node,
      .apply = apply_node,
      .verify = verify_node,
      .complete = complete_node,
  });
}

}  // namespace muster::steps
