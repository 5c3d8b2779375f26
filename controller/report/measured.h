// Reading measurements: what kernels reported, field by field, without trusting any of it. Internal to
// controller/report. Thread: pure functions.
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

// The field of an object; null for anything else.
const Json& field(const Json& object, const char* key);
std::string text_of(const Json& json);
// The value of a metric, when it is a finite number.
std::optional<double> metric_value(const Json& result, const std::string& metric);
// A step that measured several things ("parts") is several steps. None at all does not apply.
std::vector<MeasuredStep> expand(const std::vector<MeasuredStep>& steps);
// Whether a result was measured between two nodes (by TCP, or by RDMA on one rail), so that either end may be
// at fault.
bool is_link(const MeasuredStep& step);
// What links are weighed against: those of one check, and of one rail. Each rail is a network of its own.
std::string link_group(const MeasuredStep& step);
// What its checks are about: the partner, and the rail where there are several. Parts of one history.
std::string subject_of(const MeasuredStep& step);
// The metric of a link that holds how fast it sends or receives: send_mbps, send_gbps ...
bool is_sending(const std::string& metric);
bool is_receiving(const std::string& metric);
std::optional<double> rate_of(const MeasuredStep& step, bool sending);
// Which of its ends keeps a link from being measured, when that was seen: the node's name; "" when it was
// not.
std::string end_at_fault(const MeasuredStep& step);
// Whether a link was not measured for a reason that says nothing about it: others were at work there, the
// partner was lost.
bool is_inconclusive(const MeasuredStep& step);
// Whether all nodes measured it together, so that the node it is written down for is not the one to blame.
bool is_collective(const MeasuredStep& step);
// Each link_group()'s link measurements, weighed against one another: what a healthy pair reaches, and who is
// suspected. Of expand()ed steps. `checks`, by node: what was held to a limit and reached it is no failure.
std::map<std::string, locate::LinkFindings> find_links(
    const std::vector<MeasuredStep>& steps, const std::map<std::string, std::vector<Check>>& checks = {});
// Takes back that a link is slow where the node at its other end measured the same direction, and it was as
// fast as expected: a busy moment of a machine is not a fault of its link, which would show both times.
void confirm_links(std::map<std::string, std::vector<Check>>& checks, const std::vector<MeasuredStep>& steps);
double median_of(std::vector<double> values);
// "9.99 GFLOP/s": four significant digits, without exponents for everyday sizes.
std::string amount(double value, const std::string& unit);

}  // namespace muster
