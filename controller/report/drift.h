// Drift: where hosts that should be alike differ. For each property (kernel, driver, firmware of a model, a
// BIOS setting, mount options): the value that most hosts in a group have, and which hosts differ.
//
// A majority does not prove what is right, so nothing in this file is a verdict. At a tie, without a value on
// more than half of the hosts, or with fewer than three hosts, no host is reported as an outlier. A property
// that was not read on a host counts as neither equal nor different. Thread safety: plain value types.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "base/result.h"

namespace muster {

// The properties of one host; each host is passed once. An absent or blank property was not read on the host.
struct HostProperties {
  std::string host, group;                    // hosts of one group are compared; "" is a group as well
  std::map<std::string, std::string> values;  // "kernel" -> "6.1.0-25-amd64"
};

// Returns a host's software and settings from its inventory; what the inventory lacks is left out. Counts of
// parts and trained links are not included: they are judged elsewhere (controller/report/verdict.h).
std::map<std::string, std::string> drift_properties(const HardwareFacts& facts);

// Combines the values of several parts of one host into one, regardless of their order: "1.2.0", or "1.2.0,
// 1.2.1" if they differ. Blank values are left out.
std::string of_all_parts(std::vector<std::string> values);

enum class Agreement {
  equal,     // the same on all hosts where it was read, at least three
  outliers,  // more than half of the hosts have one value, the others differ
  tie,       // several values are the most frequent
  split,     // one value is the most frequent, but on at most half of the hosts
  few,       // it was read on fewer than three hosts
  unseen,    // it was read on no host
};
std::string_view to_string(Agreement agreement);

struct DriftValue {
  std::string value;
  std::vector<std::string> hosts;  // by name
};
struct DriftProperty {
  std::string name;
  Agreement agreement = Agreement::unseen;
  std::vector<DriftValue> values;          // the most frequent first, equally frequent ones by value
  std::vector<std::string> not_looked_at;  // hosts by name

  // Returns the value of the majority; null if there is none.
  const DriftValue* majority() const;
};
struct DriftGroup {
  std::string name;
  std::vector<std::string> hosts;         // by name
  std::vector<DriftProperty> properties;  // by name; every property that any host of any group has
};
using Drift = std::vector<DriftGroup>;  // by name

Drift find_drift(const std::vector<HostProperties>& hosts);

// Returns the properties of one node of a run, grouped with the nodes of the same role and product.
HostProperties drift_host(const std::string& node, const std::string& role, const HardwareFacts& facts);
// Finds the drift of a run; groups of fewer than three hosts, which have no majority, are left out.
Drift drift_of_run(const std::vector<HostProperties>& hosts);

// {"groups": [{"group", "hosts", "properties": [{"name", "agreement", "majority"?, "values": [{"value",
// "count", "hosts"}], "outliers": [HOST], "not_looked_at": [HOST]}]}]}
// The first value's "hosts" are left out if it is the majority value.
Json to_json(const Drift& drift);
// Strict, like all readers of reports: Code::invalid for anything malformed.
Result<Drift> drift_from_json(const Json& json);
Status read_own(const Json& json, Drift& out);
// Renders for a terminal: a line per property that differs or was not read everywhere; the rest is counted.
std::string render_drift(const Drift& drift);

}  // namespace muster
