// A spec's own playbooks beside the shipped ones (docs/decisions/0001). Pure.
//
// A name is either shipped or the spec's own. A playbook of a shipped name is an error unless it says that it
// is an overlay; an overlay says which shipped steps it replaces and removes, and an error is also what it
// names and is not there: what an upgrade of muster renamed is never left behind unnoticed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/spec/playbook.h"
#include "controller/spec/spec.h"

namespace muster {

// "site/motd.yaml" -> "motd".
std::string playbook_of_file(const std::string& file);
// Whether the file is an acceptance profile: it lies in a folder of the name `acceptance`.
bool is_profile_file(const std::string& file);
// What it is found by among all: "motd", "acceptance/ours".
std::string key_of_file(const std::string& file);

// With what is only asked of them: the file's name, modules that exist with parameters that they have, and of
// a profile that it only measures. Errors name the file.
ParsedPlaybook parse_own_playbook(const OwnPlaybook& own);

// Puts them beside, or over, those in `all` (by name). With errors `all` is worth nothing.
std::vector<SpecError> add_own_playbooks(const std::vector<OwnPlaybook>& own,
                                         std::map<std::string, Playbook>& all);

}  // namespace muster
