// apt_mirror: sets the mirror for the distribution's own packages. muster owns /etc/apt/sources.list
// completely; sources of other packages (sources.list.d) are not changed.
//
// As in apt_repository, the new file is put in place only after apt has fetched and verified its lists.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/packages/apt_sources.h"

namespace muster::steps {
namespace {

constexpr const char* kSources = "/etc/apt/sources.list";
constexpr const char* kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

struct WantedAptMirror {
  std::string mirror, security_mirror;
  bool updates = true;
};
MUSTER_PARAMETERS(WantedAptMirror, required(mirror, "URL of the mirror"),
                  required(security_mirror, "URL of the security mirror, or `none`"),
                  optional(updates, "whether the mirror has the -updates suite"))

Status check_url(const std::string& url, const char* key) {
  const bool web = url.starts_with("http://") || url.starts_with("https://");
  if (web && url.find_first_of(" \t\n[]#@") == std::string::npos) return Ok{};
  return fail(Code::invalid, fmt::format("apt_mirror: {} '{}' is not a valid mirror URL", key, url));
}

Status complete_apt_mirror(const StepContext&, WantedAptMirror& want) {
  TRY_(check_url(want.mirror, "mirror"));
  return want.security_mirror == "none" ? Status(Ok{}) : check_url(want.security_mirror, "security_mirror");
}

// Returns main and the other components in the existing file, such as the one for firmware.
std::string components(const Files& files) {
  std::vector<std::string> out = {"main"};
  std::istringstream lines(files.read(kSources).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("deb ")) continue;
    if (const auto close = line.find(']'); close != std::string::npos) line = "deb " + line.substr(close + 1);
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 3; ++i) words >> word;  // deb URI SUITE
    while (words >> word)
      if (std::find(out.begin(), out.end(), word) == out.end()) out.push_back(word);
  }
  return join(out, " ");
}

// Returns the path of the archive's key, as the host's other sources for these mirrors name it; "" if there
// is no key.
Result<std::string> keyring(const Files& files, const WantedAptMirror& want, const std::string& suite) {
  if (!files.exists(kKeyring)) return std::string();
  TRY(const std::string key,
      common_key(files, {want.mirror}, {suite, suite + "-updates"}, kKeyring, kSources));
  if (want.security_mirror == "none") return key;
  return common_key(files, {want.security_mirror}, {suite + "-security"}, key, kSources);
}

// Returns the wanted file. It is identical to the one in an image built from this mirror, so that nodes with
// that image download nothing.
Result<OwnFile> sources_file(const Files& files, const WantedAptMirror& want) {
  const std::string suite = release_codename(files);
  if (suite.empty()) return fail(Code::not_found, "/etc/os-release has no VERSION_CODENAME");
  TRY(const std::string key, keyring(files, want, suite));
  const std::string deb = key.empty() ? "deb " : fmt::format("deb [signed-by={}] ", key),
                    parts = components(files);
  OwnFile out{kSources, fmt::format("{}{} {} {}\n", deb, want.mirror, suite, parts), 0644};
  if (want.updates) out.text += fmt::format("{}{} {}-updates {}\n", deb, want.mirror, suite, parts);
  if (want.security_mirror != "none")
    out.text += fmt::format("{}{} {}-security {}\n", deb, want.security_mirror, suite, parts);
  return out;
}

Result<CheckResult> check_apt_mirror(StepContext& context, const WantedAptMirror& want) {
  TRY(const OwnFile file, sources_file(context.files, want));
  Diff diff;
  add_difference(context.files, file, diff);
  return diff.result();
}

Status apply_apt_mirror(StepContext& context, const WantedAptMirror& want) {
  TRY(const OwnFile file, sources_file(context.files, want));
  const std::string candidate = "/var/lib/muster/apt/sources.list";
  TRY_(context.files.write(candidate, file.text));
  const Status tried = try_sources(context, candidate, kSources);
  TRY_(context.files.remove(candidate));
  if (!tried.ok()) return Error(tried.error()).with("package mirror");
  return put(context.files, file);
}

}  // namespace

StepModule apt_mirror_module() {
  return step_module<WantedAptMirror>({
      .name = "apt_mirror",
      .help =
          "Sets the mirror for the system's own packages in /etc/apt/sources.list: the release, its updates "
          "and its security suite. The file is written only after apt has fetched and verified the lists.",
      .check = check_apt_mirror,
      .apply = apply_apt_mirror,
      .complete = complete_apt_mirror,
  });
}

}  // namespace muster::steps
