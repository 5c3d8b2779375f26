#include "controller/image/recipe.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/release_sources.h"
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
    "distribution": {"$ref": "#/$defs/text"},
    "suite": {"$ref": "#/$defs/text"},
    "components": {
      "type": "array",
      "minItems": 1,
      "uniqueItems": true,
      "items": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$", "x-form": "the name of a component"}
    },
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

const Distribution& distribution_of(const ImageRecipe& recipe) {
  const Distribution* known = find_distribution(recipe.distribution);
  return known ? *known : default_distribution();
}

void read_distribution(const YamlNode& root, const ImageRecipe* base, ImageRecipe& out, Errors& errors) {
  if (const YamlNode* at = root.find("distribution")) {
    out.distribution = at->text;
    if (!find_distribution(out.distribution))
      add_problem(errors, *at, "distribution",
                  fmt::format("unknown distribution '{}'; known: {}", at->text, known_distributions()));
    else if (base && base->distribution != out.distribution)
      add_problem(errors, *at, "distribution", "the recipe that `from` names is of " + base->distribution);
  }
  const YamlNode* suite = root.find("suite");
  if (suite)
    out.suite = suite->text;
  else if (!base)
    add_problem(errors, root, "", "missing key 'suite'");
  const Release* release = find_release(out.suite);
  if (release && find_distribution(out.distribution) && release->distribution != out.distribution)
    add_problem(errors, suite ? *suite : root, "suite",
                fmt::format("{} is a release of {}, and this recipe is of {}: give `distribution: {}`",
                            out.suite, release->distribution, out.distribution, release->distribution));
}

void read_components(const YamlNode& root, ImageRecipe& out, Errors& errors) {
  const YamlNode* list = root.find("components");
  if (!list) return;
  out.components = texts_of(*list);
  const std::string& first = distribution_of(out).components.front();
  if (!out.components.empty() && out.components.front() != first)
    add_problem(errors, *list, "components",
                fmt::format("must begin with {}, which every mirror has", first));
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
  const Distribution& distribution = distribution_of(out);
  if (const Distribution* other = mirror ? mirror_of_another(distribution, out.mirror) : nullptr)
    add_problem(errors, *mirror, "mirror",
                fmt::format("{} is a mirror of {}, and this recipe is of {}", out.mirror, other->title,
                            distribution.title));
  if (const YamlNode* security = root.find("security_mirror")) {
    out.security_mirror = without_slash(security->text);
    if (out.security_mirror.empty())
      add_problem(errors, *security, "security_mirror", "expected a URL or `none`");
    return;
  }
  if (!mirror) return;  // the mirror and pockets of the base recipe apply
  out.security_mirror =
      has_pockets(distribution, out.suite) ? security_of(distribution, out.mirror) : kNoMirror;
  if (out.security_mirror.empty())
    add_problem(errors, *mirror, "mirror",
                fmt::format("the mirror for security updates of {0} cannot be derived from {1}: give "
                            "`security_mirror: URL`, or `security_mirror: none` if the mirror has none",
                            out.suite, out.mirror));
}

// Where firmware has a component, only later releases have it.
void check_firmware(const YamlNode& root, const ImageRecipe& recipe, Errors& errors) {
  const std::string& component = distribution_of(recipe).firmware_component;
  const Release* release = find_release(recipe.suite);
  if (recipe.firmware.empty() || component.empty() || !release || release->firmware_component) return;
  const YamlNode* list = root.find("firmware");
  add_problem(errors, list ? *list : root, "firmware", recipe.suite + " has no component " + component);
}

ImageRecipe read_recipe(const YamlNode& root, const ImageRecipe* base, Errors& errors) {
  ImageRecipe out = base ? *base : ImageRecipe{};
  read_distribution(root, base, out, errors);
  read_components(root, out, errors);
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

std::vector<KnownRecipe> known_recipes(const std::string& folder) {
  constexpr std::string_view kSuffix = ".yaml";
  std::vector<KnownRecipe> out;
  for (const auto& file : Files("/").list(folder)) {
    if (!file.ends_with(kSuffix)) continue;
    KnownRecipe one{file.substr(0, file.size() - kSuffix.size())};
    if (const auto recipe = load_recipe(folder, one.name); recipe.ok()) {
      one.distribution = recipe->distribution;
      one.mirror = !recipe->mirror.empty();
    } else {
      one.error = recipe.error().message;
    }
    out.push_back(std::move(one));
  }
  return out;
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
  if (recipe.distribution != default_distribution().id) j["distribution"] = recipe.distribution;
  if (!recipe.components.empty() && recipe.components != distribution_of(recipe).components)
    j["components"] = recipe.components;
  if (!recipe.key.empty()) j["key"] = sha256(recipe.key);
  return dump_json(j);
}

}  // namespace muster
