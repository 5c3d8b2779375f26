// Mistyped verbs and options, at whatever depth: the parser reports them as a verb that is missing, or
// without what was meant. Thread safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/verb_pages.h"

namespace muster::cli {

struct UnknownWord {
  std::string word;
  std::string command;  // where it stands: "muster spec"
  bool option = false;
  std::string near;  // what may be meant; "" if nothing resembles it
};

// The first one of `words`, which follow the program's name.
std::optional<UnknownWord> unknown_word(const std::vector<VerbPage>& pages,
                                        const std::vector<std::string>& words);

// "unknown verb 'chexk' of `muster spec`, did you mean 'check'? ..."
std::string to_text(const UnknownWord& unknown);

}  // namespace muster::cli
