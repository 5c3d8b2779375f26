// Puts the texts of the playbooks that a spec names by path into the spec itself. Pure: text in, text out.
//
// The controller never reads the operator's disk, and what it stores needs no file beside it. Every line of
// the operator's file stays on its line: the entry `playbooks:` becomes a comment, and its map of file names
// to texts stands at the end. A result that does not read as the same spec with the same texts is refused.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

// The largest playbook, in bytes.
inline constexpr size_t kLargestPlaybook = 256 << 10;

// `text` names its playbooks by path, and `files` are those. Code::invalid: such a text cannot be carried
// (control characters, too large), or the spec is not written in block style.
Result<std::string> carry_playbooks(const std::string& text, const std::vector<OwnPlaybook>& files);

}  // namespace muster
