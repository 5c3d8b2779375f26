// rdma_ports: tests that the required RDMA ports are active, and that their error counters increase no faster
// than on a good link. Changes nothing.
//
// Required are the declared ports or, without a declaration, those with a link: ports for management or
// storage without a cable are irrelevant to the fabric. Only increases during the test count. Earlier values
// are ignored, because a link goes down once while the machine boots, and fast links have symbol errors that
// error correction repairs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "agent/core/parameters.h"
#include "agent/steps/network/port_choice.h"
#include "agent/steps/step_modules.h"
#include "base/split.h"
#include "host/port_counters.h"
#include "host/rdma_devices.h"

namespace muster::steps {
namespace {

using Clock = std::chrono::steady_clock;

struct WantedRdmaPorts {
  Texts ports;
  bool rails = false;
  int64_t deadline_seconds = 60;
  std::optional<int64_t> watch_seconds;
  int64_t symbol_errors_per_hour = 120;
};
MUSTER_PARAMETERS(
    WantedRdmaPorts,
    optional(ports, "ports that must be active, such as mlx5_0 or mlx4_0/2; default: ports with a link"),
    optional(rails, "test all ports of the declared rails (see the step `networks`)"),
    optional(deadline_seconds, "how long to wait for a port that is not active yet"),
    optional(watch_seconds, "how long to watch the error counters; default: not at all"),
    optional(symbol_errors_per_hour, "number of symbol errors that a good link may have"))

bool is_linked(const RdmaPart& port) { return has_rdma_link(port.state, port.physical); }
std::string said(const RdmaPart& port) {
  return fmt::format("{} is '{}'{}", port.label(), port.state,
                     port.physical.empty() ? "" : ", link '" + port.physical + "'");
}

// True if `declared` names this port. The name of a device stands for all of its ports.
bool is_meant(const std::string& declared, const RdmaPart& port) {
  return declared == port.device || declared == fmt::format("{}/{}", port.device, port.port);
}

// Any port can be declared; by default, those that can be rails.
std::vector<RdmaPart> wanted_rdma_ports(const std::vector<RdmaPart>& ports,
                                        const std::vector<std::string>& declared) {
  std::vector<RdmaPart> out;
  for (const auto& port : ports)
    if (declared.empty() ? port.why == Why::real && is_linked(port)
                         : std::any_of(declared.begin(), declared.end(),
                                       [&](const auto& name) { return is_meant(name, port); }))
      out.push_back(port);
  return out;
}

// "" if all required ports are active.
std::string lacking(const std::vector<RdmaPart>& ports, const std::vector<std::string>& declared) {
  const bool any = std::any_of(ports.begin(), ports.end(), [&](const RdmaPart& port) {
    return !declared.empty() || port.why == Why::real;
  });
  if (!any) return "no RDMA device";
  Diff diff;
  for (const auto& name : declared)
    if (std::none_of(ports.begin(), ports.end(), [&](const RdmaPart& port) { return is_meant(name, port); }))
      diff.add(name + " is missing");
  const auto must = wanted_rdma_ports(ports, declared);
  for (const auto& port : must)
    if (!port.active()) diff.add(said(port));
  if (declared.empty() && must.empty())
    for (const auto& port : ports)
      if (port.why == Why::real) diff.add("no port has a link: " + said(port));
  return diff.result().diff;
}

// What is watched: damaged symbols, and links that went down.
struct Watched {
  uint64_t symbol_errors = 0, link_downs = 0;
  std::string at_least = {};  // why these may be too low; empty: they are exact
};
using Readings = std::map<std::string, uint64_t>;

Readings counters_of(const Files& files, const RdmaPart& port) {
  return read_port_counters(files, port.folder, rdma_port_counters());
}
Watched rises(const Readings& before, const Readings& now) {
  Watched out;
  for (const PortCounter& row : rdma_port_counters()) {
    const bool symbols = row.metric == "rdma_symbol_errors";
    const auto count = now.find(std::string(row.file));
    if ((!symbols && row.metric != "rdma_link_downs") || count == now.end()) continue;
    const auto earlier = before.find(count->first);
    const Rise rise =
        rise_of(row, earlier == before.end() ? std::nullopt : std::optional(earlier->second), count->second);
    (symbols ? out.symbol_errors : out.link_downs) += rise.by;
    if (out.at_least.empty()) out.at_least = rise.at_least;
  }
  return out;
}
bool is_watched(const Readings& readings) {
  return std::any_of(readings.begin(), readings.end(), [](const auto& one) {
    const PortCounter* row = find_rdma_counter(one.first);
    return row && (row->metric == "rdma_symbol_errors" || row->metric == "rdma_link_downs");
  });
}

// A link with the allowed error rate exceeds this count in this time with a probability of about 1e-6.
double most_by_chance(double per_hour, double seconds) {
  const double mean = per_hour * seconds / 3600;
  return mean + 5 * std::sqrt(mean) + 1;
}

Result<CheckResult> watch(StepContext& context, const std::vector<std::string>& declared, int64_t seconds,
                          int64_t errors_per_hour) {
  const auto ports = wanted_rdma_ports(rdma_devices(context.files), declared);
  std::map<std::string, Readings> before;
  bool counted = false;
  for (const auto& port : ports) {
    before[port.label()] = counters_of(context.files, port);
    counted = counted || is_watched(before[port.label()]);
  }
  if (!counted) return CheckResult{Holds::not_applicable, "no active port has error counters"};
  say(context, fmt::format("watching the error counters of {} RDMA port{} for {} s", ports.size(),
                           ports.size() == 1 ? "" : "s", seconds));
  const auto begun = Clock::now(), until = begun + std::chrono::seconds(seconds);
  while (Clock::now() < until) {
    if (is_cancelled(context)) return fail(Code::cancelled, "cancelled");
    std::this_thread::sleep_for(std::min<Clock::duration>(until - Clock::now(), std::chrono::seconds(1)));
  }
  const double took = std::chrono::duration<double>(Clock::now() - begun).count();
  const double most = most_by_chance(static_cast<double>(errors_per_hour), took);
  Diff diff;
  if (const auto gone = lacking(rdma_devices(context.files), declared); !gone.empty()) diff.add(gone);
  std::string unknown;
  for (const auto& port : ports) {
    const std::string label = port.label();
    const Watched by = rises(before[label], counters_of(context.files, port));
    if (static_cast<double>(by.symbol_errors) > most)
      diff.add(fmt::format("{} has {} new symbol errors in {:.0f} s", label, by.symbol_errors, took));
    if (by.link_downs > 0)
      diff.add(fmt::format("the link of {} went down {} time{} in {:.0f} s", label, by.link_downs,
                           by.link_downs == 1 ? "" : "s", took));
    if (unknown.empty() && !by.at_least.empty()) unknown = fmt::format("{}: {}", label, by.at_least);
  }
  const CheckResult found = diff.result();
  // What is not counted is neither good nor bad.
  if (found.holds == Holds::yes && !unknown.empty()) return CheckResult{Holds::not_applicable, unknown};
  return found;
}

Result<std::vector<std::string>> ports_of_rails(const StepContext& context) {
  TRY(const auto record, record_with_rails(context.files));
  std::vector<std::string> out;
  for (const auto& port : record.rails()) {
    const RdmaName rdma = rdma_of_interface(context.files, port.interface);
    if (!rdma.found())
      return fail(Code::failed, fmt::format("{} on {}: {} ({}) has no RDMA device", port.title(),
                                            context.node, port.interface, port.pci));
    out.push_back(rdma.label());
  }
  return out;
}

Result<CheckResult> check_rdma_ports(StepContext& context, const WantedRdmaPorts& want) {
  std::vector<std::string> declared = want.ports;
  if (want.rails) {
    TRY(declared, ports_of_rails(context));
  }
  const auto until = Clock::now() + std::chrono::seconds(want.deadline_seconds);
  for (;;) {
    const std::string problem = lacking(rdma_devices(context.files), declared);
    if (problem.empty()) break;
    if (is_cancelled(context)) return fail(Code::cancelled, problem);
    if (Clock::now() >= until) return differs(problem);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const int64_t seconds = want.watch_seconds.value_or(-1);
  return seconds < 0 ? holds() : watch(context, declared, seconds, want.symbol_errors_per_hour);
}

}  // namespace

StepModule rdma_ports_module() {
  return step_module<WantedRdmaPorts>({
      .name = "rdma_ports",
      .help = "Tests that the declared RDMA ports (default: those with a link) are active and, with "
              "`watch_seconds`, that no link goes down in that time and symbol errors stay within the limit. "
              "Earlier counts are ignored. A node without an active port never passes.",
      .check = check_rdma_ports,
  });
}

}  // namespace muster::steps
