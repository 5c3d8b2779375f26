// Findings of `muster spec check` that have a code: warnings, and mistakes of YAML. The one list of the
// codes, from which the page docs/spec.md, the JSON and the key `warnings.silence` follow. Constant values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

namespace finding {
// Mistakes of YAML: errors (controller/spec/yaml_mistake.h).
inline constexpr std::string_view kYamlTab = "yaml-tab";
inline constexpr std::string_view kYamlIndentation = "yaml-indentation";
inline constexpr std::string_view kYamlColon = "yaml-colon";
inline constexpr std::string_view kYamlQuote = "yaml-quote";
inline constexpr std::string_view kYamlBracket = "yaml-bracket";
// Warnings (controller/spec/warnings/).
inline constexpr std::string_view kSizeWithoutUnit = "size-without-unit";
inline constexpr std::string_view kGuardWithoutEffect = "guard-without-effect";
inline constexpr std::string_view kLeadingZero = "leading-zero";
inline constexpr std::string_view kMirrorUndeclared = "mirror-undeclared";
inline constexpr std::string_view kTimeZoneUnchecked = "time-zone-unchecked";
inline constexpr std::string_view kNoLogin = "no-login";
inline constexpr std::string_view kGpusWithoutDriver = "gpus-without-driver";
inline constexpr std::string_view kRailsUnlikeGpus = "rails-unlike-gpus";
inline constexpr std::string_view kBakedNotApplied = "baked-not-applied";
inline constexpr std::string_view kImageUnused = "image-unused";
inline constexpr std::string_view kRoleUnused = "role-unused";
inline constexpr std::string_view kKeyWithoutEffect = "key-without-effect";
inline constexpr std::string_view kVariableUnread = "variable-unread";
inline constexpr std::string_view kVariableMissing = "variable-missing";
inline constexpr std::string_view kPlaceholderDigest = "placeholder-digest";
inline constexpr std::string_view kPlaceholderAddress = "placeholder-address";
inline constexpr std::string_view kPlaceholderKey = "placeholder-key";
inline constexpr std::string_view kOsDiskAmbiguous = "os-disk-ambiguous";
inline constexpr std::string_view kInstallNotFormat = "install-not-format";
}  // namespace finding

enum class Severity { error, warning };  // only warnings can be silenced

struct Finding {
  std::string_view code;
  Severity severity;
  std::string_view meaning;  // what is found, for the page
  std::string_view remedy;   // what to do, in one line
};
const std::vector<Finding>& findings();
// Null: there is no such code.
const Finding* find_finding(std::string_view code);
// The codes of all warnings.
std::vector<std::string> warning_codes();

}  // namespace muster
