#include "controller/run/probe_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

ProbeVerdict judge_probe(const FailedProbe& p, const ExecutorTiming& t) {
  using What = ProbeVerdict::What;
  for (const auto& n : p.others)
    if (n.gone) return {What::excuse, n.name, n.name + " left the run in the meantime"};
  for (const auto& n : p.others)
    if (n.returned > p.started) {
      if (n.excuses < kMostExcuses) return {What::excuse, n.name, n.name + " was away in the meantime"};
      return {What::quarantine, n.name, fmt::format("away during {} attempts in a row", n.excuses + 1)};
    }
  for (const auto& n : p.others) {
    if (n.contact > p.failed) continue;
    // Contacts from before a restart of the controller are unknown, so silence is counted from shortly before
    // the failure at the earliest.
    const SteadyMs from = std::max({n.contact, p.failed - t.silent_after, p.listens});
    const SteadyMs until = from + t.lost_after;
    if (p.now < until) return {What::wait, n.name, "", until};
    return {What::quarantine, n.name, "silent for " + to_human(p.now - from)};
  }
  if (p.started < p.watched)
    for (const auto& n : p.others)
      if (n.excuses < kMostExcuses)
        return {What::excuse, n.name,
                "the controller was down, and " + n.name + " may have been away in the meantime"};
  if (!p.tries_left && !p.next.empty())
    return {What::repeat, p.next,
            "the step is repeated with a different node before any node is quarantined"};
  return {What::stands, "", ""};
}

}  // namespace muster
