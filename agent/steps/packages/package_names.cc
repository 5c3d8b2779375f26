#include "agent/steps/packages/package_names.h"

#include <fnmatch.h>

#include <cstring>
#include <optional>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kKernels = "/usr/lib/modules";
const std::string kKernel = "{kernel}";

// The release of the newest kernel; "" if there is none.
std::string newest_kernel(const Files& files) {
  std::string out;
  for (const auto& release : files.list(kKernels))
    if (out.empty() || ::strverscmp(release.c_str(), out.c_str()) > 0) out = release;
  return out;
}

Status put_kernel(const Files& files, std::string& name) {
  const size_t at = name.find(kKernel);
  if (at == std::string::npos) return Ok{};
  const std::string release = newest_kernel(files);
  if (release.empty())
    return fail(Code::not_found, "package: no kernel in " + std::string(kKernels) + " for " + name);
  name.replace(at, kKernel.size(), release);
  return Ok{};
}

std::optional<NamedPackage> installed_choice(const Packages& have, const Choices& choices) {
  for (const auto& choice : choices)
    if (const auto found = have.find(choice.name);
        found != have.end() && is_version(choice.version, found->second.version))
      return choice;
  return std::nullopt;
}

// Nothing: no archive has any of them.
std::optional<NamedPackage> offered_choice(StepContext& context, const Choices& choices) {
  std::optional<NamedPackage> other_version;
  for (const auto& choice : choices) {
    if (!is_offered(context, {choice.name, ""})) continue;
    if (choice.version.empty() || is_offered(context, choice)) return choice;
    if (!other_version) other_version = choice;
  }
  return other_version;
}

}  // namespace

Result<Choices> read_choices(const Files& files, const std::string& word) {
  Choices out;
  for (const auto& one : split(word, '|')) {
    const auto equals = one.find('=');
    NamedPackage package{one.substr(0, equals), equals == std::string::npos ? "" : one.substr(equals + 1)};
    if (package.name.empty()) return fail(Code::invalid, "package: '" + word + "' lacks a name");
    TRY_(put_kernel(files, package.name));
    out.push_back(std::move(package));
  }
  if (out.empty()) return fail(Code::invalid, "package: an empty name");
  return out;
}

bool is_version(const std::string& want, const std::string& have) {
  return want.empty() || fnmatch(want.c_str(), have.c_str(), 0) == 0;
}

// Preferences that rule out every version leave nothing to show, but only while no version is named.
bool is_offered(StepContext& context, const NamedPackage& package) {
  const std::string word = package.version.empty() ? package.name : package.name + "=" + package.version;
  const auto shown = context.process.run({.argv = {"apt-cache", "--no-all-versions", "show", word}});
  return shown.ok() && shown->out.find("Package: " + package.name + "\n") != std::string::npos;
}

Chosen choose(StepContext& context, const Packages& have, const std::vector<Choices>& names) {
  Chosen out;
  for (const auto& choices : names) {
    auto chosen = installed_choice(have, choices);
    if (!chosen && choices.size() > 1) {
      chosen = offered_choice(context, choices);
      if (!chosen) out.known = false;
    }
    out.packages.push_back(chosen.value_or(choices[0]));
  }
  return out;
}

void add_optional(StepContext& context, const Packages& have, const std::vector<Choices>& optional,
                  Chosen& chosen) {
  for (const auto& choices : optional) {
    auto one = installed_choice(have, choices);
    if (!one) one = offered_choice(context, choices);
    if (one)
      chosen.packages.push_back(*one);
    else
      chosen.left_out.push_back(choices.back().name), chosen.known = false;
  }
}

}  // namespace muster::steps
