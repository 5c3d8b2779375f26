// Embeds the texts of files that a spec names by path in the spec itself. Pure functions, text in and text
// out; the command line reads the files (cli/spec_file.h).
//
// The controller never reads the operator's disk, and a spec that it stores needs no further files. Texts are
// embedded byte for byte, as literal blocks of YAML: a result that does not parse as the same spec with the
// same texts is rejected.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

// The largest playbook, in bytes.
inline constexpr size_t kLargestPlaybook = 256 << 10;

// A file to embed: its name for messages, the key for its text, and the text.
struct CarriedText {
  std::string file, key, text;
};

// Embeds the playbooks that `text` names by path; `files` are those playbooks. Every line of the operator's
// file keeps its line number: the entry `playbooks:` becomes a comment, and a map of file names to texts is
// added at the end. Code::invalid: a text cannot be embedded (control characters, too large), or the spec is
// not written in block style.
Result<std::string> carry_playbooks(const std::string& text, const std::vector<OwnPlaybook>& files);

// Adds at the end of `text`: a comment, then a map of keys to texts. Code::invalid as for carry_playbooks().
Result<std::string> carry_section(const std::string& text, const std::string& section,
                                  const std::string& comment, const std::vector<CarriedText>& files);

}  // namespace muster
