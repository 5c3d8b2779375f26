// ibnetdiscover: switches and channel adapters with their ports. Each cable is listed at both ends. Rates are
// compared among links between the same kinds of devices: with split cables, adapters run at half the rate of
// the links between switches, and switches of several generations are one fabric.
#include <fmt/ranges.h>

#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

constexpr const char* kIbnetdiscover = "ibnetdiscover";

using Port = std::pair<std::string, int>;  // "S-0ff08c43213b3f30", 21
struct Cable {
  Port to;
  std::string width;  // "4xHDR"
};

// "S-..."[21](...) -> id and port number.
std::optional<Port> port_in(const std::string& text) {
  const size_t quote = text.find('"'), end = quote == std::string::npos ? quote : text.find('"', quote + 1);
  if (end == std::string::npos || end + 1 >= text.size() || text[end + 1] != '[') return {};
  const size_t close = text.find(']', end);
  if (close == std::string::npos || !digits(text.substr(end + 2, close - end - 2))) return {};
  return Port{text.substr(quote + 1, end - quote - 1), std::atoi(text.c_str() + end + 2)};
}

std::string width_in(const std::string& line) {
  const size_t comment = line.rfind('#');
  if (comment == std::string::npos) return "";
  for (const auto& word : words_of(line.substr(comment)))
    if (word.size() > 2 && digits(word.substr(0, 1)) && word.find('x') != std::string::npos &&
        word.find('x') < 3)
      return word;
  return "";
}

struct Fabric {
  std::map<Port, Cable> cables = {};
  std::map<std::string, std::string> labels = {};   // node id -> description
  std::map<std::string, std::string> devices = {};  // node id -> "0xd2f0"
  std::set<std::string> switches = {}, adapters = {}, routers = {};

  bool lists(const std::string& node) const { return labels.count(node) > 0; }
  std::string name(const Port& port) const;
  std::string kind(const std::string& node) const;
  std::string link_kind(const Port& from, const Cable& cable) const;
};

std::string Fabric::name(const Port& port) const {
  const auto label = labels.find(port.first);
  const bool known = label != labels.end() && !label->second.empty();
  return fmt::format("{} port {}", known ? label->second : port.first, port.second);
}

// By the identifier's first letter, which a node has that is connected, but not listed.
std::string Fabric::kind(const std::string& node) const {
  const auto device = devices.find(node);
  return fmt::format("{}{}",
                     node.starts_with("S-")   ? "switch"
                     : node.starts_with("H-") ? "adapter"
                                              : "router",
                     device == devices.end() ? "" : " " + device->second);
}

std::string Fabric::link_kind(const Port& from, const Cable& cable) const {
  const auto [first, second] = std::minmax({kind(from.first), kind(cable.to.first)});
  return fmt::format("{} and {}", first, second);
}

std::string label_in(const std::string& line) {
  const size_t comment = line.find('#'),
               quote = comment == std::string::npos ? comment : line.find('"', comment);
  const size_t end = quote == std::string::npos ? quote : line.find('"', quote + 1);
  return end == std::string::npos ? "" : line.substr(quote + 1, end - quote - 1);
}

Result<Fabric> read_fabric(const Run& run) {
  Fabric out;
  std::string node, device;
  size_t number = run.line - 1;
  for (const auto& line : lines_of(run.text)) {
    ++number;
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (line.starts_with("devid=")) device = trim(line.substr(line.find('=') + 1));
    if (words[0] == "Switch" || words[0] == "Ca" || words[0] == "Rt") {
      const size_t quote = line.find('"'),
                   end = quote == std::string::npos ? quote : line.find('"', quote + 1);
      if (end == std::string::npos) return malformed(kIbnetdiscover, number, "the node has no identifier");
      node = line.substr(quote + 1, end - quote - 1);
      (words[0] == "Switch" ? out.switches : words[0] == "Ca" ? out.adapters : out.routers).insert(node);
      out.labels[node] = label_in(line);
      if (!device.empty()) out.devices[node] = std::exchange(device, "");
    } else if (line[0] == '[') {
      if (node.empty()) return malformed(kIbnetdiscover, number, "a port is listed before any node");
      const size_t close = line.find(']');
      const auto to = close == std::string::npos ? std::nullopt : port_in(line.substr(close));
      if (!to || !digits(line.substr(1, close - 1)))
        return malformed(kIbnetdiscover, number, "the other end of the port is missing");
      out.cables[{node, std::atoi(line.c_str() + 1)}] = {*to, width_in(line)};
    }
  }
  return out;
}

