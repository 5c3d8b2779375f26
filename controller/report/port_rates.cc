#include "controller/report/port_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "controller/report/held_rate.h"
#include "controller/report/measured.h"
#include "controller/spec/own_variables.h"
#include "controller/spec/units.h"

namespace muster {
namespace {

constexpr const char* kRateUnit = "Gb/s";
constexpr double kAlmost = 0.99;  // drivers round

struct RatedPort {
  const MeasuredStep* step = nullptr;
  std::string name = {}, place = {}, model = {}, layer = {}, rail = {}, rate_text = {}, source = {};
  double rate = 0, ability = 0, partner = 0, measured = 0, declared = 0;

  std::string identity() const { return place.empty() ? name : place; }
  std::string said() const {
    std::string more = place;
    if (!rail.empty() && !rail.starts_with("port ")) more += (more.empty() ? "" : ", ") + rail;
    return more.empty() ? "port " + name : fmt::format("port {} ({})", name, more);
  }
  // Less than what went through it is no rate.
  bool rate_known() const { return rate > 0 && measured <= rate; }
  // Twisted pair: what both ends of the cable can do.
  double possible() const { return partner > 0 ? std::min(ability, partner) : ability; }
};
using RatedPorts =
    std::map<std::tuple<std::string, std::string, std::string>, RatedPort>;  // node, group, identity

double figure(const Json& json, const char* key) {
  const Json& value = field(json, key);
  return value.is_number() ? value.get<double>() : 0;
}

void read_ability(const Json& json, RatedPort& port) {
  port.place = text_of(field(json, "place"));
  port.model = text_of(field(json, "model"));
  port.ability = figure(json, "ability_gbps");
  port.source = text_of(field(json, "ability_source"));
  port.partner = figure(json, "partner_gbps");
}

void keep_port(RatedPorts& out, RatedPort port) {
  RatedPort& known = out[{port.step->node, port.step->group, port.identity()}];
  port.measured = std::max(port.measured, known.measured);
  known = std::move(port);
}

// Since it reports the text of its rate, the kernel also reports the place of a port, unless it is software.
bool is_software(const Json& detail) {
  return field(detail, "rate_text").is_string() && text_of(field(detail, "place")).empty();
}

void add_rdma(const MeasuredStep& step, double declared, RatedPorts& out) {
  const Json& detail = field(step.result, "detail");
  RatedPort port{&step, text_of(field(detail, "device"))};
  if (port.name.empty() || is_software(detail)) return;
  read_ability(detail, port);
  port.layer = text_of(field(detail, "link_layer"));
  port.rail = step.like;
  port.rate = figure(detail, "rate_gbps");
  port.rate_text = text_of(field(detail, "rate_text"));
  for (const bool sending : {true, false})
    port.measured = std::max(port.measured, rate_of(step, sending).value_or(0));
  port.declared = declared;
  keep_port(out, std::move(port));
}

// `own` or one of the ports that carry it: without a list of them (an older kernel) it is the port itself.
void add_tcp(const MeasuredStep& step, double declared, RatedPorts& out) {
  const Json& own = field(field(step.result, "detail"), "own_port");
  const Json& below = field(own, "ports");
  const Json ports = below.is_array() ? below : Json::array({own});
  for (const Json& one : ports) {
    RatedPort port{&step, text_of(field(one, "interface"))};
    if (port.name.empty()) continue;
    read_ability(one, port);
    if (below.is_array() && port.place.empty() && port.ability <= 0) continue;  // not hardware
    port.rate = figure(one, "speed_mbps") / 1000;
    port.declared = declared;
    keep_port(out, std::move(port));
  }
}

bool same_kind(const RatedPort& a, const RatedPort& b) {
  return a.model == b.model && a.layer == b.layer && a.ability == b.ability && b.rate_known();
}

HeldRate rate_held_to(const RatedPort& port, const RatedPorts& all) {
  if (port.declared > 0) return {port.declared, "the spec declares it", "`rate` of the network"};
  HeldRate out;
  const bool by_partner = port.partner > 0 && port.partner < port.ability;
  out.raise(port.possible(), by_partner ? "both ends of the cable can do it" : "the port can do it",
            port.source);
  for (const auto& [key, other] : all) {
    const auto& [node, group, identity] = key;
    if (&other == &port || group != port.step->group || !same_kind(port, other)) continue;
    // A partner's offer is a switch's: another port of it may be slower by design.
    if (port.partner > 0) continue;
    if (node == port.step->node)
      out.raise(other.rate, fmt::format("{} of the same node has it", other.said()), "this run");
    else if (!port.place.empty() && !port.model.empty() && identity == port.place)
      out.raise(other.rate, fmt::format("the same port of {} has it", node), "this run");
  }
  return out;
}

Check rate_check(const RatedPort& port, const RatedPorts& all) {
  Check check;
  check.name = port.step->group + "/port_rate";
  check.title = port.step->title.empty() ? port.step->group : port.step->title;
  check.subject = "port " + port.identity();
  check.like = port.model;
  check.unit = kRateUnit;
  check.mandatory = port.step->mandatory;
  if (!port.rate_known())
    return unjudged(std::move(check),
                    port.rate > 0 ? unknown_rate(port.rate, port.rate_text, port.measured)
                                  : port.said() + " does not report its rate",
                    port.said());
  check.measured = port.rate;
  check.measured_text = amount(port.rate, kRateUnit);
  const HeldRate held = rate_held_to(port, all);
  const bool known = port.declared > 0 || port.ability > 0;
  if (!known && held.value <= port.rate)
    return unjudged(
        std::move(check),
        fmt::format("what {} can do is not known, nor does the spec declare its rate", port.said()),
        port.model.empty() ? port.said() : "adapter " + port.model);
  pass_held_to(held, kRateUnit, check);
  if (port.rate >= kAlmost * held.value) return check;
  check.verdict = Verdict::degraded;
  check.reason = fmt::format(
      "{} negotiated {}{}, less than {}: {}{}", port.said(), amount(port.rate, kRateUnit),
      port.rate_text.empty() ? "" : " (" + port.rate_text + ")", amount(held.value, kRateUnit), held.because,
      port.declared > 0 ? "" : "; if that is by design (a split cable, a slower switch), declare the rate");
  check.faulty_parts = {port.said()};
  return check;
}

}  // namespace

std::string unknown_rate(double gbps, const std::string& text, double measured) {
  const std::string reported = text.empty() ? amount(gbps, kRateUnit) : text;
  if (measured <= 0)
    return fmt::format("the kernel reports {}, as for speeds that it does not know", reported);
  return fmt::format(
      "the kernel reports {}, less than the {} that were measured: it does not know the port's speed",
      reported, amount(measured, kRateUnit));
}

DeclaredRates declared_rates(const Spec& spec) {
  const auto named = [&](const char* name) {
    const auto found = spec.vars.find(name);
    return found == spec.vars.end() ? 0 : parse_link_rate(found->second).value_or(0);
  };
  const double rails = spec.network.rails.rate_gbps, provisioning = spec.network.provisioning.rate_gbps;
  return {rails > 0 ? rails : named(own_variable::kRailRate),
          provisioning > 0 ? provisioning : named(own_variable::kPortRate)};
}

void judge_port_rates(const std::vector<MeasuredStep>& steps, const DeclaredRates& declared,
                      std::map<std::string, std::vector<Check>>& checks) {
  RatedPorts ports;
  for (const auto& step : steps) {
    if (!is_link(step)) continue;
    if (text_of(field(step.result, "check")) == "link")
      add_tcp(step, declared.provisioning, ports);
    else
      add_rdma(step, declared.rails, ports);
  }
  for (const auto& [key, port] : ports)
    if (port.rate > 0 || port.ability > 0) checks[port.step->node].push_back(rate_check(port, ports));
}

}  // namespace muster
