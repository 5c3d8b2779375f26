#include "controller/image/recipe.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "base/json_dump.h"
#include "base/split.h"
#include "controller/image/customize.h"
#include "controller/spec/schema.h"
#include "sys/os.h"

namespace muster {
namespace {

// Texts are limited by the size of the file, not by the checker's default.
constexpr const char* kSchema = R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "from": {},
    "suite": {"$ref": "#/$defs/text"},
    "mirror": {"$ref": "#/$defs/text"},
    "security_mirror": {"$ref": "#/$defs/text"},
    "updates": {"type": "string", "enum": ["true", "false"]},
    "kernel": {
      "additionalProperties": false,
      "properties": {"cloud": {"$ref": "#/$defs/text"}, "full": {"$ref": "#/$defs/text"}}
    },
    "packages": {"$ref": "#/$defs/texts"},
    "firmware": {
      "type": "array",
      "items": {"type": "string", "pattern": "^[a-z0-9+.-]{2,}$", "x-form": "a package name"}
    },
    "exclude": {"$ref": "#/$defs/texts"},
    "mask": {"$ref": "#/$defs/texts"},
    "disable": {"$ref": "#/$defs/texts"},
    "enable": {"$ref": "#/$defs/texts"},
    "files": {
      "type": "array",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "properties": {
          "path": {"$ref": "#/$defs/text"},
          "content": {"$ref": "#/$defs/text"},
          "mode": {"type": "string", "pattern": "^[0-7]{1,4}$", "x-form": "octal digits, like 0644"}
        }
      }
    },
    "run": {"type": "array", "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/text"}}}
  },
  "$defs": {
    "text": {"type": "string", "maxLength": 4194304},
    "texts": {"type": "array", "items": {"$ref": "#/$defs/text"}}
  }
})";

using Errors = std::vector<SpecError>;

void add_problem(Errors& errors, const YamlNode& at, const std::string& path, const std::string& what) {
  errors.push_back({at.line, at.column, path, what});
}

std::vector<std::string> texts_of(const YamlNode& list) {
  std::vector<std::string> out;
  for (const YamlNode& item : list.items) out.push_back(item.text);
  return out;
}

RecipeFile read_file(const YamlNode& node, const std::string& at, Errors& errors) {
  RecipeFile f{yaml_text(&node, "path"), yaml_text(&node, "content")};
  if (node.find("mode"))
    f.mode = static_cast<unsigned>(std::strtoul(yaml_text(&node, "mode").c_str(), nullptr, 8));
  if (f.path.empty() || f.path[0] != '/' || has(f.path, ".."))
    add_problem(errors, node, at + ".path", "must be absolute");
  else if (is_own_of_machine(f.path))
    add_problem(errors, node, at + ".path",
                f.path +
                    ": every machine has its own; an image must not contain one, because any client can read "
                    "images");
  return f;
}

// True if the suite has the pockets `updates` and `security`; the development distribution has neither.
bool has_pockets(const std::string& suite) {
  return suite != "sid" && suite != "unstable" && suite != "experimental";
}

// Security updates must not be left out by accident: their location is derived from the mirror or given.
void read_mirror(const YamlNode& root, ImageRecipe& out, Errors& errors) {
  const YamlNode* mirror = root.find("mirror");
  if (mirror) out.mirror = without_slash(mirror->text);
  for (const char* key : {"security_mirror", "updates"})
    if (const YamlNode* at = root.find(key); at && out.mirror.empty())
      add_problem(errors, *at, key, "allowed only together with `mirror`");
  if (root.find("updates")) out.updates = yaml_text(&root, "updates") != "false";
  if (out.mirror.empty()) return;
  if (const YamlNode* security = root.find("security_mirror")) {
    out.security_mirror = without_slash(security->text);
    if (out.security_mirror.empty())
      add_problem(errors, *security, "security_mirror", "expected a URL or `none`");
    return;
  }
  if (!mirror) return;  // the mirror and pockets of the base recipe apply
  out.security_mirror = has_pockets(out.suite) ? security_beside(out.mirror) : kNoMirror;
  if (out.security_mirror.empty())
    add_problem(errors, *mirror, "mirror",
                fmt::format("the mirror for security updates of {0} cannot be derived from {1}: give "
                            "`security_mirror: URL`, or `security_mirror: none` if the mirror has none",
                            out.suite, out.mirror));
}