void add_one_way(const Fabric& fabric, Imported& out) {
  for (const auto& [from, cable] : fabric.cables) {
    const auto back = fabric.cables.find(cable.to);
    if (fabric.lists(cable.to.first) && (back == fabric.cables.end() || back->second.to != from))
      out.problems.push_back(
          fmt::format("{} is connected to {}, but not vice versa", fabric.name(from), fabric.name(cable.to)));
  }
}

struct Kind {
  std::map<std::string, size_t> rates = {};
  size_t ports = 0;
};

// Returns the rate that more than half of the ports have; nullptr if there is none.
const std::string* usual_rate(const Kind& kind) {
  for (const auto& [rate, count] : kind.rates)
    if (2 * count > kind.ports) return &rate;
  return nullptr;
}

void add_rates(const Fabric& fabric, Imported& out) {
  std::map<std::string, Kind> kinds;
  for (const auto& [from, cable] : fabric.cables) {
    Kind& kind = kinds[fabric.link_kind(from, cable)];
    ++kind.rates[cable.width];
    ++kind.ports;
  }
  for (const auto& [name, kind] : kinds) {
    if (usual_rate(kind)) continue;
    std::vector<std::string> rates;
    for (const auto& [rate, count] : kind.rates) rates.push_back(fmt::format("{} at {}", count, rate));
    out.left_out.push_back({fmt::format("rates of the ports between {}", name),
                            fmt::format("there is no majority: {}", fmt::join(rates, ", "))});
  }
  std::set<Port> named;
  for (const auto& [from, cable] : fabric.cables) {
    const std::string* usual = usual_rate(kinds[fabric.link_kind(from, cable)]);
    if (!usual || cable.width == *usual) continue;
    const auto back = fabric.cables.find(cable.to);
    if (named.count(cable.to) && back != fabric.cables.end() && back->second.width == cable.width) continue;
    named.insert(from);
    out.problems.push_back(fmt::format("{} runs at {}, but most ports between {} run at {}",
                                       fabric.name(from),
                                       cable.width.empty() ? "an unknown rate" : cable.width,
                                       fabric.link_kind(from, cable), usual->empty() ? "none" : *usual));
  }
}

}  // namespace

Result<Imported> import_ibnetdiscover(const Run& run) {
  TRY(const Fabric fabric, read_fabric(run));
  if (fabric.cables.empty()) return fail(Code::invalid, "the ibnetdiscover output contains no cable");
  Imported out;
  out.format = kIbnetdiscover;
  std::set<std::pair<Port, Port>> links;
  std::map<std::string, size_t> rates;
  size_t unlisted = 0;
  for (const auto& [from, cable] : fabric.cables) {
    if (links.insert(std::minmax(from, cable.to)).second) ++rates[cable.width];
    if (!fabric.lists(cable.to.first)) ++unlisted;
  }
  add_one_way(fabric, out);
  add_rates(fabric, out);
  std::vector<std::string> words;
  out.values = {{"switches", "", static_cast<double>(fabric.switches.size()), "", "", 1},
                {"adapters", "", static_cast<double>(fabric.adapters.size()), "", "", 1}};
  for (const auto& [rate, count] : rates) {
    if (rate.empty()) {
      out.left_out.push_back({fmt::format("rates of {} cables", count), "the output does not have them"});
      continue;
    }
    words.push_back(rate);
    out.values.push_back({"cables", rate, static_cast<double>(count), "", "", 1});
  }
  if (!fabric.routers.empty())
    out.left_out.push_back({fmt::format("{} routers", fabric.routers.size()), "they are not counted"});
  if (unlisted > 0)
    out.left_out.push_back(
        {fmt::format("other ends of {} ports", unlisted), "the output does not list the node"});
  out.title = fmt::format("{} switches, {} adapters, {}", fabric.switches.size(), fabric.adapters.size(),
                          fmt::join(words, ", "));
  return out;
}

}  // namespace muster
