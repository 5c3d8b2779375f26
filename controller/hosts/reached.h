// Decisions about hosts that responded, before any of them is loaded. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/facts_text.h"
#include "base/result.h"
#include "controller/hosts/host_address.h"
#include "controller/hosts/host_wire.h"
#include "controller/hosts/hosts_spec.h"
#include "controller/plan/machine_parts.h"
#include "controller/report/drift.h"

namespace muster {

// The machine that each host name stood for in the last run, kept in a file next to the database, so that a
// name's history continues only with the same machine. read() and write() access the file.
class KnownMachines {
 public:
  // Reads the file in `folder`; empty if there is none. corrupt: the file does not have the expected format.
  static Result<KnownMachines> read(const std::string& folder);
  Status write() const;

  // Compares `now` with the machine that had this name. If it differs, a new history begins after
  // `newest_run`, and `now` is stored.
  MachineChange meet(const std::string& host, const MachineParts& now, int64_t newest_run);
  // Returns host -> the last run in which a different machine had its name (AddedToRun).
  std::map<std::string, int64_t> history_after() const;

 private:
  struct Known {
    MachineParts parts;
    int64_t history_after = 0;
  };
  explicit KnownMachines(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::map<std::string, Known> hosts_;
};

struct ReachedHost {
  std::string name, group;   // as listed
  std::string address = {};  // where others reach it; "" until choose_addresses() has decided
  FactsText text = {};       // its inventory
  MachineParts parts = {};
  std::string boot_id = {}, hostname = {};  // of its kernel; "": unknown
  HostAddresses addresses = {};
  Json look = Json::object();  // HostLook, agent/measuring/look_first.h
};

// Reads what a host's agent found. invalid: its inventory is not valid.
Result<ReachedHost> reached_host(const std::string& name, const HostLooked& looked);

// True if all are simulated hosts of lab/hosts.sh, according to the vendor in their firmware: only there may
// a profile be used that would accept broken servers. False if there are no hosts.
bool all_simulated(const std::vector<ReachedHost>& hosts);

// "Slurm job 4711 is running; apt is at work"; "" if no other work was found.
std::string busy_words(const Json& look);

// The NAME of each host of the list by what its kernel may call itself: NAME, and the first part of the host
// name that NAME was made from.
using ListedNames = std::map<std::string, std::string>;

// Returns host -> why it is not measured: a different listed name leads to the same machine, or its kernel
// has the name of a different host of the list, so that it would be measured under a wrong one.
std::map<std::string, std::string> mistaken_hosts(const std::vector<ReachedHost>& hosts,
                                                  const ListedNames& names);

// Returns a note about hosts whose kernel has another name than the list, one that the list does not have; ""
// if there are none.
std::string note_of_names(const std::vector<ReachedHost>& hosts, const ListedNames& names);

// Returns the hosts for the generated spec; the result refers to `hosts`.
std::vector<AcceptHost> accept_hosts(const std::vector<ReachedHost>& hosts);

// Returns how the inventory of each host differs from the others in its group.
Drift drift_of(const std::vector<ReachedHost>& hosts);

// Returns notes for operators: hosts of which only a share is measured, checks that some hosts prevented,
// and other work on a host that does not make it busy.
std::vector<std::string> look_notes(const std::vector<ReachedHost>& hosts);

}  // namespace muster
