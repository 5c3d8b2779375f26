#include "controller/image/recipe.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>

#include "base/json.h"
#include "base/json_dump.h"
#include "controller/image/customize.h"
#include "sys/os.h"

namespace muster {
namespace {

// Collects all errors with their lines, so that they are reported together.
class Reader {
 public:
  explicit Reader(std::string source) : source_(std::move(source)) {}

  void problem(const YAML::Node& node, const std::string& what) {
    problems_ +=
        fmt::format("{}{}:{}: {}", problems_.empty() ? "" : "\n", source_, node.Mark().line + 1, what);
  }
  std::string text(const YAML::Node& node, const std::string& name) {
    if (node.IsScalar()) return node.Scalar();
    problem(node, name + ": expected text");
    return "";
  }
  std::vector<std::string> texts(const YAML::Node& node, const std::string& name) {
    std::vector<std::string> out;
    if (!node.IsSequence()) {
      problem(node, name + ": expected a list");
      return out;
    }
    for (const auto& item : node) out.push_back(text(item, name));
    return out;
  }
  void known_keys(const YAML::Node& map, const std::set<std::string>& keys) {
    for (const auto& pair : map)
      if (!keys.count(pair.first.Scalar()))
        problem(pair.first, "unknown key \"" + pair.first.Scalar() + "\"");
  }
  Status finish() const { return problems_.empty() ? Status(Ok{}) : fail(Code::invalid, problems_); }

