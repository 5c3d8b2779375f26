// What is decided about hosts that answered, before any of them is loaded. Thread: values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/facts_text.h"
#include "base/result.h"
#include "controller/hosts/host_wire.h"
#include "controller/plan/hosts_spec.h"
#include "controller/plan/machine_parts.h"
#include "controller/report/drift.h"

namespace muster {

struct ReachedHost {
  std::string name, address, group;  // as listed; address may be empty
  FactsText text;                    // its inventory
  MachineParts parts;
  Json look = Json::object();  // HostLook, agent/look_first.h
};

// invalid: its inventory is not valid.
Result<ReachedHost> reached_host(const std::string& name, const HostLooked& looked);

// Whether all are hosts of lab/hosts.sh, by the vendor that their firmware names: only on those may a profile
// be used that would accept broken servers. False if there are no hosts.
bool all_simulated(const std::vector<ReachedHost>& hosts);

// "Slurm job 4711 is running; apt is at work"; "" where no work of others was seen.
std::string busy_words(const Json& look);

// Host -> why it is not measured: another listed name leads to the same machine, or the address by which
// other hosts reach it is missing or also another host's.
std::map<std::string, std::string> unfit_hosts(const std::vector<ReachedHost>& hosts);

// For the generated spec. They refer to `hosts`.
std::vector<AcceptHost> accept_hosts(const std::vector<ReachedHost>& hosts);

// How the inventory of each differs from the others of its group.
Drift drift_of(const std::vector<ReachedHost>& hosts);

// For people: hosts of which only a share is measured, and what could not be checked on which hosts.
std::vector<std::string> look_notes(const std::vector<ReachedHost>& hosts);

}  // namespace muster
