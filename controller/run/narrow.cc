#include "controller/run/narrow.h"

#include <cctype>

namespace muster {
namespace {

using Gone = std::function<bool(const NodeName&)>;

struct Neighbour {
  NodeName name;
  std::string address;
};

NodeName name_of(const Json& item) {
  if (item.is_string()) return item.get<NodeName>();
  if (item.is_object() && item.contains("name") && item["name"].is_string())
    return item["name"].get<NodeName>();
  return "";
}

void drop_gone(Json& params, const Gone& gone) {
  for (auto& [key, value] : params.items()) {
    if (!value.is_array()) continue;
    Json kept = Json::array();
    for (const auto& item : value)
      if (!gone(name_of(item))) kept.push_back(item);
    value = std::move(kept);
  }
}

bool is_word(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_'; }

// Replaces whole words only: 10.20.0.1 is not part of 10.20.0.11.
std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  size_t at = 0;
  for (size_t found; !from.empty() && (found = text.find(from, at)) != std::string::npos;) {
    const size_t end = found + from.size();
    const bool whole =
        (found == 0 || !is_word(text[found - 1])) && (end == text.size() || !is_word(text[end]));
    out += text.substr(at, found - at) + (whole ? to : from);
    at = end;
  }
  return out + text.substr(at);
}

void replace_all(Json& value, const Neighbour& from, const Neighbour& to) {
  if (value.is_string()) {
    // Each text is replaced in a single pass, so that inserted text is not replaced again.
    value = replaced(replaced(value.get<std::string>(), from.address, to.address), from.name, to.name);
  } else if (value.is_structured()) {
    for (auto& item : value) replace_all(item, from, to);
  }
}

Neighbour neighbour(const Json& node) {
  return {name_of(node), node.is_object() ? node.value("address", "") : ""};
}

// Planned and live successor of `self` in the ring; the live one has no name if there is no other node.
std::pair<Neighbour, Neighbour> successors(const Json& ring, const NodeName& self, const Gone& gone) {
  std::pair<Neighbour, Neighbour> out;
  size_t place = 0;
  for (size_t i = 0; i < ring.size(); ++i)
    if (name_of(ring[i]) == self) place = i;
  for (size_t i = 1; i < ring.size(); ++i) {
    const Neighbour n = neighbour(ring[(place + i) % ring.size()]);
    if (i == 1) out.first = n;
    if (gone(n.name)) continue;
    out.second = n;
    break;
  }
  return out;
}

const Json kNothing;

// The object's value under the key, by reference: a copy would be a whole list of nodes.
const Json& at(const Json& object, const std::string& key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

const Json& ring_of(const RingsOfOrder& rings, const Json& step) {
  const std::string id = step.is_object() ? step.value("id", "") : "";
  if (rings.rings && rings.rings->is_object() && rings.rings->contains(id)) return at(*rings.rings, id);
  return rings.ring ? *rings.ring : kNothing;
}

void add_named(const Json& list, std::set<NodeName>& names) {
  if (!list.is_array()) return;
  for (const Json& item : list)
    if (item.is_object() && !name_of(item).empty()) names.insert(name_of(item));
}

}  // namespace

std::set<NodeName> neighbours_in(const Json& params, const RingsOfOrder& rings) {
  std::set<NodeName> names;
  if (rings.ring) add_named(*rings.ring, names);
  if (rings.rings)
    for (const Json& ring : *rings.rings) add_named(ring, names);
  for (const Json& step : at(params, "steps")) {
    const Json& own = at(step, "params");
    if (own.is_object() && own.value("peers_live", false))
      for (const Json& list : own) add_named(list, names);
  }
  return names;
}

std::map<std::string, Involved> involved(const Json& params, const RingsOfOrder& rings, const NodeName& self,
                                         const Gone& gone) {
  std::map<std::string, Involved> out;
  if (!params.is_object() || !params.contains("steps") || !params["steps"].is_array()) return out;
  for (const Json& step : params["steps"]) {
    const Json& own = at(step, "params");
    if (!own.is_object()) continue;
    Involved found;
    if (own.value("peers_live", false))
      for (const auto& [key, value] : own.items()) {
        if (!value.is_array()) continue;
        for (const auto& item : value)
          if (const NodeName name = name_of(item); !name.empty() && name != self && !gone(name))
            found.names.insert(name);
      }
    const Json& ring = own.value("next_live", false) ? ring_of(rings, step) : kNothing;
    if (ring.size() > 1) {
      found.next = successors(ring, self, gone).second.name;
      found.after_next =
          successors(ring, self, [&](const NodeName& n) { return n == found.next || gone(n); }).second.name;
      if (!found.next.empty()) found.names.insert(found.next);
    }
    if (!found.names.empty()) out[step.value("id", "")] = std::move(found);
  }
  return out;
}

RingsOfOrder take_rings(Json& params) {
  const auto take = [&params](const char* key) -> std::shared_ptr<const Json> {
    if (!params.is_object()) return nullptr;
    const auto found = params.find(key);
    if (found == params.end()) return nullptr;
    auto taken = std::make_shared<const Json>(std::move(*found));
    params.erase(found);
    return taken;
  };
  return {take("ring"), take("rings")};
}

std::vector<std::string> narrow_order(Json& params, const RingsOfOrder& rings, const NodeName& self,
                                      const Gone& gone) {
  std::vector<std::string> left_out;
  if (!params.is_object() || !params.contains("steps") || !params["steps"].is_array()) return left_out;
  Json kept = Json::array();
  for (Json& step : params["steps"]) {
    Json* own =
        step.is_object() && step.contains("params") && step["params"].is_object() ? &step["params"] : nullptr;
    const bool peers = own && own->value("peers_live", false), next = own && own->value("next_live", false);
    if (own) own->erase("peers_live"), own->erase("next_live");
    if (peers) drop_gone(*own, gone);
    if (const Json& ring = next ? ring_of(rings, step) : kNothing; ring.size() > 1) {
      const auto [planned, live] = successors(ring, self, gone);
      if (live.name.empty()) {
        left_out.push_back(step.value("id", ""));
        continue;
      }
      if (live.name != planned.name) {
        replace_all(*own, planned, live);
        if (step.contains("verify")) replace_all(step["verify"], planned, live);
      }
    }
    kept.push_back(std::move(step));
  }
  params["steps"] = std::move(kept);
  return left_out;
}

}  // namespace muster