 private:
  std::string source_;
  std::string problems_ = {};
};

RecipeFile read_file(Reader& r, const YAML::Node& node) {
  RecipeFile f;
  if (!node.IsMap()) {
    r.problem(node, "files: expected {path, content, mode}");
    return f;
  }
  r.known_keys(node, {"path", "content", "mode"});
  if (node["path"]) f.path = r.text(node["path"], "path");
  if (node["content"]) f.content = r.text(node["content"], "content");
  if (node["mode"]) {
    const std::string mode = r.text(node["mode"], "mode");
    if (mode.empty() || mode.size() > 4 || mode.find_first_not_of("01234567") != std::string::npos)
      r.problem(node["mode"], "mode: expected octal digits, like 0644");
    else
      f.mode = static_cast<unsigned>(std::stoul(mode, nullptr, 8));
  }
  if (f.path.empty() || f.path[0] != '/' || f.path.find("..") != std::string::npos)
    r.problem(node, "files: path must be absolute");
  else if (is_own_of_machine(f.path))
    r.problem(
        node,
        f.path +
            ": every machine has its own; an image must not contain one, because any client can read images");
  return f;
}

// True if the suite has the pockets `updates` and `security`; the development distribution has neither.
bool has_pockets(const std::string& suite) {
  return suite != "sid" && suite != "unstable" && suite != "experimental";
}

// An image without the release's security updates must not be made by accident: their location is derived
// from the mirror, or must be given.
void read_mirror(Reader& r, const YAML::Node& root, ImageRecipe& out) {
  if (root["mirror"]) out.mirror = without_slash(r.text(root["mirror"], "mirror"));
  for (const char* key : {"security_mirror", "updates"})
    if (root[key] && out.mirror.empty())
      r.problem(root[key], std::string(key) + ": allowed only together with `mirror`");
  if (root["updates"]) {
    const std::string value = r.text(root["updates"], "updates");
    if (value != "true" && value != "false") r.problem(root["updates"], "updates: expected true or false");
    out.updates = value != "false";
  }
  if (out.mirror.empty()) return;
  if (root["security_mirror"]) {
    out.security_mirror = without_slash(r.text(root["security_mirror"], "security_mirror"));
    if (out.security_mirror.empty())
      r.problem(root["security_mirror"], "security_mirror: expected a URL or `none`");
    return;
  }
  if (!root["mirror"]) return;  // the mirror and pockets of the base recipe apply
  out.security_mirror = has_pockets(out.suite) ? security_beside(out.mirror) : kNoMirror;
  if (out.security_mirror.empty())
    r.problem(root["mirror"],
              fmt::format("mirror: the mirror for security updates of {0} cannot be derived from {1}: give "
                          "`security_mirror: URL`, or `security_mirror: none` if the mirror has none",
                          out.suite, out.mirror));
}

// The component non-free-firmware exists from Debian 12 on.
void check_firmware(Reader& r, const YAML::Node& node, const ImageRecipe& recipe) {
  for (const auto& name : recipe.firmware)
    if (name.size() < 2 ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+.-") != std::string::npos)
      r.problem(node, fmt::format("firmware: '{}' is not a package name", name));
  if (!recipe.firmware.empty())
    for (const char* old : {"buster", "bullseye", "oldoldstable"})
      if (recipe.suite == old)
        r.problem(node, fmt::format("firmware: {} has no component non-free-firmware", recipe.suite));
}

ImageRecipe read_recipe(Reader& r, const YAML::Node& root, const ImageRecipe* base) {
  ImageRecipe out = base ? *base : ImageRecipe{};
  r.known_keys(root, {"from", "suite", "mirror", "security_mirror", "updates", "kernel", "packages",
                      "firmware", "exclude", "mask", "disable", "enable", "files", "run"});
  if (root["suite"])
    out.suite = r.text(root["suite"], "suite");
  else if (!base)
    r.problem(root, "suite: missing");
  read_mirror(r, root, out);
  if (root["kernel"] && root["kernel"].IsMap()) {
    r.known_keys(root["kernel"], {"cloud", "full"});
    for (const auto& pair : root["kernel"]) out.kernel[pair.first.Scalar()] = r.text(pair.second, "kernel");
  }
  if (out.kernel.empty()) r.problem(root, "kernel: at least one of `cloud` and `full` is required");
  const std::pair<const char*, std::vector<std::string>*> lists[] = {
      {"packages", &out.packages}, {"firmware", &out.firmware}, {"exclude", &out.exclude},
      {"mask", &out.mask},         {"disable", &out.disable},   {"enable", &out.enable}};
  for (const auto& [key, list] : lists)
    if (root[key])
      for (auto& item : r.texts(root[key], key)) list->push_back(std::move(item));
  check_firmware(r, root["firmware"], out);
  if (const auto files = root["files"]; files && files.IsSequence())
    for (const auto& item : files) out.files.push_back(read_file(r, item));
  else if (files)
    r.problem(files, "files: expected a list");
  if (const auto run = root["run"]; run && run.IsSequence()) {
    for (const auto& item : run) {
      out.run.push_back(r.texts(item, "run"));
      if (out.run.back().empty()) r.problem(item, "run: an empty command");
    }
  } else if (run) {
    r.problem(run, "run: expected a list");
  }
  return out;
}

// Returns the recipe that `from` in `text` names; "" if none.
Result<std::string> base_of(const std::string& text, const std::string& source) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap() || !root["from"]) return std::string();
    const std::string name = root["from"].IsScalar() ? root["from"].Scalar() : "";
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
      return fail(Code::invalid, fmt::format("{}:{}: from: expected the name of a recipe", source,
                                             root["from"].Mark().line + 1));
    return name;
  } catch (const YAML::Exception& e) {
    return fail(Code::invalid, fmt::format("{}:{}: {}", source, e.mark.line + 1, e.msg));
  }
}

}  // namespace

Result<ImageRecipe> load_recipe(const std::string& folder, const std::string& name) {
  const Files files("/");
  const std::string path = folder + "/" + name + ".yaml";
  TRY(const std::string text, files.read(path));
  TRY(const std::string from, base_of(text, path));
  if (from.empty()) return parse_recipe(text, path);
  const std::string below = folder + "/" + from + ".yaml";
  auto base_text = files.read(below);
  if (!base_text) return std::move(base_text).error().with(path + ": from");
  TRY(const std::string third, base_of(*base_text, below));
  if (!third.empty())
    return fail(Code::invalid, fmt::format("{}: from: recipe {} must not have a `from` itself", path, from));
  TRY(const ImageRecipe base, parse_recipe(*base_text, below));
  return parse_recipe(text, path, &base);
}

