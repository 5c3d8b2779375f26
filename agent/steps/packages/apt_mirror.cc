// apt_mirror: sets the mirror for the distribution's own packages. muster owns the file in which the release
// has them completely; sources of other packages are not changed.
//
// As in apt_repository, the new file is put in place only after apt has fetched and verified its lists.
#include <fmt/format.h>

#include <algorithm>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/packages/apt_sources.h"
#include "base/release_sources.h"
#include "sys/os_release.h"

namespace muster::steps {
namespace {

struct WantedAptMirror {
  std::string mirror, security_mirror;
  bool updates = true;
  std::string key, distribution;
  OwnFile key_file() const { return {kMirrorKey, key, 0644}; }
};
MUSTER_PARAMETERS(
    WantedAptMirror, required(mirror, "URL of the mirror"),
    required(security_mirror, "URL of the security mirror, or `none`"),
    optional(updates, "whether the mirror has the -updates suite"),
    optional(key,
             "the public keys of a mirror that is signed again, ASCII-armoured; default: those "
             "of the archive"),
    optional(distribution,
             "ID in /etc/os-release of the systems that the mirror is for: the sources of other "
             "systems stay as they are; default: any"))

Status check_url(const std::string& url, const char* key) {
  const bool web = url.starts_with("http://") || url.starts_with("https://");
  if (web && url.find_first_of(" \t\n[]#@") == std::string::npos) return Ok{};
  return fail(Code::invalid, fmt::format("apt_mirror: {} '{}' is not a valid mirror URL", key, url));
}

Status complete_apt_mirror(const StepContext&, WantedAptMirror& want) {
  TRY_(check_url(want.mirror, "mirror"));
  return want.security_mirror == kNoMirror ? Status(Ok{})
                                           : check_url(want.security_mirror, "security_mirror");
}

// The system that runs here. invalid: none whose package sources are known.
Result<const Release*> own_release(const Files& files) {
  const OsRelease system = os_release(files);
  if (const Release* known = find_release(system)) return known;
  return fail(Code::invalid,
              fmt::format("apt_mirror: the package sources of {} ({} {}) are not known, only those "
                          "of {}",
                          system.pretty_name.empty() ? "this system" : system.pretty_name, system.id,
                          system.codename, supported_releases()));
}

// Returns what is on every mirror, and the other components that the system has now, such as the one for
// firmware.
std::vector<std::string> components(const Files& files, const Release& release,
                                    const Distribution& distribution) {
  std::vector<std::string> found = components_in(files, release.sources_file);
  if (release.sources_file != kSourcesList)
    for (auto& component : components_in(files, kSourcesList, release.codename))
      found.push_back(std::move(component));
  std::vector<std::string> out = {distribution.components.front()};
  for (const auto& component : found.empty() ? distribution.components : found)
    if (std::find(out.begin(), out.end(), component) == out.end()) out.push_back(component);
  return out;
}

// Returns the path of the archive's key, as the host's other sources for these mirrors name it; "" if there
// is no key.
Result<std::string> keyring(const Files& files, const AptMirror& mirror, const Release& release) {
  const std::string own =
      mirror.key.empty() ? find_distribution(release.distribution)->keyring : std::string(kMirrorKey);
  if (mirror.key.empty() && !files.exists(own)) return std::string();
  const std::string& suite = release.codename;
  TRY(const std::string key,
      common_key(files, {mirror.mirror}, {suite, suite + "-updates"}, own, release.sources_file));
  if (mirror.security == kNoMirror) return key;
  return common_key(files, {mirror.security}, {suite + "-security"}, key, release.sources_file);
}

// Returns the wanted file. It is identical to the one in an image built from this mirror, so that nodes with
// that image download nothing.
Result<OwnFile> sources_file(const Files& files, const WantedAptMirror& want) {
  TRY(const Release* release, own_release(files));
  const Distribution& distribution = *find_distribution(release->distribution);
  const AptMirror mirror{want.mirror, want.security_mirror, want.updates, want.key};
  TRY(const std::string key, keyring(files, mirror, *release));
  const auto pockets = pockets_of(mirror, release->codename, components(files, *release, distribution));
  return OwnFile{release->sources_file, sources_text(release->sources_file, pockets, key), 0644};
}

// True on a system of another distribution than the mirror's: a node has one until it is re-imaged, and again
// after a rollback.
bool is_for_others(const WantedAptMirror& want, const OsRelease& system) {
  return !want.distribution.empty() && want.distribution != system.id && find_distribution(system.id);
}

// True if sources.list names the release, too, although another file does.
bool is_listed_twice(const Files& files, const OwnFile& own) {
  return own.path != kSourcesList && !components_in(files, kSourcesList, os_release(files).codename).empty();
}

Result<CheckResult> check_apt_mirror(StepContext& context, const WantedAptMirror& want) {
  if (const OsRelease system = os_release(context.files); is_for_others(want, system))
    return CheckResult{Holds::not_applicable, fmt::format("the mirror is for {}, and this system is {}",
                                                          want.distribution, system.id)};
  TRY(const OwnFile file, sources_file(context.files, want));
  Diff diff;
  if (!want.key.empty()) add_difference(context.files, want.key_file(), diff);
  add_difference(context.files, file, diff);
  if (is_listed_twice(context.files, file)) diff.add(std::string(kSourcesList) + " names this release, too");
  return diff.result();
}

// The wanted file, once apt has fetched and verified the lists that it names.
Result<OwnFile> tried_file(StepContext& context, const WantedAptMirror& want) {
  TRY(OwnFile file, sources_file(context.files, want));
  const std::string candidate = "/var/lib/muster/apt" + file.path.substr(file.path.rfind('/'));
  TRY_(context.files.write(candidate, file.text));
  const Status tried = try_sources(context, candidate, file.path);
  TRY_(context.files.remove(candidate));
  if (!tried.ok()) return Error(tried.error()).with("package mirror");
  return file;
}

Status apply_apt_mirror(StepContext& context, const WantedAptMirror& want) {
  const auto earlier_key = context.files.read(kMirrorKey);
  if (!want.key.empty()) TRY_(put(context.files, want.key_file()));
  const auto file = tried_file(context, want);
  if (!file.ok()) {
    if (!want.key.empty())  // the sources that stay in force are verified by the key that they had
      TRY_(earlier_key.ok() ? context.files.write(kMirrorKey, *earlier_key)
                            : context.files.remove(kMirrorKey));
    return file.error();
  }
  TRY_(put(context.files, *file));
  return is_listed_twice(context.files, *file) ? context.files.write(kSourcesList, "") : Status(Ok{});
}

}  // namespace

StepModule apt_mirror_module() {
  return step_module<WantedAptMirror>({
      .name = "apt_mirror",
      .help =
          "Sets the mirror for the system's own packages, in the file where the release has its sources: the "
          "release, its updates and its security suite. The file is written only after apt has fetched and "
          "verified the lists.",
      .check = check_apt_mirror,
      .apply = apply_apt_mirror,
      .complete = complete_apt_mirror,
  });
}

}  // namespace muster::steps
