#include "controller/image/inputs.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/json_dump.h"
#include "controller/image/ram.h"

namespace muster {
namespace {

constexpr size_t kMostNames = 6;  // listed by name; the rest are counted

using Names = std::vector<std::string>;

Names texts(const Json& list) {
  Names out;
  if (list.is_array())
    for (const Json& item : list) out.push_back(item.is_string() ? item.get<std::string>() : dump_json(item));
  return out;
}

std::string sentence(const std::string& topic, const Names& names) {
  std::string out = topic + ":";
  for (size_t i = 0; i < names.size() && i < kMostNames; ++i) out += " " + names[i];
  if (names.size() > kMostNames) out += fmt::format(" and {} more", names.size() - kMostNames);
  return out;
}

// Returns the names that are in only one of two lists, with + or -; "order changed" if there are none.
std::string list_change(const std::string& topic, const Json& before, const Json& after) {
  const Names old_names = texts(before), new_names = texts(after);
  const std::set<std::string> was(old_names.begin(), old_names.end()), is(new_names.begin(), new_names.end());
  Names changes;
  for (const auto& name : is)
    if (!was.count(name)) changes.push_back("+" + name);
  for (const auto& name : was)
    if (!is.count(name)) changes.push_back("-" + name);
  return changes.empty() ? topic + ": order changed" : sentence(topic, changes);
}

std::map<std::string, std::string> by_path(const Json& files) {
  std::map<std::string, std::string> out;  // the last one wins, as in the tree
  if (files.is_array())
    for (const Json& f : files)
      if (f.is_object()) out[f.value("path", "?")] = dump_json(f);
  return out;
}

std::string file_change(const Json& before, const Json& after) {
  const auto was = by_path(before), is = by_path(after);
  Names changes;
  for (const auto& [path, text] : is) {
    const auto old = was.find(path);
    if (old == was.end())
      changes.push_back("+" + path);
    else if (old->second != text)
      changes.push_back(path);
  }
  for (const auto& [path, text] : was)
    if (!is.count(path)) changes.push_back("-" + path);
  return changes.empty() ? "files: order changed" : sentence("files", changes);
}

std::string recipe_change(const std::string& key, const Json& before, const Json& after) {
  if (key == "files") return file_change(before, after);
  if (key == "run") return "the commands in `run` changed";
  if (after.is_array()) return list_change(key, before, after);
  if (before.is_string() && after.is_string())
    return fmt::format("{}: {} -> {}", key, before.get<std::string>(), after.get<std::string>());
  return key;
}

// Names each layer that was added, was removed, or has different steps.
std::string layer_change(const Json& before, const Json& after) {
  const auto by_name = [](const Json& list) {
    std::map<std::string, std::string> out;
    if (list.is_array())
      for (const Json& layer : list)
        if (layer.is_object()) out[layer.value("name", "?")] = dump_json(layer);
    return out;
  };
  const auto was = by_name(before), is = by_name(after);
  Names changes;
  for (const auto& [name, text] : is)
    if (const auto old = was.find(name); old == was.end())
      changes.push_back("+" + name);
    else if (old->second != text)
      changes.push_back(name);
  for (const auto& [name, text] : was)
    if (!is.count(name)) changes.push_back("-" + name);
  return changes.empty() ? "layers: order changed" : sentence("layers", changes);
}

void append(std::string& all, const std::string& one) { all += (all.empty() ? "" : "; ") + one; }

}  // namespace

Json build_inputs(const ImageRecipe& recipe, const std::string& variant, int builder_version,
                  const std::vector<ImageLayer>& layers) {
  Json out = {{"builder", builder_version},
              {"ram", ram_tree_version()},
              {"variant", variant},
              {"recipe", parse_json(canonical(recipe)).value_or(nullptr)}};
  for (const auto& layer : layers) out["layers"].push_back(to_json(layer));
  return out;
}

std::string input_changes(const Json& built, const Json& now) {
  if (built == now) return "";
  const Json was = built.is_object() ? built : Json::object();
  if (was.value("builder", Json()) != now["builder"] || was.value("ram", Json()) != now["ram"])
    return "this version of muster builds images differently";
  std::string out;
  const Json recipe = was.value("recipe", Json::object());
  if (was.value("variant", Json()) != now["variant"])
    append(out, recipe_change("kernel", was.value("variant", Json()), now["variant"]));
  for (const auto& [key, value] : now["recipe"].items())
    if (const Json before = recipe.is_object() ? recipe.value(key, Json()) : Json(); before != value)
      append(out, recipe_change(key == "kernel" ? "kernel packages" : key, before, value));
  if (const Json before = was.value("layers", Json()), after = now.value("layers", Json()); before != after)
    append(out, layer_change(before, after));
  return out.empty() ? "the keys of its recipe have changed since it was built" : out;
}

}  // namespace muster
