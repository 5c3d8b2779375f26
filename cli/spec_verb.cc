// muster spec: checks a file without a controller; shows the stored spec.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/cli_context.h"
#include "cli/spec_check.h"
#include "cli/spec_file.h"
#include "cli/spec_revisions.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "controller/image/recipe.h"
#include "controller/options/options.h"
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

struct CheckFlags {
  std::vector<std::string> paths;
  std::string playbooks, images;
  bool strict = false;
};

SpecNames known_names(const CheckFlags& flags) {
  SpecNames names = shipped_names();
  if (!flags.playbooks.empty()) {
    add_folder(flags.playbooks, names.playbooks);
    add_folder(flags.playbooks + "/acceptance", names.profiles);
  }
  // Without the option those that musterd would find on this machine, if it is installed here.
  const std::string images = flags.images.empty() ? with_defaults({}, "").images : flags.images;
  if (!images.empty()) add_recipes(images, names.recipes);
  if (flags.images.empty()) names.more_recipes = "recipes of your own: `--images DIR`";
  return names;
}

// "-" is standard input; files that it names are looked for in the current folder.
Result<SpecFile> read_spec(const std::string& path) {
  if (path != "-") return read_spec_file(path);
  return read_spec_text(std::string(std::istreambuf_iterator<char>(std::cin), {}),
                        std::filesystem::current_path().string());
}

void show_checked(const CheckedSpec& checked) {
  fmt::print(stderr, "{}", finding_lines(checked));
  if (checked.valid()) fmt::print("{}\n", summary_line(checked));
}

void check(Context& context, const CheckFlags& flags) {
  const SpecNames names = known_names(flags);
  std::vector<CheckedSpec> all;
  for (const std::string& path : flags.paths) {
    const auto file = read_spec(path);
    if (!file.ok() && flags.paths.size() == 1) return complain(context, file.error());
    const std::string shown = path == "-" ? "<stdin>" : path;
    all.push_back(file.ok() ? check_spec(shown, *file, names, Files())
                            : CheckedSpec{.file = shown, .errors = {{0, 0, "", file.error().message}}});
    all.back().strict = flags.strict;
  }
  const bool valid = std::all_of(all.begin(), all.end(), [](const CheckedSpec& one) { return one.valid(); });
  context.exit = valid ? kAccepted : kUsage;
  Json files = Json::array();
  for (const CheckedSpec& one : all) files.push_back(json_of(one));
  show(context, all.size() == 1 ? files[0] : Json{{"valid", valid}, {"files", files}}, [&] {
    for (const CheckedSpec& one : all) show_checked(one);
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
  Verb& check_verb = verb.add_verb(
      "check", "report every error in a file, and warn of what would fail later; needs no controller");
  check_verb.add_option("SPEC", &what->paths, "cluster.yaml; several, or - for standard input").required();
  check_verb.add_flag("--strict", &what->strict, "warnings are errors: exit 2");
  check_verb.add_option(
      "--playbooks", &what->playbooks,
      "folder of the controller's additional playbooks and acceptance profiles (musterd --playbooks)");
  check_verb.add_option("--images", &what->images,
                        "folder of the controller's image recipes (musterd --images); default: those of this "
                        "version, and of a musterd that is installed here");
  check_verb.footer(
      "A warning that is right as it is, is left out by its code in the spec:\n"
      "  warnings: { silence: [ role-unused ] }   # codes: docs/spec.md, \"warnings\"\n"
      "Exit: 0 valid, 2 errors (with --strict also warnings)");
  check_verb.example("muster spec check cluster.yaml");
  check_verb.example("muster spec check --strict site/*.yaml");
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
