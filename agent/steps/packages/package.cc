// package: installs Debian packages. A check reads dpkg's status file and normally starts no process; only
// apply runs apt-get.
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/steps/packages/apt_sources.h"
#include "agent/steps/packages/dpkg_status.h"
#include "agent/steps/packages/version_lock.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr DurationMs kInstall =
    90 * kMinute;  // a driver with its toolkit is 7 GB and compiles a kernel module

struct WantedPackage {
  std::string name, version;
};

std::vector<WantedPackage> wanted_package(const Json& params) {
  std::vector<WantedPackage> out;
  for (const auto& word : list_of(params, "names")) {
    const auto equals = word.find('=');
    out.push_back({word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1)});
  }
  return out;
}

// Returns the parameters with the packages for this release (`also`) added to `names`.
Json for_this_release(const Files& files, Json params) {
  const auto also = params.find("also");
  if (also == params.end()) return params;
  const Json more = also->is_object() ? also->value(release_codename(files), Json::array()) : Json::array();
  for (const auto& name : more) params["names"].push_back(name);
  return params;
}

// A version may contain a '*', as apt accepts it: 550.163.01-*
bool is_version(const std::string& want, const std::string& have) {
  return want.empty() || fnmatch(want.c_str(), have.c_str(), 0) == 0;
}

// True if apt has a package of exactly this name. apt then installs that package, even if others provide the
// name.
bool is_offered(StepContext& context, const std::string& name) {
  const auto shown = context.process.run({.argv = {"apt-cache", "--no-all-versions", "show", name}});
  return shown.ok() && shown->out.find("Package: " + name + "\n") != std::string::npos;
}

// Returns the installed package that satisfies a name: the package of that name, or the one that apt would
// use instead. Packages change names (librdmacm1 is librdmacm1t64 since Debian 13) and then provide the old
// one with their own version. For a name that is provided without a version, apt uses the provider if it has
// no package of that name.
Packages::const_iterator stand_for(StepContext& context, const Packages& have, const WantedPackage& want) {
  const auto own = have.find(want.name);
  if (own != have.end() || !want.version.empty()) return own;
  const auto other = std::find_if(have.begin(), have.end(), [&](const auto& entry) {
    return entry.second.provides.count(want.name) > 0;
  });
  if (other == have.end()) return other;
  const std::string& version = other->second.provides.at(want.name);
  if (!version.empty() && version == other->second.version) return other;
  return is_offered(context, want.name) ? have.end() : other;
}

// Returns the apt-get arguments for all packages that are missing or have a different version.
std::vector<std::string> missing(StepContext& context, const Packages& have, const Json& params) {
  std::vector<std::string> out;
  for (const auto& want : wanted_package(params)) {
    const auto it = stand_for(context, have, want);
    if (it != have.end() && is_version(want.version, it->second.version)) continue;
    out.push_back(want.version.empty() ? want.name : want.name + "=" + want.version);
  }
  return out;
}

using Locks = std::vector<VersionLock>;

Result<Locks> locks_of(const Json& params) {
  return params.contains("locked") ? version_locks(params.at("locked")) : Result<Locks>(Locks{});
}

std::map<std::string, std::string> versions_of(const Packages& packages) {
  std::map<std::string, std::string> out;
  for (const auto& [name, entry] : packages) out[name] = entry.version;
  return out;
}

// Returns the packages that are held, or not held, contrary to `hold`; none if `hold` is not given. A locked
// set is held as a whole: if only the named package were held, the next upgrade would change its libraries.
std::vector<std::string> wrongly_held(StepContext& context, const Packages& have, const Json& params,
                                      const Locks& locks) {
  std::vector<std::string> out;
  if (!params.contains("hold")) return out;
  std::set<std::string> names;
  for (const auto& want : wanted_package(params))
    if (const auto it = stand_for(context, have, want); it != have.end()) names.insert(it->first);
  for (const auto& [name, entry] : have)
    if ((names.count(name) || is_locked(locks, name)) && entry.held != bool_of(params, "hold", true))
      out.push_back(name);
  return out;
}

Result<CheckResult> compare(StepContext& context, const Packages& have, const Json& params) {
  TRY(const Locks locks, locks_of(params));
  Diff diff;
  for (const auto& want : wanted_package(params)) {
    const auto it = stand_for(context, have, want);
    if (it == have.end())
      diff.add("not installed: " + want.name + (want.version.empty() ? "" : "=" + want.version));
    else if (!is_version(want.version, it->second.version))
      diff.add(want.name + ": " + it->second.version + " -> " + want.version);
  }
  for (const auto& odd : outside_locks(locks, versions_of(have))) diff.add(odd);
  const auto held = wrongly_held(context, have, params, locks);
  if (!held.empty()) diff.add((bool_of(params, "hold", true) ? "not held: " : "held: ") + join(held, " "));
  return diff.result();
}

std::vector<Result<CheckResult>> check_many(StepContext& context, const std::vector<Json>& params) {
  const auto have = installed_packages(context.files);
  std::vector<Result<CheckResult>> out;
  for (const auto& p : params) {
    if (have.ok())
      out.push_back(compare(context, *have, for_this_release(context.files, p)));
    else
      out.push_back(have.error());
  }
  return out;
}

