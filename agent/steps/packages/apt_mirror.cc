// apt_mirror: sets the mirror for the distribution's own packages. muster owns /etc/apt/sources.list
// completely; sources of other packages (sources.list.d) are not changed.
//
// As in apt_repository, the new file is put in place only after apt has fetched and verified its lists.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "agent/steps/files/own_file.h"
#include "agent/steps/packages/apt_sources.h"

namespace muster::steps {
namespace {

constexpr const char* kSources = "/etc/apt/sources.list";
constexpr const char* kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

Status check_url(const std::string& url, const char* key) {
  const bool web = url.starts_with("http://") || url.starts_with("https://");
  if (web && url.find_first_of(" \t\n[]#@") == std::string::npos) return Ok{};
  return fail(Code::invalid, fmt::format("apt_mirror: {} '{}' is not a valid mirror URL", key, url));
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
Result<std::string> keyring(const Files& files, const std::string& mirror, const std::string& security,
                            const std::string& suite) {
  if (!files.exists(kKeyring)) return std::string();
  TRY(const std::string key, common_key(files, {mirror}, {suite, suite + "-updates"}, kKeyring, kSources));
  if (security == "none") return key;
  return common_key(files, {security}, {suite + "-security"}, key, kSources);
}

// Returns the wanted file. It is identical to the one in an image built from this mirror, so that nodes with
// that image download nothing.
Result<OwnFile> wanted_apt_mirror(const Files& files, const Json& params) {
  const std::string mirror = text_of(params, "mirror"), security = text_of(params, "security_mirror"),
                    suite = release_codename(files);
  TRY_(check_url(mirror, "mirror"));
  if (security != "none") TRY_(check_url(security, "security_mirror"));
  if (suite.empty()) return fail(Code::not_found, "/etc/os-release has no VERSION_CODENAME");
  TRY(const std::string key, keyring(files, mirror, security, suite));
  const std::string deb = key.empty() ? "deb " : fmt::format("deb [signed-by={}] ", key),
                    parts = components(files);
  OwnFile out{kSources, fmt::format("{}{} {} {}\n", deb, mirror, suite, parts), 0644};
  if (bool_of(params, "updates", true))
    out.text += fmt::format("{}{} {}-updates {}\n", deb, mirror, suite, parts);
  if (security != "none") out.text += fmt::format("{}{} {}-security {}\n", deb, security, suite, parts);
  return out;
}

Result<CheckResult> check_apt_mirror(StepContext& context, const Json& params) {
  TRY(const OwnFile want, wanted_apt_mirror(context.files, params));
  Diff diff;
  add_difference(context.files, want, diff);
  return diff.result();
}

Status apply_apt_mirror(StepContext& context, const Json& params) {
  TRY(const OwnFile want, wanted_apt_mirror(context.files, params));
  const std::string candidate = "/var/lib/muster/apt/sources.list";
  TRY_(context.files.write(candidate, want.text));
  const Status tried = try_sources(context, candidate, kSources);
  TRY_(context.files.remove(candidate));
  if (!tried.ok()) return Error(tried.error()).with("package mirror");
  return put(context.files, want);
}

}  // namespace

StepModule apt_mirror_module() {
  StepModule m;
  m.name = "apt_mirror";
  m.help =
      "Sets the mirror for the system's own packages in /etc/apt/sources.list: the release, its updates and "
      "its security suite. The file is written only after apt has fetched and verified the lists.";
  m.parameters =
      Json::array({parameter("mirror", "string", true, "URL of the mirror"),
                   parameter("security_mirror", "string", true, "URL of the security mirror, or `none`"),
                   parameter("updates", "bool", false, "whether the mirror has the -updates suite", true)});
  m.check = check_apt_mirror;
  m.apply = apply_apt_mirror;
  return m;
}

}  // namespace muster::steps
