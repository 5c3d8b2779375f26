#include "tests/machines/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json_dump.h"
#include "base/split.h"
#include "controller/spec/yaml.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

namespace muster::machines {
namespace {

constexpr const char* kParts = "parts";

std::filesystem::path folder() { return source_dir() + "/tests/machines"; }

Json read(const std::string& name) {
  const ParsedYaml parsed = parse_yaml(text_of(folder() / (name + ".yaml")));
  for (const auto& error : parsed.errors) FAIL(to_string(error, name));
  return to_json(parsed.root);
}

Json with_index(const Json& json, const std::string& index) {
  if (json.is_string()) {
    std::string text = json.get<std::string>();
    for (size_t at; (at = text.find("{i}")) != std::string::npos;) text.replace(at, 3, index);
    return text;
  }
  Json out = json;
  if (json.is_object())
    for (const auto& [key, value] : json.items()) out[key] = with_index(value, index);
  if (json.is_array())
    for (size_t i = 0; i < json.size(); ++i) out[i] = with_index(json[i], index);
  return out;
}

// "rdma/rate" sets a key of a key.
void set(Json& json, const std::string& path, const Json& value) {
  const size_t slash = path.find('/');
  if (slash == std::string::npos)
    json[path] = value;
  else
    set(json[path.substr(0, slash)], path.substr(slash + 1), value);
}

void add_devices(const Json& entry, Json& out) {
  const Json& where = at(entry, "at");
  const size_t count = where.is_array() ? where.size() : static_cast<size_t>(whole(entry, "count", 1));
  for (size_t i = 0; i < count; ++i) {
    Json one = with_index(entry, std::to_string(static_cast<size_t>(whole(entry, "first")) + i));
    if (where.is_array()) one["at"] = where[i];
    if (entry.contains("each"))
      for (const auto& [key, values] : entry["each"].items()) {
        REQUIRE(values.size() == count);
        set(one, key, values[i]);
      }
    for (const char* key : {"each", "count", "first", "like"}) one.erase(key);
    one["index"] = i;
    one["half"] = 2 * i < count ? 0 : 1;
    out.push_back(std::move(one));
  }
}

}  // namespace

std::vector<std::string> described() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".yaml" && entry.path().stem() != kParts)
      out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

Json patched(Json base, const Json& over) {
  base.merge_patch(over);
  return base;
}

Json description(const std::string& name) {
  static const Json parts = read(kParts);
  Json out = patched(parts.at("machine"), read(name));
  out["name"] = name;
  Json devices = Json::array();
  for (const Json& entry : out["devices"]) {
    const std::string like = text(entry, "like");
    if (!like.empty() && !parts.contains(like)) FAIL(name << ": there is no part " << like);
    add_devices(patched(like.empty() ? Json::object() : parts.at(like), entry), devices);
  }
  out["devices"] = devices;
  return out;
}

Json node_of(const Json& machine, int number, bool faulty) {
  Json out = machine;
  out["number"] = number;
  const Json& fault = at(machine, "fault");
  const Json nodes = fault.contains("nodes") ? fault["nodes"] : Json(std::vector<int>{2});
  const bool has_it =
      faulty && (nodes == "all" || std::any_of(nodes.begin(), nodes.end(),
                                               [&](const Json& n) { return n.get<int>() == number; }));
  if (!has_it) return out;
  if (fault.contains("during")) out["during"].merge_patch(fault["during"]);
  if (fault.contains("machine")) out.merge_patch(fault["machine"]);
  Json patches = fault.value("devices", Json::object()), devices = Json::array();
  for (const Json& device : out["devices"]) {
    const std::string key = text(device, "at", text(device, "name"));
    const Json patch = patches.value(key, Json::object());
    patches.erase(key);
    if (!patch.is_null()) devices.push_back(patched(device, patch));
  }
  if (!patches.empty()) FAIL(text(machine, "name") << ": there is no such device: " << dump_json(patches));
  out["devices"] = devices;
  return out;
}

const Json& at(const Json& json, const std::string& path) {
  static const Json kNone = nullptr;
  const Json* here = &json;
  for (const auto& key : split(path, '/')) {
    if (!here->is_object() || !here->contains(key)) return kNone;
    here = &here->at(key);
  }
  return *here;
}

std::string text(const Json& json, const std::string& path, const std::string& otherwise) {
  const Json& found = at(json, path);
  if (found.is_string()) return found.get<std::string>();
  return found.is_null() ? otherwise : dump_json(found);
}

double real(const Json& json, const std::string& path, double otherwise) {
  const Json& found = at(json, path);
  return found.is_number() ? found.get<double>() : otherwise;
}

int whole(const Json& json, const std::string& path, int otherwise) {
  return static_cast<int>(real(json, path, otherwise));
}

}  // namespace muster::machines