Result<CheckResult> check_package(StepContext& context, const Json& params) {
  TRY(const auto have, installed_packages(context.files));
  return compare(context, have, for_this_release(context.files, params));
}

Result<std::string> unattended(StepContext& context, std::vector<std::string> argv, DurationMs deadline) {
  Command command;
  command.argv = std::move(argv);
  command.env = {{"DEBIAN_FRONTEND", "noninteractive"}, {"NEEDRESTART_MODE", "l"}, {"LC_ALL", "C.UTF-8"}};
  command.deadline = deadline;
  return run_ok(context.process, command);
}

Result<std::string> apt(StepContext& context, const std::vector<std::string>& words, DurationMs deadline) {
  std::vector<std::string> argv = {
      "apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"};
  argv.insert(argv.end(), words.begin(), words.end());
  return unattended(context, std::move(argv), deadline);
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
  // If no journal is left, only a package's script has failed, which apt reports if it affects the wanted
  // packages.
  if (!done.ok() && has_journal(context.files))
    return std::move(done).error().with("`dpkg --configure -a` after an interrupted dpkg run");
  return Ok{};
}

// apt may remove packages to resolve conflicts; only those in `removes` may be removed.
Status check_removals(const std::string& simulation, const Json& params) {
  const auto allowed = list_of(params, "removes");
  std::vector<std::string> others;
  for (const auto& line : lines_of(simulation)) {
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

Status check_simulation(const Packages& have, const std::string& simulation, const Json& params,
                        const Locks& locks) {
  TRY_(check_removals(simulation, params));
  return check_locks(have, simulation, locks);
}

Status install(StepContext& context, const Packages& have, const Json& params, const Locks& locks,
               std::vector<std::string> words) {
  const std::string all = join(words, " ");
  say(context, "installing " + all);
  std::vector<std::string> options = {"install", "--no-install-recommends"};
  if (all.find('=') != std::string::npos)  // an exact version also replaces a newer or a held one
    options.insert(options.end(), {"--allow-downgrades", "--allow-change-held-packages"});
  words.insert(words.begin(), options.begin(), options.end());
  auto simulated_words = words;
  simulated_words.insert(simulated_words.begin(), "--simulate");
  auto simulated = apt(context, simulated_words, 10 * kMinute);
  if (simulated.ok()) {
    TRY_(check_simulation(have, *simulated, params, locks));
    if (apt(context, words, kInstall).ok()) return Ok{};
  }
  // Stale or missing package lists are the usual reason.
  if (auto updated = apt(context, {"update"}, 10 * kMinute); !updated.ok())
    return std::move(updated).error().with("apt-get update");
  TRY(const std::string again, apt(context, simulated_words, 10 * kMinute));
  TRY_(check_simulation(have, again, params, locks));
  TRY(auto out, apt(context, words, kInstall));
  (void)out;
  return Ok{};
}

Status apply_package(StepContext& context, const Json& given) {
  const Json params = for_this_release(context.files, given);
  TRY(auto have, installed_packages(context.files));
  TRY(const Locks locks, locks_of(params));
  if (auto words = missing(context, have, params); !words.empty()) {
    if (!bool_of(params, "install", true))
      return fail(Code::conflict,
                  "the image lacks " + join(words, " ") + "; add these packages to the image recipe");
    TRY_(finish_interrupted_run(context));
    TRY(have, installed_packages(context.files));
    if (words = missing(context, have, params); !words.empty())
      TRY_(install(context, have, params, locks, std::move(words)));
    TRY(have, installed_packages(context.files));
  }
  TRY_(check_locks(have, "", locks));
  const auto held = wrongly_held(context, have, params, locks);
  if (held.empty()) return Ok{};
  std::vector<std::string> argv = {"apt-mark", bool_of(params, "hold", true) ? "hold" : "unhold"};
  argv.insert(argv.end(), held.begin(), held.end());
  TRY(auto out, run_tool(context, argv));
  (void)out;
  return Ok{};
}

}  // namespace

StepModule package_module() {
  StepModule m;
  m.name = "package";
  m.help =
      "Installs Debian packages (`name=version` for one version, in which `*` is a wildcard) and holds "
      "them if requested. apt's simulation is checked first: a removal that is not in `removes`, or a "
      "version outside `locked`, stops the step before anything is changed. If all packages are installed, "
      "only dpkg's status file is read.";
  m.parameters = Json::array(
      {parameter("names", "list", true, "package names, optionally `name=version`"),
       parameter("also", "object", false,
                 "additional names for one release only, by the codename in /etc/os-release: {trixie: "
                 "[docker-cli]}"),
       parameter("install", "bool", false,
                 "false: the packages must already be in the image; nothing is installed on the node", true),
       parameter("hold", "bool", false,
                 "true: hold the packages and everything in `locked`, at their versions; false: release "
                 "them; default: unchanged"),
       parameter("locked", "list", false,
                 "sets of packages that must all have the same version: {packages: [patterns], version: "
                 "pattern}; this also applies to dependencies that match a pattern"),
       parameter("removes", "list", false, "packages that apt may remove to install those in `names`")});
  m.check = check_package;
  m.check_many = check_many;
  m.apply = apply_package;
  return m;
}

}  // namespace muster::steps
