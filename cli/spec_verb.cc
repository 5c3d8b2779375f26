// muster spec: checks a file without a controller; shows the stored spec.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "cli/cli_context.h"
#include "cli/spec_file.h"
#include "cli/spec_revisions.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "controller/bringup/signed_gpu_results.h"
#include "controller/image/recipe.h"
#include "controller/options/options.h"
#include "controller/spec/lab_only.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

void add_folder(const std::string& folder, std::vector<std::string>& names) {
  for (const auto& entry : Files().list(std::filesystem::absolute(folder).string())) {
    const std::filesystem::path file = entry;
    if (file.extension() == ".yaml") names.push_back(file.stem().string());
  }
}

// Recipes of the controller come in place of shipped ones of the same name.
void add_recipes(const std::string& folder, std::vector<KnownRecipe>& recipes) {
  for (auto& one : known_recipes(std::filesystem::absolute(folder).string())) {
    std::erase_if(recipes, [&](const KnownRecipe& shipped) { return shipped.name == one.name; });
    recipes.push_back(std::move(one));
  }
}

// Returns the warnings instead.
Json add_zone_error(const std::string& spec, std::vector<SpecError>& errors) {
  const auto found = [](const SpecError& error) { return error.path == "time_zone"; };
  if (std::any_of(errors.begin(), errors.end(), found)) return Json::array();
  ZoneCheck zone = check_time_zone(spec, Files());
  if (zone.error) errors.push_back(std::move(*zone.error));
  return zone.warning.empty() ? Json::array() : Json::array({zone.warning});
}

struct CheckFlags {
  std::string path, playbooks, images;
};

void check(Context& context, const CheckFlags& flags) {
  const std::string& path = flags.path;
  auto file = read_spec_file(path);
  if (!file.ok()) return complain(context, file.error());
  SpecNames names = shipped_names();
  if (!flags.playbooks.empty()) {
    add_folder(flags.playbooks, names.playbooks);
    add_folder(flags.playbooks + "/acceptance", names.profiles);
  }
  // Without the option those that musterd would find on this machine, if it is installed here.
  const std::string images = flags.images.empty() ? with_defaults({}, "").images : flags.images;
  if (!images.empty()) add_recipes(images, names.recipes);
  if (flags.images.empty()) names.more_recipes = "recipes of your own: `--images DIR`";
  ParsedSpec parsed = parse_spec(file->text, names);
  parsed.errors.insert(parsed.errors.begin(), file->errors.begin(), file->errors.end());
  if (parsed.errors.empty())
    if (const auto results = gpu_results_of(parsed.spec); !results.ok())
      parsed.errors.push_back({0, 0, "", results.error().message});
  const Json warnings = add_zone_error(file->text, parsed.errors);
  Json errors = Json::array();
  for (const auto& e : parsed.errors)
    errors.push_back({{"file", e.file.empty() ? path : e.file},
                      {"line", e.line},
                      {"column", e.column},
                      {"path", e.path},
                      {"message", e.message}});
  context.exit = parsed.errors.empty() ? kAccepted : kUsage;
  const bool lab = !lab_only(parsed.spec).empty();
  show(context,
       {{"file", path},
        {"valid", parsed.errors.empty()},
        {"lab_only", lab},
        {"errors", errors},
        {"warnings", warnings}},
       [&] {
         for (const Json& warning : warnings)
           fmt::print(stderr, "{}: warning: {}\n", path, warning.get<std::string>());
         for (const auto& e : parsed.errors) fmt::print(stderr, "{}\n", to_string(e, path));
         if (parsed.errors.empty())
           fmt::print("{}: valid{}; cluster {}, {} node{}\n", path,
                      lab ? ", for a lab only (`muster lab up`)" : "", parsed.spec.cluster,
                      parsed.spec.nodes.size(), parsed.spec.nodes.size() == 1 ? "" : "s");
       });
}

struct ShowFlags {
  int64_t revision = 0, diff = 0;
};

void show_spec(Context& context, const ShowFlags& flags) {
  Api api(context);
  if (flags.diff > 0) {
    const auto diff = api.get(fmt::format("/v1/spec/diff?from={}&to={}", flags.diff, flags.revision));
    if (!diff.ok()) return complain(context, diff.error());
    return show(context, *diff, [&] { fmt::print("{}", diff->value("diff", "")); });
  }
  const auto spec = api.get(fmt::format("/v1/spec?rev={}", flags.revision));
  if (!spec.ok()) return complain(context, spec.error());
  show(context, *spec, [&] {
    // Beside the text, which may be going to a file.
    fmt::print(stderr, "revision {}, {}\n", spec->value("revision", int64_t{0}), stored_by(*spec));
    fmt::print("{}", spec->value("text", ""));
  });
}

}  // namespace

void add_spec(Verb& app, Context& context) {
  Verb& verb = app.add_verb("spec", "check, explain, show and compare the spec, which declares the cluster");
  verb.needs_verb();
  auto what = std::make_shared<CheckFlags>();
  Verb& check_verb = verb.add_verb("check", "report every error in a file; needs no controller");
  check_verb.add_option("SPEC", &what->path, "cluster.yaml").required();
  check_verb.add_option(
      "--playbooks", &what->playbooks,
      "folder of the controller's additional playbooks and acceptance profiles (musterd --playbooks)");
  check_verb.add_option("--images", &what->images,
                        "folder of the controller's image recipes (musterd --images); default: those of this "
                        "version, and of a musterd that is installed here");
  check_verb.example("muster spec check cluster.yaml");
  check_verb.runs([what, &context] { check(context, *what); });
  auto flags = std::make_shared<ShowFlags>();
  Verb& show_verb = verb.add_verb("show", "show the stored spec");
  show_verb.add_option("--rev", &flags->revision, "show this revision; default: the newest");
  show_verb.add_option("--diff", &flags->diff, "show what changed since this revision");
  show_verb.example("muster spec show > cluster.yaml").example("muster spec show --diff 3");
  show_verb.runs([flags, &context] { show_spec(context, *flags); });
  add_spec_revisions(verb, context);
  add_spec_explain(verb, context);
  verb.example("muster spec check cluster.yaml").example("muster spec diff cluster.yaml");
}

}  // namespace muster::cli