// The component non-free-firmware exists from Debian 12 on.
void check_firmware(const YamlNode& root, const ImageRecipe& recipe, Errors& errors) {
  const YamlNode* list = root.find("firmware");
  if (recipe.firmware.empty()) return;
  for (const char* old : {"buster", "bullseye", "oldoldstable"})
    if (recipe.suite == old)
      add_problem(errors, list ? *list : root, "firmware",
                  recipe.suite + " has no component non-free-firmware");
}

ImageRecipe read_recipe(const YamlNode& root, const ImageRecipe* base, Errors& errors) {
  ImageRecipe out = base ? *base : ImageRecipe{};
  if (root.find("suite"))
    out.suite = yaml_text(&root, "suite");
  else if (!base)
    add_problem(errors, root, "", "missing key 'suite'");
  read_mirror(root, out, errors);
  if (const YamlNode* kernel = root.find("kernel"))
    for (const YamlEntry& entry : kernel->entries) out.kernel[entry.key] = entry.value.text;
  if (out.kernel.empty())
    add_problem(errors, root, "kernel", "at least one of `cloud` and `full` is required");
  const std::pair<const char*, std::vector<std::string>*> lists[] = {
      {"packages", &out.packages}, {"firmware", &out.firmware}, {"exclude", &out.exclude},
      {"mask", &out.mask},         {"disable", &out.disable},   {"enable", &out.enable}};
  for (const auto& [key, list] : lists)
    if (const YamlNode* given = root.find(key))
      for (auto& item : texts_of(*given)) list->push_back(std::move(item));
  check_firmware(root, out, errors);
  if (const YamlNode* files = root.find("files"))
    for (size_t i = 0; i < files->items.size(); ++i)
      if (files->items[i].is_map())
        out.files.push_back(read_file(files->items[i], fmt::format("files[{}]", i), errors));
  if (const YamlNode* run = root.find("run"))
    for (const YamlNode& item : run->items) out.run.push_back(texts_of(item));
  return out;
}

Error invalid(Errors errors, const std::string& source) {
  sort_errors(errors);
  return fail(Code::invalid, to_string(errors, source));
}

// Returns the recipe that `from` in `text` names; "" if none.
Result<std::string> base_of(const std::string& text, const std::string& source) {
  const ParsedYaml yaml = parse_yaml(text);
  if (!yaml.errors.empty()) return invalid(yaml.errors, source);
  const YamlNode* from = yaml_child(&yaml.root, "from");
  if (!from) return std::string();
  const std::string name = from->text;
  if (name.empty() || name[0] == '.' || has(name, "/"))
    return invalid({{from->line, from->column, "from", "expected the name of a recipe"}}, source);
  return name;
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
  static const Json schema = parse_json(kSchema).value_or(nullptr);
  ParsedYaml yaml = parse_yaml(text);
  if (yaml.errors.empty()) check_schema(yaml.root, schema, yaml.errors);
  if (!yaml.root.is_map()) return invalid(yaml.errors, source);
  if (const YamlNode* from = yaml.root.find("from"); from && !base)
    add_problem(yaml.errors, *from, "from", "allowed only in a file in a recipe folder");
  ImageRecipe recipe = read_recipe(yaml.root, base, yaml.errors);
  if (!yaml.errors.empty()) return invalid(yaml.errors, source);
  return recipe;
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
  // Only with a mirror, so that the text, and with it the image's key, of all other recipes is unchanged.
  if (!recipe.mirror.empty())
    j["pockets"] = {{"updates", recipe.updates}, {"security", recipe.security_mirror}};
  if (!recipe.firmware.empty()) j["firmware"] = recipe.firmware;
  return dump_json(j);
}

std::string with_component(const std::string& sources, const std::string& component) {
  std::string out;
  for (const std::string& line : split_lines(sources)) {
    bool known = false;
    for (const std::string& word : split_words(line)) known = known || word == component;
    out += line + (known ? "\n" : " " + component + "\n");
  }
  return out;
}

std::vector<AptSource> parse_index_targets(const std::string& text) {
  std::vector<AptSource> out;
  for (const std::string& line : split_lines(text)) {
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
