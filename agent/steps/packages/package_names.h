// Package names as steps write them, and which of them apt can install.
//
//   fio             any version
//   fio=3.*         a version that fits; `*` is a wildcard
//   a=1.*|b=1.*     one of these: the first that can be had
//   headers-{kernel}   {kernel}: the release of the newest kernel of the system, which is the one that boots
//
// Thread safety: stateless functions. read_choices() starts no process; choose() starts apt-cache only for
// alternatives of which none is installed in a version that fits.
#pragma once

#include <string>
#include <vector>

#include "agent/core/step.h"
#include "agent/steps/packages/dpkg_status.h"

namespace muster::steps {

struct NamedPackage {
  std::string name, version;  // version: "" if any will do
};
using Choices = std::vector<NamedPackage>;  // never empty

// invalid: a name is empty. not_found: {kernel} on a system without a kernel.
Result<Choices> read_choices(const Files& files, const std::string& word);

// A version may contain a '*', as apt accepts it: 550.163.01-*
bool is_version(const std::string& want, const std::string& have);

// True if apt has a package of exactly this name, in a version that fits, and its preferences allow it; apt
// then installs it, even if others provide the name.
bool is_offered(StepContext& context, const NamedPackage& package);

struct Chosen {
  std::vector<NamedPackage> packages;  // one of each choice
  std::vector<std::string> left_out;   // optional ones that no archive has
  bool known = true;                   // false: apt's lists lack something, and may be missing or stale
};
Chosen choose(StepContext& context, const Packages& have, const std::vector<Choices>& names);
// Adds one package of each of `optional` that an archive has. If it has other versions only, the wanted one
// is added, which apt then refuses: a set that lacks a part must not pass for a whole one.
void add_optional(StepContext& context, const Packages& have, const std::vector<Choices>& optional,
                  Chosen& chosen);

}  // namespace muster::steps
