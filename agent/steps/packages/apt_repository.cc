// apt_repository: a package source with the one key that may sign it, as a deb822 file.
//
// The source is put in place only after apt has fetched and verified its lists with that key, so an existing
// source has worked at least once; an earlier crash leaves nothing that breaks a later `apt-get update`.
#include <algorithm>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/packages/apt_sources.h"
#include "base/digest.h"

namespace muster::steps {
namespace {

constexpr const char* kArmour = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

struct AptPin {
  std::string packages, pin;
  Json priority;
};
MUSTER_RECORD(AptPin, lenient, opt(packages), opt(pin), opt(priority))

struct WantedAptRepository {
  std::string name, key, key_url, key_sha256, signed_by;
  Texts uris, suites, pockets, components, architectures;
  bool check_valid_until = true;
  std::vector<AptPin> pins;
  OwnFile preferences;
  std::string source_path() const { return "/etc/apt/sources.list.d/muster-" + name + ".sources"; }
  std::string key_path(bool armoured) const {
    return "/etc/apt/keyrings/muster-" + name + (armoured ? ".asc" : ".gpg");
  }
};

MUSTER_PARAMETERS(
    WantedAptRepository, required(name, "used in file names: muster-NAME.sources"),
    optional(uris, "base URLs; default: the mirror of this system's own packages"),
    optional(suites,
             "suites, or one path that ends in '/' for a flat repository; default: this system's own"),
    optional(pockets,
             "also these pockets of this system's own suite, which lie in the same mirror: [updates]; not "
             "allowed with `suites`"),
    optional(components, "components; none for a flat repository"),
    optional(architectures, "architectures; default: those that apt uses on the node"),
    optional(key, "the key itself, ASCII-armoured"),
    optional(key_url, "URL of the key; requires `key_sha256`"),
    optional(key_sha256, "digest of the file at `key_url`"),
    optional(signed_by,
             "path of a keyring that is already on the node; if this system's own mirror is signed again, "
             "the key that is declared for it counts there instead"),
    optional(
        check_valid_until,
        "false: also accept signed lists past their expiry date, from mirrors that are no longer updated"),
    optional(
        pins,
        "apt preferences: {packages, pin, priority}, e.g. {packages: \"*\", pin: \"release a=unstable\", "
        "priority: 90}"))

bool one_word(const std::string& text) {
  return !text.empty() && text.find_first_of(" \t\n") == std::string::npos;
}

Status check_words(const WantedAptRepository& want) {
  for (const auto* list : {&want.uris, &want.suites, &want.components, &want.architectures})
    for (const auto& word : *list)
      if (!one_word(word)) return fail(Code::invalid, "apt_repository: '" + word + "' must be one word");
  const bool flat = want.suites[0].back() == '/';
  if (flat != want.components.empty())
    return fail(Code::invalid,
                "apt_repository: 'components' is required with a suite and not allowed with a path that "
                "ends in '/'");
  return Ok{};
}

Status complete_key(WantedAptRepository& want) {
  const int ways = !want.key.empty() + !want.key_url.empty() + !want.signed_by.empty();
  if (ways != 1)
    return fail(Code::invalid, "apt_repository: exactly one of 'key', 'key_url' and 'signed_by' is required");
  if (!want.key.empty() && !want.key.starts_with(kArmour))
    return fail(Code::invalid, "apt_repository: 'key' is not an ASCII-armoured public key");
  if (!want.key.empty() && want.key.back() != '\n') want.key += '\n';
  if (!want.signed_by.empty() && (want.signed_by[0] != '/' || !one_word(want.signed_by)))
    return fail(Code::invalid, "apt_repository: 'signed_by' must be an absolute path");
  if (want.key_url.empty()) return Ok{};
  TRY(want.key_sha256, digest_of(want.key_sha256, "key_sha256"));
  return Ok{};
}

// Returns the apt preferences: which packages may come from this source, and with which priority.
Result<OwnFile> preferences(const WantedAptRepository& want) {
  OwnFile out{"/etc/apt/preferences.d/60-muster-" + want.name + ".pref", "", 0644};
  for (const auto& [packages, pin, priority] : want.pins) {
    if (packages.empty() || pin.empty() || !priority.is_number_integer() ||
        (packages + pin).find('\n') != std::string::npos)
      return fail(Code::invalid,
                  "apt_repository: a pin must be {packages: text, pin: text, priority: number}");
    out.text +=
        fmt::format("Package: {}\nPin: {}\nPin-Priority: {}\n\n", packages, pin, priority.get<int64_t>());
  }
  if (!out.text.empty()) out.text = "Explanation: Written by muster.\n" + out.text;
  return out;
}

Status complete_apt_repository(const StepContext& context, WantedAptRepository& want) {
  TRY_(check_name(want.name, "apt_repository"));
  if (want.uris.empty() || want.suites.empty()) {
    TRY(const DistributionSource own, distribution_source(context.files));
    if (want.uris.empty()) {
      want.uris.assign(own.uris.begin(), own.uris.end());
      if (!own.key.empty() && !want.signed_by.empty()) want.signed_by = own.key;
    }
    if (want.suites.empty()) {
      want.suites = {own.suite};
      for (const auto& pocket : want.pockets) want.suites.push_back(own.suite + "-" + pocket);
      want.pockets.clear();
    }
  }
  if (!want.pockets.empty())
    return fail(Code::invalid,
                "apt_repository: 'pockets' are of this system's own suite, and 'suites' is given");
  TRY_(check_words(want));
  TRY_(complete_key(want));
  TRY(want.preferences, preferences(want));
  return Ok{};
}

// Returns the path of the correct key; "" if it is missing.
std::string present_key(const Files& files, const WantedAptRepository& want) {
  if (!want.signed_by.empty()) return files.exists(want.signed_by) ? want.signed_by : "";
  if (!want.key.empty()) {
    const OwnFile file{want.key_path(true), want.key, 0644};
    return differs_from(files, file) ? "" : file.path;
  }
  for (const bool armoured : {true, false})
    if (const auto path = want.key_path(armoured);
        files.exists(path) && sha256_file(files.real(path)).value_or("") == want.key_sha256)
      return path;
  return "";
}

std::string source_text(const WantedAptRepository& want, const std::string& key) {
  std::string out = "# Written by muster.\nTypes: deb\nURIs: " + join(want.uris, " ") +
                    "\nSuites: " + join(want.suites, " ") + "\n";
  if (!want.components.empty()) out += "Components: " + join(want.components, " ") + "\n";
  if (!want.architectures.empty()) out += "Architectures: " + join(want.architectures, " ") + "\n";
  if (!want.check_valid_until) out += "Check-Valid-Until: no\n";
  return out + "Signed-By: " + key + "\n";
}

Result<CheckResult> check_apt_repository(StepContext& context, const WantedAptRepository& want) {
  Diff diff;
  std::string key = present_key(context.files, want);
  if (key.empty()) {
    diff.add("the key of " + want.name + " is missing or different");
    key = want.key_path(true);
  } else {
    auto named = common_key(context.files, want.uris, want.suites, key, want.source_path());
    if (!named.ok()) diff.add(named.error().message);
    key = named.value_or(key);
  }
  add_difference(context.files, {want.source_path(), source_text(want, key), 0644}, diff);
  add_difference(context.files, want.preferences, diff);
  return diff.result();
}

Result<std::string> install_key(StepContext& context, const WantedAptRepository& want) {
  if (const auto path = present_key(context.files, want); !path.empty()) return path;
  if (!want.signed_by.empty()) return fail(Code::not_found, want.signed_by + " does not exist");
  if (!want.key.empty()) {
    TRY_(put(context.files, {want.key_path(true), want.key, 0644}));
    return want.key_path(true);
  }
  const std::string fetched = "/etc/apt/keyrings/muster-" + want.name + ".fetched";
  TRY_(fetch(context, want.key_url, want.key_sha256, fetched, 0644, 5 * kMinute));
  TRY(const std::string text, context.files.read(fetched));
  const bool armoured = text.find(kArmour) != std::string::npos;
  TRY_(put(context.files, {want.key_path(armoured), text, 0644}));
  TRY_(context.files.remove(want.key_path(!armoured)));
  TRY_(context.files.remove(fetched));
  return want.key_path(armoured);
}

Status apply_apt_repository(StepContext& context, const WantedAptRepository& want) {
  TRY(const std::string own_key, install_key(context, want));
  TRY(const std::string key, common_key(context.files, want.uris, want.suites, own_key, want.source_path()));
  TRY_(put(context.files, want.preferences));
  const OwnFile source{want.source_path(), source_text(want, key), 0644};
  if (!differs_from(context.files, source)) return Ok{};
  // apt recognizes the format by the suffix.
  const std::string candidate = "/var/lib/muster/apt/" + want.name + ".sources";
  TRY_(context.files.write(candidate, source.text));
  const Status tried = try_sources(context, candidate, want.source_path());
  TRY_(context.files.remove(candidate));
  if (!tried.ok()) return Error(tried.error()).with("package source " + want.name);
  return put(context.files, source);
}

}  // namespace

StepModule apt_repository_module() {
  return step_module<WantedAptRepository>({
      .name = "apt_repository",
      .help =
          "Adds a package source as a deb822 file and pins the key that may sign it. The key is given in "
          "full, by URL and digest, or by the path of a key that the distribution installed. The source is "
          "written only after apt has fetched and verified its lists.",
      .check = check_apt_repository,
      .apply = apply_apt_repository,
      .complete = complete_apt_repository,
  });
}

}  // namespace muster::steps
