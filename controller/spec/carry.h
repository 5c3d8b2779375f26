// Embeds the texts of files that a spec names by path in the spec itself. Pure: text in, text out; the files
// are read by the command line (cli/carried_files.h, cli/spec_file.h).
//
// The controller never reads the operator's disk, and what it stores needs no file beside it. Texts arrive
// byte for byte, as literal blocks of YAML: a result that does not read as the same spec with the same texts
// is refused.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

// The largest playbook, in bytes.
inline constexpr size_t kLargestPlaybook = 256 << 10;

// A file to embed: its name in messages, the key for its text, the text.
struct CarriedText {
  std::string file, key, text;
};

// `text` names its playbooks by path; `files` are those playbooks. Every line of the operator's file stays on
// its line: the entry `playbooks:` becomes a comment, and its map of file names to texts stands at the end.
// Code::invalid: such a text cannot be embedded (control characters, too large), or the spec is not written
// in block style.
Result<std::string> carry_playbooks(const std::string& text, const std::vector<OwnPlaybook>& files);

// `text` with a new section at its end, a map of keys to texts, preceded by a comment. Code::invalid as
// above.
Result<std::string> carry_section(const std::string& text, const std::string& section,
                                  const std::string& comment, const std::vector<CarriedText>& files);

}  // namespace muster
