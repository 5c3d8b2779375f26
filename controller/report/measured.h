// Reads kernels' results, which are untrusted. Internal to controller/report. Thread safety: stateless.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/locate/links.h"
#include "controller/report/verdict.h"

namespace muster {

// The status of a step that needs rights that its agent lacks (wire::Step::needs).
inline constexpr const char* kNotLookedAt = "not_looked_at";

// Returns a field of an object; null if it is missing or `object` is not an object.
const Json& field(const Json& object, const char* key);
std::string text_of(const Json& json);
// Returns the value of a metric if it is a finite number.
std::optional<double> metric_value(const Json& result, const std::string& metric);
// Returns why the metrics of this step are not what they are named for: the arrays of a memory measurement
// fit the cache. "" if they are, and in a lab, where no speed is.
std::string not_what_it_is_named_for(const MeasuredStep& step);
// Returns the value of a metric that may be judged and compared.
std::optional<double> measured_value(const MeasuredStep& step, const std::string& metric);
// Splits steps that measured several things ("parts") into one step per part; without parts: not applicable.
std::vector<MeasuredStep> expand(const std::vector<MeasuredStep>& steps);
// Measured between two nodes (by TCP, or by RDMA on one rail): either end may be at fault.
bool is_link(const MeasuredStep& step);
// The key of the links that a link is compared with: same check, same rail (each rail is its own network).
std::string link_group(const MeasuredStep& step);
// The key of the links that a link's rate is compared with: those of its link_group() and MeasuredStep::kind.
std::string path_group(const MeasuredStep& step);
// The subject of a link's checks: the partner, and the rail if there are several. Part of the history's key.
std::string subject_of(const MeasuredStep& step);
// True if this metric of a link is the rate at which it sends or receives: send_mbps, send_gbps ...
bool is_sending(const std::string& metric);
bool is_receiving(const std::string& metric);
std::optional<double> rate_of(const MeasuredStep& step, bool sending);
// The node whose end is known to have prevented the measurement of the link; else "".
std::string end_at_fault(const MeasuredStep& step);
// Not measured for a reason that says nothing about the link: other work used it, or the partner was lost.
bool is_inconclusive(const MeasuredStep& step);
// Not measured, because such parts cannot be (detail.not_looked_at): no evidence for or against anything.
bool is_unmeasurable(const MeasuredStep& step);
// True if all nodes measured it together, so that the node it is recorded for is not necessarily at fault.
bool is_collective(const MeasuredStep& step);
// True if all other nodes of a collective left the run before it began. It then proves nothing about what is
// between nodes, and decides nothing, unless this node's own data was wrong.
bool ran_alone(const MeasuredStep& step);
// Compares the links within each group: what a healthy pair reaches, and which nodes are implicated. Takes
// expand()ed steps; `checks`, by node: a value that reached an explicit limit is not a failure.
std::map<std::string, locate::LinkFindings> find_links(
    const std::vector<MeasuredStep>& steps, const std::map<std::string, std::vector<Check>>& checks = {},
    std::string (*group_of)(const MeasuredStep& step) = link_group);
// Withdraws the finding that a link is slow if the node at its other end measured the same direction at the
// expected rate: a link fault would show in both measurements, a briefly busy machine shows in only one.
void confirm_links(std::map<std::string, std::vector<Check>>& checks, const std::vector<MeasuredStep>& steps);
double median_of(std::vector<double> values);
// Formats as "9.99 GFLOP/s": four significant digits, no exponent for common magnitudes.
std::string amount(double value, const std::string& unit);

// Nodes of which only a share was usable (base/facts.h, ShareFacts), inside a job or a container.
// Measurements there are compared only with those of equal shares, and limits for whole nodes do not apply.
//
// Sets MeasuredStep::share, a pointer into `facts`, of steps that one node measured by itself.
void mark_shares(std::vector<MeasuredStep>& steps, const std::map<std::string, const HardwareFacts*>& facts);

// "PowerEdge XE9680, Intel X": machines of which it is equal are alike; "": not known.
std::string machine_kind(const HardwareFacts& machine);

// Sets MeasuredStep::kind of what one node measured by itself and not for a single part: its product and
// processor, and GPUs in a test of those; of a file system also its mount and drives. Not what a fault
// changes: numbers of processors, memory.
void mark_machines(std::vector<MeasuredStep>& steps,
                   const std::map<std::string, const HardwareFacts*>& facts);

// Returns the key of comparable measurements: the same kind of part, on an equal share of a node.
std::string likeness(const MeasuredStep& step);

// True if this metric's absolute limits are for whole nodes, and the step had only a share.
bool is_for_whole_nodes(const Json& expectation, const MeasuredStep& step);
// True if the value named by `derive` cannot be derived for the share that the step had. cpu_peak can be, for
// a share of named cores: the kernel counts the cores that it may use.
bool is_underivable(const std::string& name, const MeasuredStep& step);

}  // namespace muster
