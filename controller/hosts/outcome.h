// The outcome of a session, per host and overall. Thread safety: plain value types and stateless functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "controller/report/report.h"

namespace muster {

enum class HostVerdict {
  accepted,
  degraded,
  looked_at,     // nothing is known against it, but no load ran: it is not accepted
  failed,        // measured, and something is wrong
  not_accepted,  // measured, but a required check did not run
  busy,          // other work is running on it
  refused,       // another listed name leads to the same machine, or no plan is possible
  not_reached,
  cancelled,  // the session was interrupted before its end
};
std::string_view to_string(HostVerdict verdict);

struct HostOutcome {
  std::string name;
  HostVerdict verdict = HostVerdict::not_reached;
  std::string reason = {};    // "" only if it is accepted, or nothing was to be measured
  std::string how = {};       // "root", "sudo", "user"; "" if it was not reached
  std::string why_user = {};  // what sudo printed
  std::string written = {};   // what the list has instead of `name`; "": the same
};

// Returns the outcome of a host that took part in a run. `cancelled`: the run was cancelled.
HostOutcome outcome_of(const NodeReport& node, bool cancelled);

// Returns the exit code: 0 all accepted; 5 all work and some are degraded; 3 some are not accepted, or only
// looked at; 1 one failed and none is accepted, degraded or looked at, or the session was cancelled.
int exit_of(const std::vector<HostOutcome>& hosts, bool cancelled);
// Returns the word for that exit code: "accepted", "degraded", "partial", "failed"; "looked_at" if that is
// all that was done with every host.
std::string_view verdict_word(int exit, const std::vector<HostOutcome>& hosts);
bool all_looked_at(const std::vector<HostOutcome>& hosts);

// Returns the title of a session without a report: "gaggle: 0 of 3 hosts accepted".
std::string title_of(const std::string& cluster, const std::vector<HostOutcome>& hosts);

Json to_json(const HostOutcome& host);

}  // namespace muster
