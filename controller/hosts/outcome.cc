#include "controller/hosts/outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/record.h"

namespace muster {
namespace {

constexpr Words<HostVerdict, 9> kVerdicts = {{{HostVerdict::accepted, "accepted"},
                                              {HostVerdict::degraded, "degraded"},
                                              {HostVerdict::looked_at, "looked_at"},
                                              {HostVerdict::failed, "failed"},
                                              {HostVerdict::not_accepted, "not_accepted"},
                                              {HostVerdict::busy, "busy"},
                                              {HostVerdict::refused, "refused"},
                                              {HostVerdict::not_reached, "not_reached"},
                                              {HostVerdict::cancelled, "cancelled"}}};

HostVerdict verdict_of(const NodeReport& node, bool cancelled) {
  if (node.verdict == NodeVerdict::accepted) return HostVerdict::accepted;
  if (node.verdict == NodeVerdict::degraded) return HostVerdict::degraded;
  if (node.verdict == NodeVerdict::looked_at && !cancelled) return HostVerdict::looked_at;
  const bool bad = std::any_of(node.checks.begin(), node.checks.end(),
                               [](const Check& check) { return check.verdict == Verdict::fail; });
  if (cancelled && !bad) return HostVerdict::cancelled;
  // A host that restarted, died or was replaced has failed, even if none of its checks was judged.
  const bool stopped = std::any_of(node.phases.begin(), node.phases.end(),
                                   [](const PhaseRecord& phase) { return phase.outcome == "failed"; });
  return only_unrun(node) && !stopped ? HostVerdict::not_accepted : HostVerdict::failed;
}

size_t count(const std::vector<HostOutcome>& hosts, HostVerdict verdict) {
  return static_cast<size_t>(std::count_if(
      hosts.begin(), hosts.end(), [verdict](const HostOutcome& host) { return host.verdict == verdict; }));
}

}  // namespace

std::string_view to_string(HostVerdict verdict) { return word_of(kVerdicts, verdict); }

HostOutcome outcome_of(const NodeReport& node, bool cancelled) {
  HostOutcome out;
  out.name = node.name;
  out.verdict = verdict_of(node, cancelled);
  out.reason = node.reason;
  if (out.reason.empty() && out.verdict == HostVerdict::cancelled) out.reason = "interrupted";
  return out;
}

int exit_of(const std::vector<HostOutcome>& hosts, bool cancelled) {
  if (cancelled) return 1;
  const size_t accepted = count(hosts, HostVerdict::accepted), degraded = count(hosts, HostVerdict::degraded);
  if (accepted == hosts.size()) return 0;
  if (accepted + degraded == hosts.size()) return 5;
  // Beside jobs a sound host is only looked at: one that failed does not make the others' result worthless.
  const size_t sound = accepted + degraded + count(hosts, HostVerdict::looked_at);
  return sound == 0 && count(hosts, HostVerdict::failed) > 0 ? 1 : 3;
}

bool all_looked_at(const std::vector<HostOutcome>& hosts) {
  return !hosts.empty() && count(hosts, HostVerdict::looked_at) == hosts.size();
}

std::string_view verdict_word(int exit, const std::vector<HostOutcome>& hosts) {
  if (all_looked_at(hosts)) return to_string(HostVerdict::looked_at);
  return exit == 0 ? "accepted" : exit == 5 ? "degraded" : exit == 3 ? "partial" : "failed";
}

std::string title_of(const std::string& cluster, const std::vector<HostOutcome>& hosts) {
  const size_t looked = count(hosts, HostVerdict::looked_at);
  return fmt::format("{}: {} of {} host{} {}", cluster,
                     looked > 0 ? looked : count(hosts, HostVerdict::accepted), hosts.size(),
                     hosts.size() == 1 ? "" : "s", looked > 0 ? "looked at, not measured" : "accepted");
}

MUSTER_WORDS(HostVerdict, kVerdicts)
MUSTER_RECORD(HostOutcome, name, verdict, reason, sparse(how), sparse(why_user), sparse(written))

Json to_json(const HostOutcome& host) { return record_json(host); }

}  // namespace muster
