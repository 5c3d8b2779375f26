#include "controller/spec/findings.h"

#include <algorithm>

namespace muster {

const std::vector<Finding>& findings() {
  using enum Severity;
  static const std::vector<Finding> list = {
      {finding::kYamlTab, error, "a tab in front of a key or value", "indent with blanks"},
      {finding::kYamlIndentation, error, "a line that is indented unlike its siblings",
       "give all keys of a map the same indentation"},
      {finding::kYamlColon, error, "a key without its `:`, without a blank after it, or with a second one",
       "write `key: value`"},
      {finding::kYamlQuote, error, "a quote that is not closed, or a text that needs quotes",
       "put the whole text in quotes"},
      {finding::kYamlBracket, error, "a `[` or `{` that is not closed", "close it with `]` or `}`"},
      {finding::kSizeWithoutUnit, warning, "a size below 1 GB without a unit: bytes",
       "write the unit: 512 GiB, 3.8 TB"},
      {finding::kGuardWithoutEffect, warning, "a requirement in `hardware` that every machine meets",
       "require what the machines have, or remove the key"},
      {finding::kLeadingZero, warning, "a number with a leading zero, which other programs read as octal",
       "write it without the zero"},
      {finding::kMirrorUndeclared, warning,
       "an image of a distribution that has no mirror in spec and recipe",
       "declare the mirror in `network.apt`"},
      {finding::kTimeZoneUnchecked, warning, "`time_zone` on a host without time zones",
       "install tzdata where the check runs"},
      {finding::kNoLogin, warning, "installed nodes that no user can log in to, or none with `sudo`",
       "declare a user with `keys` and `sudo: true`, and give the role the playbook `base`"},
      {finding::kGpusWithoutDriver, warning, "`hardware.gpus` where neither image nor role installs a driver",
       "add a playbook that installs the GPUs' driver"},
      {finding::kRailsUnlikeGpus, warning, "a number of rails that does not fit the number of GPUs",
       "correct `rails.count` or `hardware.gpus`"},
      {finding::kBakedNotApplied, warning, "a playbook in `bake` that no role of the image's nodes has",
       "add it to the role, or remove it from `bake`"},
      {finding::kImageUnused, warning, "an image that no node has", "name it in a node, or remove it"},
      {finding::kRoleUnused, warning, "a role that no node has", "name it in a node, or remove it"},
      {finding::kKeyWithoutEffect, warning, "a key that changes nothing", "remove it"},
      {finding::kVariableUnread, warning, "a variable that no playbook of the spec reads",
       "correct its name, or remove it"},
      {finding::kVariableMissing, warning, "a variable that a playbook needs and that is not set",
       "set it in `vars`"},
      {finding::kPlaceholderDigest, warning, "a SHA-256 of zeros, or one that is none",
       "put in what sha256sum prints for the file that you checked"},
      {finding::kPlaceholderAddress, warning, "an address, MAC or name that is reserved for documentation",
       "put in your own"},
      {finding::kPlaceholderKey, warning, "the ssh key of the examples", "put in your own public key"},
      {finding::kOsDiskAmbiguous, warning, "a disk group that may also select the OS disk",
       "distinguish the disks by model, size or serial number"},
      {finding::kInstallNotFormat, warning,
       "the provider installs a system on the OS disk, whose policy is not `format`",
       "give the group `os` the policy `format`"},
  };
  return list;
}

const Finding* find_finding(std::string_view code) {
  const auto& list = findings();
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Finding& one) { return one.code == code; });
  return found == list.end() ? nullptr : &*found;
}

std::vector<std::string> warning_codes() {
  std::vector<std::string> out;
  for (const Finding& one : findings())
    if (one.severity == Severity::warning) out.emplace_back(one.code);
  return out;
}

}  // namespace muster
