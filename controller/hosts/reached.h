// Decisions about hosts that responded, before any of them is loaded. Thread safety: stateless functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/facts_text.h"
#include "base/result.h"
#include "controller/hosts/host_wire.h"
#include "controller/hosts/hosts_spec.h"
#include "controller/plan/machine_parts.h"
#include "controller/report/drift.h"

namespace muster {

struct ReachedHost {
  std::string name, address, group;  // as listed; address may be empty
  FactsText text;                    // its inventory
  MachineParts parts;
  Json look = Json::object();  // HostLook, agent/measuring/look_first.h
};

// Reads what a host's agent found. invalid: its inventory is not valid.
Result<ReachedHost> reached_host(const std::string& name, const HostLooked& looked);

// True if all are simulated hosts of lab/hosts.sh, according to the vendor in their firmware: only there may
// a profile be used that would accept broken servers. False if there are no hosts.
bool all_simulated(const std::vector<ReachedHost>& hosts);

// "Slurm job 4711 is running; apt is at work"; "" if no other work was found.
std::string busy_words(const Json& look);

// Returns host -> why it is not measured: a different listed name leads to the same machine, or the address
// by which other hosts reach it is missing, or is also the address of a different host.
std::map<std::string, std::string> unfit_hosts(const std::vector<ReachedHost>& hosts);

// Returns the hosts for the generated spec; the result refers to `hosts`.
std::vector<AcceptHost> accept_hosts(const std::vector<ReachedHost>& hosts);

// Returns how the inventory of each host differs from the others in its group.
Drift drift_of(const std::vector<ReachedHost>& hosts);

// Returns notes for operators: hosts of which only a share is measured, and checks that some hosts prevented.
std::vector<std::string> look_notes(const std::vector<ReachedHost>& hosts);

}  // namespace muster
