#include "controller/report/network_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/split.h"
#include "controller/report/measured.h"
#include "controller/report/port_rates.h"

namespace muster {
namespace {

// What kernels report for a speed that they do not know, as those before 6.7 for XDR: 4X SDR.
constexpr double kSdrGbps = 10;

double value_at(const Json& json, const char* key) {
  const Json& value = field(json, key);
  return value.is_number() ? value.get<double>() : 0;
}
const Json& detail_in(const Json& result) { return field(result, "detail"); }

// What one TCP stream carries at most: one core copies it at either end (esnet/iperf issues 286, 1664,
// 2031: 30 to 50 Gb/s, whatever the port can do).
constexpr double kStreamMbps = 3750;

// The speed of the port that a link used, in Mb/s; 0: unknown. A connection uses one port of a bond, and
// how its ports are chosen is not known.
double own_speed(const Json& own) {
  double least = 0;
  const Json& ports = field(own, "ports");
  for (const Json& port : ports.is_array() ? ports : Json::array())
    if (const double speed = value_at(port, "speed_mbps"); speed > 0 && (least <= 0 || speed < least))
      least = speed;
  const bool bond = ports.is_array() && ports.size() > 1;
  const double whole = value_at(own, "speed_mbps");
  return least > 0 && (bond || whole <= 0) ? least : whole;
}

// The most that was measured over a port; 0: nothing.
double fastest(const Json& result) {
  double out = 0;
  for (const char* metric : {"send_gbps", "receive_gbps"})
    out = std::max(out, metric_value(result, metric).value_or(0));
  return out;
}

bool of_one_rate(const std::vector<Json>& ports) {
  return !ports.empty() && std::all_of(ports.begin(), ports.end(), [&](const Json& port) {
    return value_at(port, "rate_gbps") == value_at(ports.front(), "rate_gbps");
  });
}

// Only TCP's results have such a port.
double own_speed_of(const MeasuredStep& step) { return own_speed(field(detail_in(step.result), "own_port")); }

}  // namespace

void mark_paths(std::vector<MeasuredStep>& steps) {
  std::map<std::pair<std::string, std::string>, double> speeds;  // by group and node
  for (const auto& step : steps)
    if (const double speed = is_link(step) ? own_speed_of(step) : 0; speed > 0)
      speeds[{step.group, step.node}] = speed;
  for (auto& step : steps) {
    if (!is_link(step) || !detail_in(step.result).is_object()) continue;
    if (const auto peer = speeds.find({step.group, step.subject}); peer != speeds.end())
      step.result["detail"]["peer_speed_mbps"] = std::lround(peer->second);
    const Json& detail = detail_in(step.result);
    const double here = std::max(own_speed_of(step) / 1000, value_at(detail, "rate_gbps"));
    const double there =
        std::max(value_at(detail, "peer_speed_mbps") / 1000, value_at(detail, "peer_rate_gbps"));
    const double slower = here > 0 && there > 0 ? std::min(here, there) : std::max(here, there);
    if (slower > 0) step.kind = amount(slower, "Gb/s");
  }
}

// TCP payload on Ethernet with MTU 1500: 1448 of 1538 bytes on the wire. Computed for the port that the test
// used, the one with the node's address: a node has faster ones, its rails, that this traffic never uses. Of
// two ports of different speed the slower one counts.
Derived nic_payload(const Json& result, const HardwareFacts* facts) {
  const Json& own = field(detail_in(result), "own_port");
  const bool reported = own.is_object();
  std::vector<const NicFacts*> linked;
  if (facts)
    for (const auto& nic : facts->nics)
      if (nic.link_up) linked.push_back(&nic);
  int64_t speed = static_cast<int64_t>(own_speed(own));
  std::string name = text_of(field(own, "interface"));
  if (reported && speed <= 0)
    for (const auto* nic : linked)
      if (!nic->mac.empty() && nic->mac == text_of(field(own, "mac"))) speed = nic->speed_mbps;
  if (!reported && linked.size() == 1) speed = linked.front()->speed_mbps, name = linked.front()->name;
  if (!reported && linked.size() != 1) return without("the measurement does not report which port it used");
  if (speed <= 0)
    return without(fmt::format("the port with this node's address{} does not report its speed",
                               name.empty() ? "" : ", " + name + ","));
  const auto peer = static_cast<int64_t>(value_at(detail_in(result), "peer_speed_mbps"));
  const bool by_peer = peer > 0 && peer < speed;
  if (by_peer) speed = peer;
  const double bound = static_cast<double>(speed) / 8 * 1448 / 1538;
  const double streams = std::max(1.0, value_at(detail_in(result), "streams")),
               carried = streams * kStreamMbps;
  const bool bond = field(own, "ports").is_array() && field(own, "ports").size() > 1;
  if (name.empty()) name = "the port with this node's address";
  const std::string port =
      fmt::format("{} Mb/s of {} / 8 x 1448/1538 (TCP payload at MTU 1500) = {:.4g} MB/s", speed,
                  by_peer ? "the partner's port" : (bond ? "one port of " : "") + name, bound);
  if (bound <= carried)
    return {bound, port, "the port's speed in sysfs; sizes of Ethernet's and TCP's headers"};
  return {carried,
          fmt::format("{:.0f} TCP stream{} x {:.0f} MB/s that one core carries = {:.0f} MB/s, less than {}",
                      streams, streams > 1 ? "s" : "", kStreamMbps, carried, port),
          "esnet/iperf issues 286, 1664 and 2031"};
}

// RDMA payload of a path: the slower end's negotiated rate less the headers around each packet's payload,
// at most what PCI Express leaves the ports of a slot. Ethernet: preamble and gap 20, MAC and FCS 18, IPv4
// 20, UDP 8, BTH 12, ICRC 4 bytes. InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2.
Derived rdma_payload(const Json& result) {
  const Json& d = detail_in(result);
  const double own = value_at(d, "rate_gbps"), mtu = value_at(d, "mtu"), most = fastest(result);
  if (own <= 0) return without("the port does not report its rate");
  if (most > own) return without(unknown_rate(own, text_of(field(d, "rate_text")), most));
  if (mtu <= 0) return without("perftest did not report which MTU it used");
  const double other = value_at(d, "peer_rate_gbps");
  const bool by_other = other > 0 && other < own && most <= other;
  const double rate = by_other ? other : own;
  const std::string layer = text_of(field(d, "link_layer"));
  if (layer != "InfiniBand" && layer != "Ethernet")
    return without(fmt::format("the headers of link layer '{}' are not known", layer),
                   fmt::format("link layer '{}'", layer));
  const double headers = layer == "InfiniBand" ? 26 : 82;
  const double bound = rate * mtu / (mtu + headers);
  const std::string text =
      fmt::format("{:.4g} Gb/s{} x {:.0f}/{:.0f} (payload share of a packet) = {:.4g} Gb/s", rate,
                  by_other ? " of the partner's port" : "", mtu, mtu + headers, bound);
  const double here = value_at(d, "pcie_gbps"), there = value_at(d, "peer_pcie_gbps");
  const bool by_partner = there > 0 && (here <= 0 || there < here);
  const double pcie = by_partner ? there : here;
  if (pcie <= 0 || pcie >= bound)
    return {bound, text, fmt::format("the port's rate in sysfs; sizes of the headers on {}", layer)};
  return {pcie,
          fmt::format("{:.4g} Gb/s by PCI Express{}, less than {}", pcie,
                      by_partner ? " of the partner's port" : " (" + text_of(field(d, "pcie")) + ")", text),
          "width and speed that both ends of each link can do"};
}

// NCCL uses the ports that the measurement found active: declared rails, or all ports. Ports of different
// speeds belong to different networks; the one of the GPUs is that of the ports nearest to them. The ports of
// one slot share it.
NcclRails nccl_rails(const Json& reported) {
  std::vector<Json> all, near;
  for (const Json& rail : reported.is_array() ? reported : Json::array()) {
    all.push_back(rail.is_number() ? Json{{"rate_gbps", rail}} : rail);
    if (field(all.back(), "near_gpu") == true) near.push_back(all.back());
  }
  if (all.empty()) return {.unknown = "the measurement does not report which RDMA ports connected the GPUs"};
  const bool one_rate = of_one_rate(all);
  if (!one_rate && !of_one_rate(near))
    return {.unknown = near.empty()
                           ? "the RDMA ports have different speeds: it is unknown which ones connect the GPUs"
                           : "the RDMA ports nearest to the GPUs have different speeds"};
  const std::vector<Json>& used = one_rate ? all : near;
  const double gbps = value_at(used.front(), "rate_gbps");
  const std::string text = text_of(field(used.front(), "rate_text"));
  if (gbps <= 0 || (gbps <= kSdrGbps && (text.empty() || has(text, "SDR"))))
    return {.unknown = gbps <= 0 ? "the RDMA ports do not report their rate" : unknown_rate(gbps, text, 0)};
  std::string which =
      one_rate ? "" : fmt::format("{} of {} ports: the nearest to the GPUs", used.size(), all.size());
  double each = gbps;
  for (const Json& rail : used)
    if (const double slot = value_at(rail, "slot_gbps"); slot > 0) each = std::min(each, slot);
  if (each < gbps)
    which += fmt::format("{}{:.4g} of {:.4g} Gb/s by PCI Express", which.empty() ? "" : "; ", each, gbps);
  return {static_cast<int>(used.size()), each, which};
}

}  // namespace muster
