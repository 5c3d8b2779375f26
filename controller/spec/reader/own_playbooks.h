// A spec's own playbooks, used in addition to the shipped ones (docs/decisions/0001). Pure functions, no I/O.
//
// A name is either shipped or the spec's own. A playbook with a shipped name is an error unless it declares
// itself an overlay. An overlay lists the shipped steps that it replaces and removes; a listed step that does
// not exist is an error too, so that a step renamed by an upgrade of muster never goes unnoticed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns the playbook's name: "motd" for "site/motd.yaml".
std::string playbook_of_file(const std::string& file);
// True if the file is an acceptance profile: it is in a folder named `acceptance`.
bool is_profile_file(const std::string& file);
// Returns the playbook's key among all playbooks: "motd", "acceptance/ours".
std::string key_of_file(const std::string& file);

// Parses one, with the extra checks for own playbooks: the file's name, known modules and parameters, and
// that a profile only measures. Errors name the file.
ParsedPlaybook parse_own_playbook(const OwnPlaybook& own);

// Adds them to `all` (by name), or overlays the playbooks in it. After an error `all` must not be used.
std::vector<SpecError> add_own_playbooks(const std::vector<OwnPlaybook>& own,
                                         std::map<std::string, Playbook>& all);

}  // namespace muster
