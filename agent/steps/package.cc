// package: Debian packages are installed. Reads dpkg's own status file: no process for a check, one apt-get
// for an apply.
#include <map>

#include "agent/steps/modules.h"

namespace muster::steps {
namespace {

// Installed packages -> version. Half-installed ones are not in it.
Result<std::map<std::string, std::string>> installed(const Files& files) {
  TRY(const std::string text, files.read("/var/lib/dpkg/status"));
  std::map<std::string, std::string> out;
  std::string name, version;
  bool present = false;
  const auto close = [&] {
    if (present && !name.empty()) out[name] = version;
    name.clear(), version.clear(), present = false;
  };
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (line.empty())
      close();
    else if (line.rfind("Package: ", 0) == 0)
      name = line.substr(9);
    else if (line.rfind("Version: ", 0) == 0)
      version = line.substr(9);
    else if (line.rfind("Status: ", 0) == 0)
      present = line.size() > 10 && line.substr(line.size() - 10) == " installed";
  }
  close();
  return out;
}

struct Wanted {
  std::string name, version;
};

std::vector<Wanted> wanted(const Json& params) {
  std::vector<Wanted> out;
  for (const auto& word : list_of(params, "names")) {
    const auto equals = word.find('=');
    out.push_back({word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1)});
  }
  return out;
}

// Words for apt-get of everything that is missing or of another version.
std::vector<std::string> missing(const std::map<std::string, std::string>& have, const Json& params) {
  std::vector<std::string> out;
  for (const auto& want : wanted(params)) {
    const auto it = have.find(want.name);
    if (it != have.end() && (want.version.empty() || want.version == it->second)) continue;
    out.push_back(want.version.empty() ? want.name : want.name + "=" + want.version);
  }
  return out;
}

CheckResult compare(const std::map<std::string, std::string>& have, const Json& params) {
  const auto lacking = missing(have, params);
  return lacking.empty() ? holds() : differs("not installed: " + join(lacking, " "));
}

std::vector<Result<CheckResult>> check_many(StepContext& context, const std::vector<Json>& params) {
  const auto have = installed(context.files);
  std::vector<Result<CheckResult>> out;
  for (const auto& p : params) {
    if (have.ok())
      out.push_back(compare(*have, p));
    else
      out.push_back(have.error());
  }
  return out;
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  TRY(const auto have, installed(context.files));
  return compare(have, params);
}

Status apt(StepContext& context, std::vector<std::string> words, DurationMs deadline) {
  Command command;
  command.argv = {
      "apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.env = {{"DEBIAN_FRONTEND", "noninteractive"}, {"NEEDRESTART_MODE", "l"}, {"LC_ALL", "C.UTF-8"}};
  command.deadline = deadline;
  TRY(auto out, run_ok(context.process, command));
  (void)out;
  return Ok{};
}

Status apply(StepContext& context, const Json& params) {
  TRY(const auto have, installed(context.files));
  auto words = missing(have, params);
  if (words.empty()) return Ok{};
  if (!bool_of(params, "install", true))
    return fail(Code::conflict, "the image lacks " + join(words, " ") + "; add them to its recipe");
  say(context, "installing " + join(words, " "));
  words.insert(words.begin(), {"install", "--no-install-recommends"});
  if (apt(context, words, 30 * kMinute).ok()) return Ok{};
  // Stale or missing package lists are the usual reason.
  if (auto updated = apt(context, {"update"}, 10 * kMinute); !updated.ok())
    return std::move(updated).error().with("apt-get update");
  return apt(context, words, 30 * kMinute);
}

}  // namespace

StepModule package_module() {
  StepModule m;
  m.name = "package";
  m.help =
      "Debian packages are installed, `name=version` for an exact version. Packages baked into the image "
      "cost one file read.";
  m.parameters =
      Json::array({parameter("names", "list", true, "package names, optionally name=version"),
                   parameter("install", "bool", false,
                             "false: they must be in the image, nothing is installed here", true)});
  m.check = check;
  m.check_many = check_many;
  m.apply = apply;
  return m;
}

}  // namespace muster::steps
