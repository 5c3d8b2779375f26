// rail_qos: settings for lossless Ethernet on the rails, through iproute2's dcb: at which priorities traffic
// is paused, not dropped (PFC), which priority a DSCP value maps to, and how bandwidth is shared (ETS).
//
// Adapters lose these settings at a restart, so a systemd unit sets them again. The check reads them from the
// driver, never from the unit. If an adapter's driver does not support DCB, the step fails and names the
// adapter: RoCE that loses packets is worse than an error. Reference: iproute2 6.1, dcb-pfc(8), dcb-app(8),
// dcb-ets(8).
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "agent/core/parameters.h"
#include "agent/steps/network/boot_unit.h"
#include "agent/steps/network/port_choice.h"

namespace muster::steps {
namespace {

constexpr int kPriorities = 8;

using Words = std::vector<std::string>;
using Values = std::map<std::string, std::string>;  // "3" -> "on"

struct Qos {
  Values pfc, dscp;               // empty: not declared
  Values classes, shares, kinds;  // ETS: priority -> class, class -> percent, class -> algorithm
};

struct WantedRailQos {
  std::vector<Json> pfc;
  std::map<std::string, Json> dscp, ets;
  Qos qos;  // what these declare
};
MUSTER_PARAMETERS(
    WantedRailQos, optional(pfc, "priorities whose traffic is paused instead of dropped, e.g. [3]"),
    optional(dscp, "DSCP -> priority"),
    optional(ets, "priority -> percent of the bandwidth; priorities that are not listed share the rest"))

// Adds ETS settings, from priority -> percent: each listed priority gets the traffic class of the same
// number; all others share class 0 and the remaining bandwidth.
void add_ets(const std::map<std::string, Json>& ets, Qos& out) {
  int rest = 100;
  for (int i = 0; i < kPriorities; ++i) {
    const std::string priority = std::to_string(i);
    const auto share = ets.find(priority);
    const bool own = share != ets.end() && share->second.is_number_integer();
    out.classes[priority] = own ? priority : "0";
    out.shares[priority] = own ? std::to_string(share->second.get<int>()) : "0";
    out.kinds[priority] = own || i == 0 ? "ets" : "strict";
    if (own) rest -= share->second.get<int>();
  }
  out.shares["0"] = std::to_string(rest);
}

Status complete_rail_qos(const StepContext&, WantedRailQos& want) {
  Qos& out = want.qos;
  for (int i = 0; i < kPriorities && !want.pfc.empty(); ++i) out.pfc[std::to_string(i)] = "off";
  for (const auto& priority : want.pfc) {
    if (!priority.is_number_integer() || priority.get<int>() < 0 || priority.get<int>() >= kPriorities)
      return fail(Code::invalid, "rail_qos: a priority must be between 0 and 7");
    out.pfc[std::to_string(priority.get<int>())] = "on";
  }
  for (const auto& [dscp, priority] : want.dscp) {
    if (!priority.is_number_integer())
      return fail(Code::invalid, "rail_qos: the values of 'dscp' must be priorities");
    out.dscp[dscp] = std::to_string(priority.get<int>());
  }
  if (!want.ets.empty()) add_ets(want.ets, out);
  if (out.pfc.empty() && out.dscp.empty() && out.classes.empty())
    return fail(Code::invalid, "rail_qos: at least one of 'pfc', 'dscp' and 'ets' is required");
  return Ok{};
}

// Parses what dcb prints for a table, on one or more lines: "prio-pfc 0:off 1:on" -> {0: off, 1: on}.
Values table(const std::string& text, const std::string& name) {
  Values out;
  for (const auto& line : split_lines(text)) {
    const auto words = split(line, ' ');
    if (words.empty() || words[0] != name) continue;
    for (size_t i = 1; i < words.size(); ++i)
      if (const size_t colon = words[i].find(':'); colon != std::string::npos)
        out[words[i].substr(0, colon)] = words[i].substr(colon + 1);
  }
  return out;
}

Words with(Words words, const Values& values) {
  for (const auto& [key, value] : values) words.push_back(key + ":" + value);
  return words;
}

// Appends the values in short form, the most common one first: "all:off 3:on".
Words compact(Words words, const Values& values, const std::string& most) {
  words.push_back("all:" + most);
  for (const auto& [key, value] : values)
    if (value != most) words.push_back(key + ":" + value);
  return words;
}

std::string who_of(const StepContext& context, const PortRecord& port) {
  return fmt::format("{} on {}: {} ({})", port.title(), context.node, port.interface, port.pci);
}

Result<std::string> show(StepContext& context, const PortRecord& port, const Words& what) {
  Words argv = {"dcb", "-N"};
  argv.insert(argv.end(), what.begin(), what.end());
  TRY(const Output out, context.process.run({.argv = argv}));
  if (out.ok()) return out.out;
  std::string driver = "unknown driver";
  if (const auto link = context.files.read_link("/sys/class/net/" + port.interface + "/device/driver");
      link.ok())
    driver = "driver " + link->substr(link->rfind('/') + 1);
  if (out.err.find("not supported") != std::string::npos || out.err.find("not found") != std::string::npos)
    return fail(Code::denied,
                fmt::format("{} ({}) does not support DCB: PFC, DSCP and ETS cannot be set on it. Remove "
                            "network.rails.qos from the spec, or use adapters that support DCB",
                            who_of(context, port), driver));
  return fail(Code::failed, fmt::format("{}: dcb: {}", who_of(context, port), out.err.substr(0, 200)));
}

Result<Qos> now_of(StepContext& context, const PortRecord& port, const Qos& want) {
  Qos out;
  if (!want.pfc.empty()) {
    TRY(const std::string text, show(context, port, {"pfc", "show", "dev", port.interface, "prio-pfc"}));
    out.pfc = table(text, "prio-pfc");
  }
  if (!want.dscp.empty()) {
    TRY(const std::string text, show(context, port, {"app", "show", "dev", port.interface, "dscp-prio"}));
    out.dscp = table(text, "dscp-prio");
  }
  if (!want.classes.empty()) {
    TRY(const std::string text,
        show(context, port, {"ets", "show", "dev", port.interface, "prio-tc", "tc-tsa", "tc-bw"}));
    out.classes = table(text, "prio-tc");
    out.kinds = table(text, "tc-tsa");
    out.shares = table(text, "tc-bw");
  }
  return out;
}

// For a port that has no settings yet.
std::vector<Words> commands(const std::string& interface, const Qos& want) {
  std::vector<Words> out;
  if (!want.pfc.empty())
    out.push_back(compact({"dcb", "pfc", "set", "dev", interface, "prio-pfc"}, want.pfc, "off"));
  if (!want.dscp.empty())
    out.push_back(with({"dcb", "app", "replace", "dev", interface, "dscp-prio"}, want.dscp));
  if (!want.classes.empty()) {
    Words ets = compact({"dcb", "ets", "set", "dev", interface, "tc-tsa"}, want.kinds, "strict");
    ets.push_back("tc-bw");
    ets = compact(std::move(ets), want.shares, "0");
    ets.push_back("prio-tc");
    out.push_back(compact(std::move(ets), want.classes, "0"));
  }
  return out;
}

void port_diff(const StepContext& context, const PortRecord& port, const Qos& want, const Qos& now,
               Diff& diff) {
  const auto compare = [&](const char* what, const Values& have, const Values& should) {
    if (should.empty() || have == should) return;
    diff.add(fmt::format("{}: {} {} -> {}", who_of(context, port), what,
                         have.empty() ? "none" : join(with({}, have), " "), join(with({}, should), " ")));
  };
  compare("PFC", now.pfc, want.pfc);
  compare("DSCP", now.dscp, want.dscp);
  compare("traffic classes of the priorities", now.classes, want.classes);
  compare("algorithms of the traffic classes", now.kinds, want.kinds);
  compare("bandwidth of the traffic classes", now.shares, want.shares);
}

BootUnit boot_unit(const std::vector<PortRecord>& rails, const Qos& want) {
  BootUnit out{"muster-rail-qos.service", "Quality of service of the rails", rails, {}};
  for (const auto& port : rails)
    for (const auto& argv : commands(port.interface, want))
      out.commands.push_back("/sbin/" + join(argv, " "));
  return out;
}

Result<CheckResult> check_rail_qos(StepContext& context, const WantedRailQos& want) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no ports; the step is checked on nodes"};
  TRY(const auto record, record_with_rails(context.files));
  const auto rails = record.rails();
  Diff diff;
  for (const auto& port : rails) {
    TRY(const Qos now, now_of(context, port, want.qos));
    port_diff(context, port, want.qos, now, diff);
  }
  return check_boot_unit(context, boot_unit(rails, want.qos), diff);
}

Status set_port(StepContext& context, const PortRecord& port, const Qos& want) {
  TRY(const Qos now, now_of(context, port, want));
  Diff diff;
  port_diff(context, port, want, now, diff);
  if (diff.empty()) return Ok{};
  for (const auto& [dscp, priority] : now.dscp)
    if (!want.dscp.count(dscp))
      TRY_(run_tool(context,
                    {"dcb", "app", "del", "dev", port.interface, "dscp-prio", dscp + ":" + priority}));
  for (const auto& argv : commands(port.interface, want)) TRY_(run_tool(context, argv));
  return Ok{};
}

Status apply_rail_qos(StepContext& context, const WantedRailQos& want) {
  TRY(const auto record, record_with_rails(context.files));
  const auto rails = record.rails();
  // All rails are checked before one is changed, because lossless settings on only some of them are useless.
  for (const auto& port : rails) TRY_(now_of(context, port, want.qos));
  for (const auto& port : rails) TRY_(set_port(context, port, want.qos));
  return apply_boot_unit(context, boot_unit(rails, want.qos));
}

}  // namespace

StepModule rail_qos_module() {
  return step_module<WantedRailQos>({
      .name = "rail_qos",
      .help =
          "Sets PFC, DSCP and ETS on the rails with iproute2's dcb, now and at every boot, and reads them "
          "back from the driver. Fails if a port's driver does not support DCB.",
      .check = check_rail_qos,
      .apply = apply_rail_qos,
      .complete = complete_rail_qos,
  });
}

}  // namespace muster::steps
