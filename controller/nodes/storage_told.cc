#include "controller/nodes/storage_told.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/engines/engine.h"

namespace muster {
namespace {

constexpr size_t kLongest = 8192;

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

// The topmost mount at `path`; null when there is none.
Json mount_at(const Json& all, const std::string& path) {
  for (const auto& one : all)
    if (one.is_object() && text_of(one, "at") == path) return one;
  return nullptr;
}

void copy_number(const Json& from, const char* key, Json& to, const char* as) {
  if (const auto it = from.find(key); it != from.end() && it->is_number_unsigned()) to[as] = *it;
}

// What this node says of the section, and in `problem` what is wrong with that.
Json of_node(const StorageSpec& s, const std::string& node, const Json* told, std::string& problem) {
  Json out = {{"node", node}, {"state", "unknown"}};
  if (!told) return out;
  const Json mount = mount_at(*told, s.mount);
  if (mount.is_null()) {
    out["state"] = "absent";
    problem = s.mount + " is not mounted";
    return out;
  }
  const std::string from = text_of(mount, "from"), fs = text_of(mount, "fs");
  if (engine_of(s).reach == Reach::of_a_site && (fs != s.fstype || from != s.source)) {
    out["state"] = "other";
    problem = fmt::format("{} is {} ({}), not {}", s.mount, from, fs, s.source);
    return out;
  }
  if (mount.value("silent", Json()) == true) {
    out["state"] = "silent";
    problem = from + " does not answer";
    if (const auto age = mount.find("age"); age != mount.end() && age->is_number_unsigned())
      problem += fmt::format(", {} s ago it did", age->get<uint64_t>());
    return out;
  }
  out["state"] = "mounted";
  copy_number(mount, "size", out, "size_bytes");
  copy_number(mount, "used", out, "used_bytes");
  for (const char* key : {"array", "health"})
    if (const std::string text = text_of(mount, key); !text.empty()) out[key] = text;
  if (mount.value("ok", Json()) == false)
    problem = fmt::format("{} {}", text_of(mount, "array"), text_of(mount, "health"));
  return out;
}

void add_sizes(const Json& node, bool each_its_own, Json& section) {
  for (const char* key : {"size_bytes", "used_bytes"}) {
    if (!node.contains(key)) continue;
    const uint64_t before = section.value(key, uint64_t{0}), now = node[key];
    section[key] = each_its_own ? before + now : std::max(before, now);
  }
}

}  // namespace

void StorageTold::heard(const std::string& node, const std::string& text) {
  const auto json =
      text.empty() || text.size() > kLongest ? Result<Json>(fail(Code::invalid, "")) : parse_json(text);
  if (json.ok() && json->is_array())
    told_[node] = *json;
  else
    told_.erase(node);
}

Json StorageTold::status(const Spec& spec, const std::function<bool(const std::string& node)>& silent) const {
  Json out = Json::array();
  for (const auto& s : spec.storage) {
    const bool local = engine_of(s).reach == Reach::own;
    Json section = {{"name", s.name},           {"engine", s.engine},     {"mount", s.mount},
                    {"healthy", Json(nullptr)}, {"nodes", Json::array()}, {"problems", Json::array()}};
    for (const auto& n : spec.nodes) {
      if (local ? !is_member(s, n) : !mounts(s, n)) continue;
      const auto found = told_.find(n.name);
      std::string problem;
      Json one =
          of_node(s, n.name, found == told_.end() || silent(n.name) ? nullptr : &found->second, problem);
      add_sizes(one, local, section);
      if (!problem.empty()) section["problems"].push_back({{"node", n.name}, {"problem", problem}});
      if (one["state"] != "unknown" && section["healthy"] != false) section["healthy"] = problem.empty();
      section["nodes"].push_back(std::move(one));
    }
    out.push_back(std::move(section));
  }
  return out;
}

}  // namespace muster
