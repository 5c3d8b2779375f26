#include "controller/image/mirror_look.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/digest.h"
#include "base/utf8.h"
#include "controller/image/package_sources.h"

namespace muster {
namespace {

using Complaints = Result<std::string>;  // "": none

class Look {
 public:
  Look(const MirrorLookParts& parts, DurationMs limit) : parts_(parts), end_(parts.now() + limit) {}

  Complaints at(const ImageRequest& image) {
    const auto recipe = effective_recipe(image);
    if (!recipe.ok()) return recipe.error().message;
    const std::string key = parts_.folder + "/" + image.name + ".asc";
    if (!recipe->key.empty()) TRY_(Files("/").write(key, recipe->key));
    const auto sources = find_sources(*recipe, key, parts_.host, parts_.process);
    if (!sources.ok()) return sources.error().message;
    TRY(const std::string lists, updated(*recipe, sources->lines));
    if (!lists.empty()) return lists;
    std::vector<std::string> argv = {"apt-get", "-q", "--simulate", "install"};
    argv.insert(argv.end(), recipe->packages.begin(), recipe->packages.end());
    TRY(const Output out, apt(sources->lines, argv));
    return out.ok() ? "" : complaints(out);
  }

 private:
  std::string folder_of(const std::string& lines) const {
    return parts_.folder + "/" + short_digest(sha256(lines));
  }

  // The package lists of these sources, once for all images that have them.
  Complaints updated(const ImageRecipe& recipe, const std::string& lines) {
    const auto known = updated_.find(lines);
    if (known != updated_.end()) return known->second;
    TRY_(write_settings(lines));
    TRY(const Output out, apt(lines, {"apt-get", "-q", "update", "--error-on=any"}));
    std::string wrong = out.ok() ? "" : complaints(out);
    if (wrong.empty() && orders_components(recipe)) wrong = missing_component(out.err + out.out);
    return updated_[lines] = wrong;
  }

  Status write_settings(const std::string& lines) const {
    const Files files("/");
    const std::string folder = folder_of(lines);
    for (const char* below : {"/state/lists/partial", "/cache/archives/partial"})
      TRY_(files.make_directories(folder + below));
    TRY_(files.write(folder + "/sources.list", lines));
    TRY_(files.write(folder + "/status", ""));
    return files.write(folder + "/apt.conf",
                       fmt::format("Dir::Etc::main \"/dev/null\";\n"
                                   "Dir::Etc::parts \"/dev/null\";\n"
                                   "Dir::Etc::sourcelist \"{0}/sources.list\";\n"
                                   "Dir::Etc::sourceparts \"/dev/null\";\n"
                                   "Dir::Etc::preferences \"/dev/null\";\n"
                                   "Dir::Etc::preferencesparts \"/dev/null\";\n"
                                   "Dir::State \"{0}/state\";\n"
                                   "Dir::State::status \"{0}/status\";\n"
                                   "Dir::Cache \"{0}/cache\";\n"
                                   "APT::Install-Recommends \"false\";\n"
                                   "APT::Sandbox::User \"root\";\n"  // others cannot enter the folder
                                   "Acquire::Languages \"none\";\n"
                                   "Acquire::Retries \"0\";\n"
                                   "Acquire::http::Timeout \"10\";\n"
                                   "Acquire::https::Timeout \"10\";\n",
                                   folder));
  }

  Result<Output> apt(const std::string& lines, const std::vector<std::string>& argv) {
    const DurationMs left = end_ - parts_.now();
    if (left <= 0) return fail(Code::timeout, "no time was left to look at its mirror");
    Command command;
    command.argv = argv;
    command.env = {{"APT_CONFIG", folder_of(lines) + "/apt.conf"}, {"LC_ALL", "C.UTF-8"}};
    command.deadline = left;
    command.max_output = 16 << 20;
    return parts_.process.run(command);
  }

  static std::string complaints(const Output& out) {
    const std::string all = out.err + out.out, reasons = apt_complaints(all);
    return reasons.empty() ? fmt::format("apt-get exited with {}: {}", out.exit_code, end_of_output(all, 600))
                           : reasons;
  }

  const MirrorLookParts& parts_;
  const SteadyMs end_;
  std::map<std::string, std::string> updated_;  // by the sources' lines
};

}  // namespace

std::map<std::string, Result<std::string>> look_at_mirrors(const std::vector<ImageRequest>& images,
                                                           const MirrorLookParts& parts, DurationMs limit) {
  std::error_code ignored;
  std::filesystem::remove_all(parts.folder, ignored);
  std::map<std::string, Result<std::string>> out;
  Look look(parts, limit);
  for (const ImageRequest& image : images) out.emplace(image.name, look.at(image));
  std::filesystem::remove_all(parts.folder, ignored);
  return out;
}

}  // namespace muster
