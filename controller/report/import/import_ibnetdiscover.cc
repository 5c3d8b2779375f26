// ibnetdiscover: switches and channel adapters with their ports. Each cable is listed at both ends.
#include <cstdlib>
#include <map>
#include <set>

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
  std::map<std::string, std::string> labels = {};  // node id -> description
  std::set<std::string> switches = {}, adapters = {};
};

std::string label_in(const std::string& line) {
  const size_t comment = line.find('#'),
               quote = comment == std::string::npos ? comment : line.find('"', comment);
  const size_t end = quote == std::string::npos ? quote : line.find('"', quote + 1);
  return end == std::string::npos ? "" : line.substr(quote + 1, end - quote - 1);
}

Result<Fabric> read_fabric(const std::string& text) {
  Fabric out;
  std::string node;
  size_t number = 0;
  for (const auto& line : lines_of(text)) {
    ++number;
    if (line.starts_with("Switch") || line.starts_with("Ca")) {
      const size_t quote = line.find('"'),
                   end = quote == std::string::npos ? quote : line.find('"', quote + 1);
      if (end == std::string::npos) return malformed(kIbnetdiscover, number, "the node has no identifier");
      node = line.substr(quote + 1, end - quote - 1);
      (line[0] == 'S' ? out.switches : out.adapters).insert(node);
      out.labels[node] = label_in(line);
    } else if (!line.empty() && line[0] == '[') {
      if (node.empty()) return malformed(kIbnetdiscover, number, "a port is listed before any node");
      const size_t close = line.find(']');
      const auto to = close == std::string::npos ? std::nullopt : port_in(line.substr(close));
      if (!to || !digits(line.substr(1, close - 1)))
        return malformed(kIbnetdiscover, number, "the other end of the port is missing");
      out.cables[{node, std::atoi(line.c_str() + 1)}] = {*to, width_in(line)};
    } else if (line.empty()) {
      continue;
    }
  }
  return out;
}

}  // namespace

Result<Imported> import_ibnetdiscover(const std::string& text) {
  TRY(const Fabric fabric, read_fabric(text));
  if (fabric.cables.empty()) return fail(Code::invalid, "the ibnetdiscover output contains no cable");
  Imported out;
  out.format = kIbnetdiscover;
  std::set<std::pair<Port, Port>> links;
  std::map<std::string, size_t> widths;
  const auto name = [&](const Port& port) {
    const auto label = fabric.labels.find(port.first);
    const std::string words =
        label == fabric.labels.end() || label->second.empty() ? port.first : label->second;
    return fmt::format("{} port {}", words, port.second);
  };
  for (const auto& [from, cable] : fabric.cables) {
    if (links.insert(std::minmax(from, cable.to)).second) ++widths[cable.width];
    const bool listed = fabric.switches.count(cable.to.first) || fabric.adapters.count(cable.to.first);
    const auto back = fabric.cables.find(cable.to);
    if (listed && (back == fabric.cables.end() || back->second.to != from))
      out.problems.push_back(
          fmt::format("{} is connected to {}, but not vice versa", name(from), name(cable.to)));
  }
  std::string usual;
  for (const auto& [width, count] : widths)
    if (usual.empty() || count > widths[usual]) usual = width;
  for (const auto& [from, cable] : fabric.cables)
    if (cable.width != usual)
      out.problems.push_back(fmt::format("{} runs at {}, but most ports run at {}", name(from),
                                         cable.width.empty() ? "an unknown rate" : cable.width, usual));
  out.title =
      fmt::format("{} switches, {} adapters, {}", fabric.switches.size(), fabric.adapters.size(), usual);
  out.values = {{"switches", "", static_cast<double>(fabric.switches.size()), "", "", 1},
                {"adapters", "", static_cast<double>(fabric.adapters.size()), "", "", 1},
                {"cables", usual, static_cast<double>(links.size()), "", "", 1}};
  return out;
}

}  // namespace muster