Result<ImageRecipe> parse_recipe(const std::string& text, const std::string& source,
                                 const ImageRecipe* base) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return fail(Code::invalid, source + ": expected a mapping");
    Reader r(source);
    if (root["from"] && !base) r.problem(root["from"], "from: allowed only in a file in a recipe folder");
    ImageRecipe recipe = read_recipe(r, root, base);
    TRY_(r.finish());
    return recipe;
  } catch (const YAML::Exception& e) {
    return fail(Code::invalid, fmt::format("{}:{}: {}", source, e.mark.line + 1, e.msg));
  }
}

std::string canonical(const ImageRecipe& recipe) {
  Json files = Json::array();
  for (const auto& f : recipe.files)
    files.push_back({{"path", f.path}, {"content", f.content}, {"mode", f.mode}});
  Json j = {{"suite", recipe.suite},
            {"mirror", recipe.mirror},
            {"kernel", recipe.kernel},
            {"packages", recipe.packages},
            {"exclude", recipe.exclude},
            {"mask", recipe.mask},
            {"disable", recipe.disable},
            {"enable", recipe.enable},
            {"files", files},
            {"run", recipe.run}};
  // Only for recipes with a mirror, so that the text of all other recipes, and with it the key of their
  // images, is unchanged.
  if (!recipe.mirror.empty())
    j["pockets"] = {{"updates", recipe.updates}, {"security", recipe.security_mirror}};
  if (!recipe.firmware.empty()) j["firmware"] = recipe.firmware;
  return dump_json(j);
}

std::string with_component(const std::string& sources, const std::string& component) {
  std::string out;
  std::istringstream in(sources);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    bool known = false;
    for (std::string word; words >> word;) known = known || word == component;
    out += line + (known ? "\n" : " " + component + "\n");
  }
  return out;
}

std::vector<AptSource> parse_index_targets(const std::string& text) {
  std::vector<AptSource> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> fields;
    std::istringstream split(line);
    for (std::string field; std::getline(split, field, '|');) fields.push_back(field);
    if (fields.size() < 3) continue;
    AptSource s{without_slash(fields[0]), fields[1], fields[2]};
    // apt prints the placeholder unchanged if the repository has no key.
    if (fields.size() > 3 && !fields[3].starts_with("$(")) s.signed_by = fields[3];
    out.push_back(std::move(s));
  }
  return out;
}

void use_mirror(ImageRecipe& recipe, const AptMirror& declared) {
  if (!declared.declared()) return;
  recipe.mirror = declared.mirror;
  recipe.security_mirror = has_pockets(recipe.suite) ? declared.security : kNoMirror;
  recipe.updates = declared.updates;
}

std::string sources_of_mirror(const ImageRecipe& recipe, const std::string& keyring) {
  const std::string deb = keyring.empty() ? "deb " : "deb [signed-by=" + keyring + "] ";
  std::string out = fmt::format("{}{} {} main\n", deb, recipe.mirror, recipe.suite);
  if (recipe.updates && has_pockets(recipe.suite))
    out += fmt::format("{}{} {}-updates main\n", deb, recipe.mirror, recipe.suite);
  if (recipe.security_mirror != kNoMirror)
    out += fmt::format("{}{} {}-security main\n", deb, recipe.security_mirror, recipe.suite);
  return out;
}

Result<std::string> sources_for(const std::vector<AptSource>& host, const std::string& host_suite,
                                const std::string& suite, const std::string& keyring) {
  // (suffix, uri) -> components, so that the text does not depend on apt's order.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> found;
  for (const auto& s : host) {
    if (!s.suite.starts_with(host_suite)) continue;
    const std::string suffix = s.suite.substr(host_suite.size());
    if (suffix.empty() || suffix == "-updates" || suffix == "-security")
      found[{suffix, s.uri}].insert(s.component);
  }
  if (found.empty() || !found.begin()->first.first.empty())
    return fail(Code::not_found, "the host's apt sources contain no repository for Debian " + host_suite +
                                     ": set `mirror` in the recipe");
  std::string out;
  for (const auto& [key, components] : found) {
    out += fmt::format("deb {}{} {}{}", keyring.empty() ? "" : "[signed-by=" + keyring + "] ", key.second,
                       suite, key.first);
    for (const auto& c : components) out += " " + c;
    out += "\n";
  }
  return out;
}

}  // namespace muster
