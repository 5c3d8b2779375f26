// package: installs packages with apt, from archives by name and from .deb files by digest. A check reads
// dpkg's status file and normally starts no process; only apply runs apt-get.
#include <fnmatch.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "agent/core/parameters.h"
#include "agent/steps/packages/dpkg_status.h"
#include "agent/steps/packages/package_files.h"
#include "agent/steps/packages/package_names.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/unattended.h"
#include "base/release_key.h"
#include "sys/os_release.h"

namespace muster::steps {
namespace {

constexpr DurationMs kInstall =
    90 * kMinute;  // a driver with its toolkit is 7 GB and compiles a kernel module

// Packages that must all have the same version, such as a driver's user space and its kernel module. Selected
// by pattern, so dependencies are covered too.
struct VersionLock {
  std::vector<std::string> packages;  // shell patterns: "libnvidia-*", "libcuda1"
  std::string version;                // shell pattern of the package's version: "550.163.01-*"
};
MUSTER_RECORD(VersionLock, packages, version)
using Locks = std::vector<VersionLock>;

struct WantedPackage {
  Texts names;
  std::vector<PackageFile> files;
  std::map<std::string, Json> also;  // codename, or ID of a distribution -> a list, or one name
  bool install = true;
  std::optional<bool> hold;
  Locks locked;
  Texts removes, if_offered;
  std::vector<Choices> choices;  // `names`, and those of `also` for this system
  std::vector<Choices> extra;    // `if_offered`
};
MUSTER_PARAMETERS(
    WantedPackage,
    optional(names,
             "package names, optionally `name=version`; `a|b`: the first of these that an "
             "archive has; `{kernel}` in a name: the release of the newest kernel"),
    optional(files,
             "packages that no archive has: [{url, sha256}] of .deb files, installed in the same run as "
             "`names`, with their dependencies; an entry with an empty `url` and `sha256` is left out"),
    optional(also,
             "additional names for one release or one distribution only, by VERSION_CODENAME or ID of "
             "/etc/os-release: {CODENAME: [NAME]}"),
    optional(install, "false: the packages must already be in the image; nothing is installed on the node"),
    optional(hold,
             "true: hold the packages and everything in `locked`, at their versions; false: release them; "
             "default: unchanged"),
    optional(
        locked,
        "sets of packages that must all have the same version: {packages: [patterns], version: pattern}; "
        "this also applies to dependencies that match a pattern"),
    optional(removes, "packages that apt may remove to install those in `names`"),
    optional(if_offered,
             "names of packages that are installed together with `names` if an archive has them; if it has "
             "them in other versions only, the step is refused"))

// Appends the names of `also` for this system to `names`.
Status add_others(const Files& files, WantedPackage& want) {
  if (want.also.empty()) return Ok{};
  const OsRelease os = os_release(files);
  for (const auto& [key, names] : want.also) {
    const auto here = means_system(key, os);
    if (!here.ok()) return fail(Code::invalid, "package: `also`: " + here.error().message);
    for (const Json& name : *here ? names : Json::array())
      if (name.is_string()) want.names.push_back(name.get<std::string>());
  }
  return Ok{};
}

Status complete_package(const StepContext& context, WantedPackage& want) {
  if (want.names.empty() && want.also.empty() && want.files.empty())
    return fail(Code::invalid, "package: 'names' or 'files' is required");
  TRY_(complete_files(want.files));
  for (const auto& [packages, version] : want.locked)
    if (packages.empty() || version.empty() || std::count(packages.begin(), packages.end(), "") > 0)
      return fail(Code::invalid, "package: a lock must be {packages: [patterns], version: pattern}");
  TRY_(add_others(context.files, want));
  for (const auto& word : want.names) {
    TRY(auto choices, read_choices(context.files, word));
    want.choices.push_back(std::move(choices));
  }
  for (const auto& word : want.if_offered) {
    TRY(auto choices, read_choices(context.files, word));
    want.extra.push_back(std::move(choices));
  }
  return Ok{};
}

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool covers(const VersionLock& lock, const std::string& package) {
  return std::any_of(lock.packages.begin(), lock.packages.end(),
                     [&](const std::string& pattern) { return fits(pattern, package); });
}

bool is_locked(const Locks& locks, const std::string& package) {
  return std::any_of(locks.begin(), locks.end(),
                     [&](const VersionLock& lock) { return covers(lock, package); });
}

// One message for each package (name -> version) that violates its lock.
std::vector<std::string> outside_locks(const Locks& locks,
                                       const std::map<std::string, std::string>& packages) {
  std::vector<std::string> out;
  for (const auto& lock : locks)
    for (const auto& [name, version] : packages)
      if (covers(lock, name) && !fits(lock.version, version))
        out.push_back(fmt::format("{} has version {}, but its set requires {}", name, version, lock.version));
  return out;
}

std::string without_architecture(const std::string& name) { return name.substr(0, name.find(':')); }

// The packages (name without architecture -> version) after the actions of `apt-get --simulate`.
std::map<std::string, std::string> after_simulation(std::map<std::string, std::string> installed,
                                                    const std::string& simulation) {
  // "Inst NAME[:ARCH] [old version] (new version archive... [arch])", "Remv NAME [version]"
  for (const auto& line : split_lines(simulation)) {
    std::istringstream words(line);
    std::string verb, name;
    words >> verb >> name;
    if (verb == "Remv") installed.erase(without_architecture(name));
    const auto open = line.find('(');
    if (verb == "Inst" && open != std::string::npos)
      installed[without_architecture(name)] =
          line.substr(open + 1, line.find_first_of(" )", open) - open - 1);
  }
  return installed;
}

// The installed package that satisfies a name: the package of that name, or the one that apt would use
// instead. Packages change names (librdmacm1 is librdmacm1t64 since Debian 13) and then provide the old one
// with their own version. A name that is provided without a version counts only if apt has no package of that
// name.
Packages::const_iterator stand_for(StepContext& context, const Packages& have, const NamedPackage& want) {
  const auto own = have.find(want.name);
  if (own != have.end() || !want.version.empty()) return own;
  const auto other = std::find_if(have.begin(), have.end(), [&](const auto& entry) {
    return entry.second.provides.count(want.name) > 0;
  });
  if (other == have.end()) return other;
  const std::string& version = other->second.provides.at(want.name);
  if (!version.empty() && version == other->second.version) return other;
  return is_offered(context, want) ? have.end() : other;
}

std::vector<std::string> missing(StepContext& context, const Packages& have, const Chosen& chosen) {
  std::vector<std::string> out;
  for (const auto& one : chosen.packages) {
    const auto it = stand_for(context, have, one);
    if (it != have.end() && is_version(one.version, it->second.version)) continue;
    out.push_back(one.version.empty() ? one.name : one.name + "=" + one.version);
  }
  return out;
}

std::vector<PackageFile> missing_files(const StepContext& context, const Packages& have,
                                       const std::vector<PackageFile>& files) {
  std::vector<PackageFile> out;
  for (const auto& file : files) {
    const auto package = package_of(context.files, file);
    const auto it = package ? have.find(package->name) : have.end();
    if (it == have.end() || it->second.version != package->version) out.push_back(file);
  }
  return out;
}

// One package of each choice, and those of the files, as far as these have been installed before.
Chosen choose_with_files(StepContext& context, const Packages& have, const WantedPackage& want) {
  Chosen out = choose(context, have, want.choices);
  for (const auto& file : want.files)
    if (auto package = package_of(context.files, file)) out.packages.push_back(std::move(*package));
  return out;
}

std::map<std::string, std::string> versions_of(const Packages& packages) {
  std::map<std::string, std::string> out;
  for (const auto& [name, entry] : packages) out[name] = entry.version;
  return out;
}

// Packages that are held, or not held, contrary to `hold`; none if `hold` is not given. A locked set is held
// as a whole: if only the named package were held, the next upgrade would change its libraries.
std::vector<std::string> wrongly_held(StepContext& context, const Packages& have, const WantedPackage& want,
                                      const Chosen& chosen) {
  std::vector<std::string> out;
  if (!want.hold) return out;
  std::set<std::string> names;
  for (const auto& one : chosen.packages)
    if (const auto it = stand_for(context, have, one); it != have.end()) names.insert(it->first);
  for (const auto& choices : want.extra)
    for (const auto& one : choices) names.insert(one.name);
  for (const auto& [name, entry] : have)
    if ((names.count(name) || is_locked(want.locked, name)) && entry.held != *want.hold) out.push_back(name);
  return out;
}

CheckResult compare(StepContext& context, const Packages& have, const WantedPackage& want) {
  Diff diff;
  const Chosen chosen = choose_with_files(context, have, want);
  for (const auto& file : want.files)
    if (!package_of(context.files, file)) diff.add("not installed: " + file.url);
  for (const auto& one : chosen.packages) {
    const auto it = stand_for(context, have, one);
    if (it == have.end())
      diff.add("not installed: " + one.name + (one.version.empty() ? "" : "=" + one.version));
    else if (!is_version(one.version, it->second.version))
      diff.add(one.name + ": " + it->second.version + " -> " + one.version);
  }
  for (const auto& odd : outside_locks(want.locked, versions_of(have))) diff.add(odd);
  const auto held = wrongly_held(context, have, want, chosen);
  if (!held.empty()) diff.add((*want.hold ? "not held: " : "held: ") + join(held, " "));
  return diff.result();
}

Result<CheckResult> check_package(StepContext& context, const WantedPackage& want) {
  TRY(const auto have, installed_packages(context.files));
  return compare(context, have, want);
}

std::vector<Result<CheckResult>> check_many(StepContext& context, const std::vector<Json>& params) {
  const auto have = installed_packages(context.files);
  const auto checked = [&](const Json& one) -> Result<CheckResult> {
    TRY(WantedPackage want, read_parameters<WantedPackage>("package", one));
    TRY_(complete_package(context, want));
    if (!have.ok()) return have.error();
    return compare(context, *have, want);
  };
  std::vector<Result<CheckResult>> out;
  for (const auto& one : params) out.push_back(checked(one));
  return out;
}

Result<std::string> unattended(StepContext& context, std::vector<std::string> argv, DurationMs deadline) {
  Command command;
  command.argv = std::move(argv);
  command.env = unattended_environment();
  command.env["LC_ALL"] = "C.UTF-8";
  command.deadline = deadline;
  return run_ok(context.process, command);
}

// Ubuntu offers an update to a share of machines first, chosen by their machine ids: nodes would differ.
constexpr const char* kNoPhases = "APT::Get::Always-Include-Phased-Updates=true";

Result<std::string> apt(StepContext& context, const std::vector<std::string>& words, DurationMs deadline) {
  std::vector<std::string> argv = {"apt-get",
                                   "-q",
                                   "-y",
                                   "-o",
                                   kNoPhases,
                                   "-o",
                                   "DPkg::Lock::Timeout=300",
                                   "-o",
                                   "Dpkg::Options::=--force-confold"};
  argv.insert(argv.end(), words.begin(), words.end());
  return unattended(context, std::move(argv), deadline);
}

Status update_lists(StepContext& context) {
  if (auto updated = apt(context, {"update"}, 10 * kMinute); !updated.ok())
    return std::move(updated).error().with("apt-get update");
  return Ok{};
}

// Everything to install, once apt's lists are those of today if anything is not in them.
Result<Chosen> choose_to_install(StepContext& context, const Packages& have, const WantedPackage& want) {
  const auto choose_all = [&] {
    Chosen all = choose(context, have, want.choices);
    add_optional(context, have, want.extra, all);
    return all;
  };
  Chosen chosen = choose_all();
  if (chosen.known) return chosen;
  TRY_(update_lists(context));
  chosen = choose_all();
  if (!chosen.left_out.empty()) say(context, "no archive has " + join(chosen.left_out, " ") + ": left out");
  return chosen;
}

// A dpkg run that was interrupted by a power cut or a reset leaves a journal, and apt fails until dpkg has
// processed it. A run that is still active has a journal, too: `apt-get check` waits for its lock, and then
// that run has ended.
Status finish_interrupted_run(StepContext& context) {
  if (!has_journal(context.files)) return Ok{};
  (void)apt(context, {"check"}, 10 * kMinute).ok();
  if (!has_journal(context.files)) return Ok{};
  say(context, "an earlier dpkg run was interrupted: continuing it");
  auto done = unattended(context, {"dpkg", "--force-confold", "--configure", "-a"}, kInstall);
  // Without a journal, only a package's script has failed: apt reports it if it affects the wanted packages.
  if (!done.ok() && has_journal(context.files))
    return std::move(done).error().with("`dpkg --configure -a` after an interrupted dpkg run");
  return Ok{};
}

// apt may remove packages to resolve conflicts; only those in `removes` may be removed.
Status check_removals(const std::string& simulation, const std::vector<std::string>& allowed) {
  std::vector<std::string> others;
  for (const auto& line : split_lines(simulation)) {
    if (!line.starts_with("Remv ")) continue;
    const std::string name = line.substr(5, line.find(' ', 5) - 5);
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) others.push_back(name);
  }
  if (others.empty()) return Ok{};
  return fail(Code::conflict, "apt would remove " + join(others, " ") +
                                  "; if these packages may be removed, list them in 'removes'");
}

// All packages that would then be installed, including dependencies, must have the locked versions.
Status check_locks(const Packages& have, const std::string& simulation, const Locks& locks) {
  const auto odd = outside_locks(locks, after_simulation(versions_of(have), simulation));
  if (odd.empty()) return Ok{};
  return fail(Code::conflict, "nothing was installed, because versions do not match: " + join(odd, "; "));
}

Status check_simulation(const Packages& have, const std::string& simulation, const WantedPackage& want) {
  TRY_(check_removals(simulation, want.removes));
  return check_locks(have, simulation, want.locked);
}

Status install(StepContext& context, const Packages& have, const WantedPackage& want,
               std::vector<std::string> words) {
  const std::string all = join(words, " ");
  say(context, "installing " + all);
  std::vector<std::string> options = {"install", "--no-install-recommends"};
  const bool files = all.find('/') != std::string::npos;
  if (files || all.find('=') != std::string::npos)  // an exact version also replaces a newer or a held one
    options.insert(options.end(), {"--allow-downgrades", "--allow-change-held-packages"});
  if (files) options.push_back("--reinstall");  // of the same version from a file with another digest
  words.insert(words.begin(), options.begin(), options.end());
  auto simulated_words = words;
  simulated_words.insert(simulated_words.begin(), "--simulate");
  auto simulated = apt(context, simulated_words, 10 * kMinute);
  if (simulated.ok()) {
    TRY_(check_simulation(have, *simulated, want));
    if (apt(context, words, kInstall).ok()) return Ok{};
  }
  // Stale or missing package lists are the usual reason.
  TRY_(update_lists(context));
  TRY(const std::string again, apt(context, simulated_words, 10 * kMinute));
  TRY_(check_simulation(have, again, want));
  TRY(auto out, apt(context, words, kInstall));
  (void)out;
  return Ok{};
}

// `words`: the missing packages of `names`.
Status install_with_files(StepContext& context, const Packages& have, const WantedPackage& want,
                          std::vector<std::string> words) {
  FetchedFiles fetched(context.files);
  for (const auto& file : missing_files(context, have, want.files)) TRY_(fetched.add(context, file));
  for (auto& path : fetched.paths()) words.push_back(std::move(path));
  if (words.empty()) return Ok{};
  TRY_(install(context, have, want, std::move(words)));
  return fetched.write_record();
}

Status apply_package(StepContext& context, const WantedPackage& want) {
  TRY(auto have, installed_packages(context.files));
  auto words = missing(context, have, choose(context, have, want.choices));
  for (const auto& file : missing_files(context, have, want.files)) words.push_back(file.url);
  if (!words.empty()) {
    if (!want.install)
      return fail(Code::conflict,
                  "the image lacks " + join(words, " ") + "; add these packages to the image recipe");
    TRY_(finish_interrupted_run(context));
    TRY(have, installed_packages(context.files));
    TRY(const Chosen chosen, choose_to_install(context, have, want));
    TRY_(install_with_files(context, have, want, missing(context, have, chosen)));
    TRY(have, installed_packages(context.files));
  }
  TRY_(check_locks(have, "", want.locked));
  const auto held = wrongly_held(context, have, want, choose_with_files(context, have, want));
  if (held.empty()) return Ok{};
  std::vector<std::string> argv = {"apt-mark", *want.hold ? "hold" : "unhold"};
  argv.insert(argv.end(), held.begin(), held.end());
  TRY(auto out, run_tool(context, argv));
  (void)out;
  return Ok{};
}

}  // namespace

StepModule package_module() {
  StepModule out = step_module<WantedPackage>({
      .name = "package",
      .help =
          "Installs packages with apt (`name=version` for one version, in which `*` is a wildcard) and holds "
          "them if requested. apt's simulation is checked first: a removal that is not in `removes`, or a "
          "version outside `locked`, stops the step before anything is changed. A file of `files` counts as "
          "installed if a record has its digest and dpkg the version of its package; one with another digest "
          "is not installed. If all packages are installed, only dpkg's status file and the record are read.",
      .check = check_package,
      .apply = apply_package,
      .complete = complete_package,
  });
  out.check_many = check_many;
  return out;
}

}  // namespace muster::steps
