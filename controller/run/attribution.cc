// Decides which node is at fault: NodeTurn's functions for steps that involve other nodes (probe_verdict.h).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_at.h"
#include "base/utf8.h"
#include "controller/run/narrow.h"
#include "controller/run/node_turn.h"

namespace muster {

namespace {

std::set<std::string> bad_steps(const Json& result) {
  std::set<std::string> bad;
  for (const Json& step : result["steps"])
    if (const std::string status = text_at(step, "status"),
        outcome = text_at(step.value("result", Json()), "outcome");
        status == "failed" || status == "incomplete" || outcome == "failed" || outcome == "corrupt")
      bad.insert(text_at(step, "step"));
  return bad;
}

}  // namespace

// Steps that involve other nodes are judged once it is known whether those nodes were reachable.
void NodeTurn::fail_attempt(const Error& given, Json result) {
  const Error error{given.code, short_reason(given.message)};
  FailedProbe probe = failed_probe(result);
  if (!may_pass(error.code) || probe.others.empty()) return end_failed(error, std::move(result), {});
  withdraw();
  ++s.epoch;  // a pending reading of its power no longer matters
  a.weighing = {error, std::make_shared<const Json>(std::move(result)), std::move(probe)};
  weigh();
}

// Nodes that left before the attempt began are left out.
FailedProbe NodeTurn::failed_probe(const Json& result) const {
  FailedProbe probe;
  probe.started = s.latest.started;
  probe.failed = w.now;
  probe.watched = w.began;
  const Json params = s.action().params.without_shared();
  if (!params.is_object() || !params.contains("steps") || !result.is_object() || !result.contains("steps"))
    return probe;
  const std::set<std::string> bad = bad_steps(result);
  const RingsOfOrder rings = w.rings.of(s.action().params);
  const auto declared = neighbours_in(params, rings);
  const auto about = involved(params, rings, s.name, [&](const NodeName& name) {
    return s.verdicts.without.count(name) > 0 ||
           (w.others.gone(name) && !w.others.gone_since(name, s.latest.started)) ||
           (declared.count(name) && w.others.never_seen(name));
  });
  std::set<NodeName> names;
  for (const Json& step : params["steps"]) {
    if (!step.value("mandatory", true) || !bad.count(step.value("id", ""))) continue;
    const auto found = about.find(step.value("id", ""));
    if (found != about.end()) {
      names.insert(found->second.names.begin(), found->second.names.end());
      if (s.verdicts.without.empty() && !found->second.after_next.empty()) probe.next = found->second.next;
    }
    if (params.value("stop_on_failure", true)) break;  // later steps did not run
  }
  for (const auto& name : names)
    if (w.others.known(name)) probe.others.push_back({name, false, {}, {}});
  if (names.size() != 1) probe.next = {};
  return probe;
}

// While all agents are silent no node is held responsible: the controller itself may be cut off.
void NodeTurn::weigh() {
  FailedProbe& probe = a.weighing->probe;
  const Error error = a.weighing->error;
  const DurationMs given_back = a.alone.given_back;
  if (const SteadyMs since = alone(); since) return wait_alone(since, AfterPause::weigh);
  if (a.alone.given_back > given_back) probe.listens = w.now;
  probe.now = w.now;
  probe.tries_left = tries_left();
  for (auto& other : probe.others) {
    const KnownAgent seen = w.others.agent_of(other.name);
    other.gone = w.others.gone(other.name);
    other.contact = seen.contact;  // not `silent_since`, which may be moved forward
    other.returned = seen.returned;
    const auto excuses = s.verdicts.excused.find(other.name);
    other.excuses = excuses == s.verdicts.excused.end() ? 0 : excuses->second;
  }
  const ProbeVerdict verdict = judge_probe(probe, w.timing);
  switch (verdict.what) {
    case ProbeVerdict::What::wait:
      return pause(std::min<DurationMs>(2 * kSecond, verdict.until - probe.now),
                   {"checking whether " + verdict.node + " is reachable", "a message from " + verdict.node,
                    error.message, "retry, or quarantine of " + verdict.node, probe.failed, verdict.until},
                   AfterPause::weigh);
    case ProbeVerdict::What::quarantine:
      add(effect::Quarantine{verdict.node, fmt::format("{} while {} ran a step with this node: {}",
                                                       verdict.reason, s.name, error.message)});
      add(effect::Absent{verdict.node});
      s.stage = Stage::pausing;  // until the faulty node is quarantined
      s.next = AfterPause::weigh;
      return add(effect::GoOn{});
    case ProbeVerdict::What::repeat:
      s.verdicts.without[verdict.node] = error.message;
      [[fallthrough]];
    case ProbeVerdict::What::excuse:
    case ProbeVerdict::What::stands:
      return end_failed(error, *a.weighing->result, verdict);
  }
}

// Starts the next order of the same check, or ends the check with the results of all its orders; returns
// false if there is no further order. Each order is an attempt in the journal that does not count towards the
// limit of attempts, so after a crash the results are read from there, and the same order comes next.
bool NodeTurn::follow_up(const Json& result) {
  if (!w.hooks.follow_up || s.action().kind != ActionKind::check) return false;
  s.verdicts.results.push_back(result);
  auto next = w.hooks.follow_up(s.action(), s.verdicts.results);
  if (!next && s.verdicts.results.size() == 1) return s.verdicts.results.clear(), false;
  s.verdicts.without.clear();  // nodes that were left out before are examined as well
  if (!next || next->order.is_null()) {
    succeed(next ? std::move(next->result) : s.verdicts.results.front());
    return true;
  }
  ++s.verdicts.excused[""];  // no node is at fault
  const std::string why = next->why.empty()
                              ? fmt::format("isolating the faulty node, round {}", s.verdicts.results.size())
                              : next->why;
  end_attempt();
  s.verdicts.follow = std::move(next->order);
  transition_then(after_row::Begin{}, ActionState::failed,
                  {{"code", "failed"},
                   {"message", why},
                   {"result", result},
                   {"retry", true},
                   {"excused", why},
                   {"follow_up", true}});
  return true;
}

}  // namespace muster
