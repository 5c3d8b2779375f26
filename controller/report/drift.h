// Drift: where hosts that should be alike are not. For each property (kernel, driver, firmware of a model, a
// BIOS setting, mount options) the value that most hosts of a group have, and which hosts differ.
//
// The majority does not prove what is right, so nothing here is a verdict: at a tie, without a value on more
// than half of the hosts, and with fewer than three hosts, none is called the odd one. A property that was
// not looked at on a host is neither equal nor different there. Thread: values and pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "base/result.h"

namespace muster {

// Of one host. Each host is given once. A property that is absent, or blank, was not looked at.
struct HostProperties {
  std::string host, group;                    // hosts of one group are compared; "" is a group as well
  std::map<std::string, std::string> values;  // "kernel" -> "6.1.0-25-amd64"
};

// What an inventory shows of a host's software and settings; counts of parts and trained links are judged
// elsewhere (controller/report/verdict.h) and are not among them. Nothing of what the inventory lacks.
std::map<std::string, std::string> drift_properties(const HardwareFacts& facts);

// Of several parts of one host as one value, whatever their order: "1.2.0", or "1.2.0, 1.2.1" where they
// differ. Blank ones are left out.
std::string of_all_parts(std::vector<std::string> values);

enum class Agreement {
  equal,     // on all that were looked at, three at least
  outliers,  // more than half have one value, the others differ
  tie,       // several values are the most frequent
  split,     // one is the most frequent, on no more than half
  few,       // fewer than three were looked at
  unseen,    // none was
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

  // The value of the majority; null where there is none.
  const DriftValue* majority() const;
};
struct DriftGroup {
  std::string name;
  std::vector<std::string> hosts;         // by name
  std::vector<DriftProperty> properties;  // by name; every one that any host of any group has
};
using Drift = std::vector<DriftGroup>;  // by name

Drift find_drift(const std::vector<HostProperties>& hosts);

// One node of a run, to be compared with those of its role and product.
HostProperties drift_host(const std::string& node, const std::string& role, const HardwareFacts& facts);
// Without the groups that have no majority, because they have fewer than three hosts.
Drift drift_of_run(const std::vector<HostProperties>& hosts);

// {"groups": [{"group", "hosts", "properties": [{"name", "agreement", "majority"?, "values": [{"value",
// "count", "hosts"}], "outliers": [HOST], "not_looked_at": [HOST]}]}]}
// The first value's "hosts" are left out where it is the majority's: all that are named nowhere else.
Json to_json(const Drift& drift);
// Strict, as reports are read. Code::invalid.
Result<Drift> drift_from_json(const Json& json);
// For a terminal: a line per property that differs or was not looked at everywhere, the others counted.
std::string render_drift(const Drift& drift);

}  // namespace muster
