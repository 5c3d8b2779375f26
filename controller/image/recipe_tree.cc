#include "controller/image/recipe_tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/utf8.h"
#include "controller/image/customize.h"
#include "controller/image/shared_cache.h"
#include "sys/clock.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackages = "/packages.tar";
constexpr const char* kRecord = "/built.json";  // written last

// The builder leaves the sources in sources.list, with its own path of the key: some releases have them in
// another file, and a declared key has another path on nodes.
ImageRecipe with_sources(const RecipeTree& b) {
  ImageRecipe out = b.recipe;
  if (!b.recipe.key.empty()) out.files.push_back({kMirrorKey, b.recipe.key});
  if (b.sources.file == kSourcesList && b.recipe.key.empty()) return out;
  out.files.push_back({b.sources.file, b.sources.text});
  if (b.sources.file != kSourcesList) out.files.push_back({kSourcesList, ""});
  return out;
}

// Why mmdebstrap has not made what was ordered; it ends well if only a component is missing.
Status made(const RecipeTree& b, const Result<Output>& out) {
  const std::string what =
      "building the " + distribution_title(b.recipe.distribution) + " tree" +
      (b.recipe.mirror.empty() ? "" : " from the declared mirror (release, `updates`, `security_mirror`)");
  if (!out) return Error(out.error()).with(what);
  const std::string all = out->err + out->out;
  const std::string component = orders_components(b.recipe) ? missing_component(all) : "";
  if (out->ok() && component.empty()) return Ok{};
  if (out->ok()) return fail(Code::failed, what + ": " + component);
  const std::string reasons = apt_complaints(all);
  return fail(Code::failed, fmt::format("{}: mmdebstrap exited with {}: {}", what, out->exit_code,
                                        reasons.empty() ? end_of_output(all, 600) : reasons));
}

// What both steps have in common.
Command mmdebstrap(const RecipeTree& b, const std::string& variant, const std::string& format) {
  Command c;
  c.argv = {"mmdebstrap", ::geteuid() == 0 ? "--mode=root" : "--mode=unshare", "--variant=" + variant,
            "--format=" + format, "--verbose"};  // else what apt warns of is lost
  c.input = b.sources.lines;
  c.env = installation_environment();
  c.env["SOURCE_DATE_EPOCH"] = kBuildEpoch;
  c.env["TMPDIR"] = b.stage;
  c.deadline = 40 * kMinute;
  return c;
}

// The recipe's files and commands are not in it: they come with the second step.
std::string key_of_packages(const RecipeTree& b) {
  return sha256(dump_json(Json{{"builder", b.builder},
                               {"distribution", b.recipe.distribution},
                               {"suite", b.recipe.suite},
                               {"ordered", orders_components(b.recipe)},  // is one that is missing an error?
                               {"packages", b.recipe.packages},
                               {"exclude", b.recipe.exclude},
                               {"sources", b.sources.text},
                               {"mirror key", b.recipe.key}}));
}

bool usable(const std::string& folder) {
  const auto text = Files("/").read(folder + kRecord);
  const auto record = text ? parse_json(*text) : Result<Json>(text.error());
  if (!record || !record->is_object()) return false;
  const DurationMs age = wall_clock() - integer_at(*record, "built_at");
  std::error_code ec;
  const auto bytes = static_cast<int64_t>(fs::file_size(folder + kPackages, ec));
  return age >= 0 && age < kPackagesReused && !ec && bytes == integer_at(*record, "bytes");
}

