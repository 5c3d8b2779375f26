// The part of Rack that breaks networks: one machine's link, or a whole switch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lab/lab_network.h"
#include "lab/rack.h"
#include "sys/log.h"

namespace muster::lab {
namespace {

std::string network_of(const Break& request) {
  return request.network.empty() ? kProvisioning : request.network;
}

bool on_network(const LabNode& node, const std::string& network) {
  return network == kProvisioning || std::any_of(node.ports.begin(), node.ports.end(),
                                                 [&](auto& port) { return port.network == network; });
}

const LabPort* find_port(const LabNode& node, const std::string& network) {
  for (const auto& port : node.ports)
    if (port.network == network) return &port;
  return nullptr;
}

std::string cut_reason(const std::string& node, const std::string& fault) { return node + " " + fault; }
std::string switch_reason(const std::string& network) { return "switch " + network; }

std::vector<std::string> all_networks(const LabSpec& spec) {
  std::vector<std::string> out = {kProvisioning};
  for (const auto& network : fast_networks(spec)) out.push_back(network);
  return out;
}

}  // namespace

Result<std::string> Rack::break_network(Slot& slot, const Break& request) {
  const auto node = slot.machine->node();
  const auto network = network_of(request);
  if (!on_network(node, network))
    return fail(Code::not_found, fmt::format("{} has no port on '{}' (--network)", node.name, network));
  const auto tap = tap_name(node, network);
  const auto name = shown_name(request);
  if (request.fault == "shape") {
    if (!request.heal && request.rate.empty())
      return fail(Code::invalid, "shape needs --rate, such as 10mbit");
    TRY_(run_all(process_, {shape_command(tap, request.heal ? "" : request.rate)}));
    if (!request.heal) slot.faults[name] = request.rate;
    return std::string(request.heal ? "full speed" : "link limited to " + request.rate);
  }
  const auto reason = cut_reason(node.name, name);
  if (request.heal) {
    TRY_(end_outage(reason));
    return std::string("link up");
  }
  const auto seconds = request.seconds > 0 ? request.seconds : 60;
  TRY_(begin_outage(reason, {tap}, seconds * kSecond));
  slot.faults[name] = fmt::format("{} s", seconds);
  return fmt::format("link drops all traffic for {} s", seconds);
}

// The machine's link goes down, which its kernel counts; no other machine on that network notices.
Result<std::string> Rack::pull_cable(Slot& slot, const Break& request) {
  const auto node = slot.machine->node();
  const auto network = network_of(request);
  const auto* port = find_port(node, network);
  if (!on_network(node, network))
    return fail(Code::not_found, fmt::format("{} has no port on '{}' (--network)", node.name, network));
  if (port && !port->cabled)
    return fail(Code::conflict, fmt::format("{}'s port on {} has no cable", node.name, network));
  slot.machine->set_cable(network, request.heal);
  slot.machine->settle();
  if (request.heal) return std::string("the cable is plugged in again");
  slot.faults[shown_name(request)] = "no cable";
  return std::string("the cable is unplugged");
}

// Sends frames that are too long for any adapter; an adapter that counts errors counts them.
Result<std::string> Rack::port_errors(Slot& slot, const Break& request) {
  const auto node = slot.machine->node();
  const auto network = network_of(request);
  const auto* port = find_port(node, network);
  if (request.heal) return fail(Code::invalid, "counted errors remain until the machine restarts");
  if (!port || !port->counting)
    return fail(Code::invalid, fmt::format("{0} has no adapter that counts errors on '{1}' (--network; "
                                           "declare one: lab.nodes.{0}.counting: [ rail0 ])",
                                           node.name, network));
  if (!slot.machine->running()) return fail(Code::conflict, node.name + " is off");
  const auto count = request.count > 0 ? request.count : 1;
  const auto tap = tap_name(node, network);
  TRY_(run_all(process_, {mtu_command(tap, kGiantBytes)}));
  const auto sent = send_giants(tap, port->mac, count);
  TRY_(run_all(process_, {mtu_command(tap, kFastMtu)}));
  TRY_(sent);
  return fmt::format("{} frames that are too long were sent to port {} of {}", count, network, node.name);
}

Result<Json> Rack::break_switch(const Break& request) {
  const auto& network = request.network_switch;
  const auto known = all_networks(spec_);
  if (std::find(known.begin(), known.end(), network) == known.end())
    return fail(Code::not_found,
                fmt::format("the lab has no switch '{}' (it has {})", network, fmt::join(known, ", ")));
  if (!request.node.empty() || !request.fault.empty())
    return fail(Code::invalid, "use separate commands for a switch and for a machine");
  const auto done = [&](const std::string& words) {
    return Json{{"node", "switch " + network}, {"fault", "switch"}, {"done", words}};
  };
  if (request.heal) {
    TRY_(end_outage(switch_reason(network)));
    return done("forwards all traffic again");
  }
  Outages::Taps taps;
  for (const auto& node : spec_.nodes)
    if (on_network(node, network)) taps.push_back(tap_name(node, network));
  const auto seconds = request.seconds > 0 ? request.seconds : 60;
  TRY_(begin_outage(switch_reason(network), taps, seconds * kSecond));
  return done(fmt::format("drops all traffic for {} s ({} ports)", seconds, taps.size()));
}

Status Rack::begin_outage(const std::string& reason, const Outages::Taps& taps, DurationMs span) {
  std::vector<Argv> commands;
  for (const auto& tap : outages_.begin(reason, taps, options_.now() + span))
    commands.push_back(link_command(tap, false));
  if (auto down = run_all(process_, commands); !down) {
    if (auto undone = end_outage(reason); !undone) log::warning(undone.error().message);
    return down;
  }
  reactor_.post([this, span] {  // timers belong to the reactor's thread
    reactor_.after(span + 1, [this] { end_outages_that_are_over(); });
  });
  return Ok{};
}

Status Rack::end_outage(const std::string& reason) {
  std::vector<Argv> commands;
  for (const auto& tap : outages_.end(reason)) commands.push_back(link_command(tap, true));
  return run_all(process_, commands);
}

void Rack::end_outages_that_are_over() {
  std::lock_guard lock(mutex_);
  for (const auto& reason : outages_.due(options_.now())) {
    if (auto up = end_outage(reason); !up) log::warning(up.error().message);
    for (auto& [name, slot] : slots_)
      for (auto fault = slot->faults.begin(); fault != slot->faults.end();)
        fault = cut_reason(name, fault->first) == reason ? slot->faults.erase(fault) : std::next(fault);
  }
}

// Applies current outages to the ports of a machine that is added while a switch is down.
Status Rack::join_outages(const LabNode& node) {
  std::vector<Argv> commands;
  for (const auto& network : all_networks(spec_))
    if (on_network(node, network) && outages_.join(switch_reason(network), tap_name(node, network)))
      commands.push_back(link_command(tap_name(node, network), false));
  return run_all(process_, commands);
}

Json Rack::networks() const {
  Json out = Json::array();
  for (const auto& network : all_networks(spec_)) {
    const auto until = outages_.until(switch_reason(network));
    out.push_back({{"name", network},
                   {"bridge", bridge_name(network)},
                   {"mtu", network == kProvisioning ? 1500 : kFastMtu},
                   {"back_in_s", until ? Json((*until - options_.now() + kSecond - 1) / kSecond) : Json()}});
  }
  return out;
}

}  // namespace muster::lab