// Makes <stage>/bootstrap, which holds the archive.
Status install_packages(const RecipeTree& b) {
  const std::string folder = b.stage + "/bootstrap";
  TRY_(Files("/").make_directories(folder, 0755));
  Command c = mmdebstrap(b, "minbase", "tar");
  c.argv.insert(c.argv.end(),
                {"--skip=output/dev",  // not even the folder: in a user namespace nothing can make devices
                 "--include=" + fmt::format("{}", fmt::join(b.recipe.packages, ",")),
                 "--aptopt=APT::Install-Recommends \"false\""});
  // The second step writes these two itself: the path of the mirror's key differs in each build, and the
  // resolver may.
  c.argv.push_back("--customize-hook=rm -f \"$1\"/etc/apt/sources.list \"$1\"/etc/resolv.conf");
  for (const auto& pattern : b.recipe.exclude) c.argv.push_back("--dpkgopt=path-exclude=" + pattern);
  c.argv.insert(c.argv.end(), {b.recipe.suite, folder + kPackages, "-"});
  int stages = 0;
  c.on_output = [&](std::string_view text) {
    if (text.find("I: ") != std::string_view::npos)
      b.progress("packages", 0.05 + 0.07 * std::min(++stages, 8));
  };
  TRY_(made(b, b.process.run(c)));
  std::error_code ec;
  const uint64_t bytes = fs::file_size(folder + kPackages, ec);
  if (ec) return fail(Code::failed, folder + kPackages + ": " + ec.message());
  return Files("/").write(folder + kRecord, dump_json(Json{{"built_at", wall_clock()}, {"bytes", bytes}}));
}

// Fetches the archive from the shared cache into `stage`; false: there is none, or it is too old or
// damaged.
bool fetch_packages(const RecipeTree& b, const std::string& key, const std::string& stage) {
  if (b.shared_cache.empty() || b.rebuild) return false;
  const auto fetched = fetch_build(b.shared_cache, key, stage);
  if (fetched.ok() && usable(stage)) return true;
  std::error_code ec;
  fs::remove_all(stage, ec);
  return false;
}

// Returns the folder with the archive: the image's own, else that of the shared cache, else a new one.
Result<std::string> packages_of(const RecipeTree& b) {
  const std::string key = key_of_packages(b), all = b.folder + "/.bootstrap";
  const std::string folder = all + "/" + key.substr(key.find(':') + 1), stage = b.stage + "/bootstrap";
  if (!b.rebuild && usable(folder)) {
    b.progress("packages: reused from the last build", 0.05);
    return folder;
  }
  const bool shared = fetch_packages(b, key, stage);
  b.progress(shared ? "packages: taken from the shared cache" : "packages", 0.05);
  if (!shared) TRY_(install_packages(b));
  std::error_code ec;
  fs::remove_all(all, ec);  // only now: it is of use again if these packages were a mistake
  TRY_(Files("/").make_directories(all, 0755));
  fs::rename(stage, folder, ec);
  if (ec) return fail(Code::failed, folder + ": " + ec.message());
  if (shared || b.shared_cache.empty()) return folder;
  // An existing entry is too old or damaged.
  if (Status kept = keep_build(b.shared_cache, key, folder, true); !kept.ok())
    return std::move(kept).error().with("the shared image cache");
  return folder;
}

}  // namespace

std::map<std::string, std::string> installation_environment() {
  // The kernel package's hook would take half a minute to make an initrd that is never booted. A tree that
  // was not completed is thrown away, and a layer is synced before it is kept (layers.cc): dpkg need not wait
  // for the drive with each file.
  return {{"INITRD", "No"}, {"DPKG_FORCE", "unsafe-io"}};
}

std::string own_key(const std::string& stage) { return stage + "/mirror.asc"; }

Status make_recipe_tree(const RecipeTree& b) {
  const Files files("/");
  const std::string overlay = b.stage + "/overlay";
  const ImageRecipe recipe = with_sources(b);
  if (!recipe.key.empty()) TRY_(files.write(own_key(b.stage), recipe.key));
  TRY(const std::string packages, packages_of(b));
  for (size_t i = 0; i < recipe.files.size(); ++i)
    TRY_(files.write(fmt::format("{}/{}", overlay, i), recipe.files[i].content, recipe.files[i].mode));
  const std::string script = b.stage + "/customize.sh";
  TRY_(files.write(script, customize_script(recipe, overlay), 0755));
  Command c = mmdebstrap(b, "custom", "directory");
  c.argv.insert(c.argv.end(), {"--setup-hook=tar-in '" + packages + kPackages + "' /",
                               "--setup-hook=mkdir -p \"$1\"/dev", "--customize-hook=" + script});
  // Commands may install packages, for which apt needs the lists that the first step removed.
  if (recipe.run.empty()) c.argv.push_back("--skip=update");
  c.argv.insert(c.argv.end(), {b.recipe.suite, b.stage + "/tree", "-"});
  return made(b, b.process.run(c));
}

}  // namespace muster
