// What can be read of a command line: a page per verb, from one walk over its tree. Help (help_text.h),
// manual (manual_page.h) and completion (completion.h) are rendered from the pages. Thread safety: stateless
// functions.
#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"

namespace muster {

struct ArgumentPage {
  std::vector<std::string> names = {};  // "-v", "--verbose"; of a positional argument one: "NODES"
  std::string value = {};               // stands for its value: "TEXT", "N", "text|html"; "" of a flag
  std::vector<std::string> words = {};  // the only values that it takes; empty: any
  std::string help = {};                // with its default and what else it needs
  bool positional = false, required = false, several = false;
  bool alone = false;  // of the program only: --version, --manual
};

struct VerbPage {
  std::vector<std::string> path = {};        // "muster", "spec", "check"
  std::string summary = {};                  // one line
  std::string notes = {};                    // a paragraph per line
  std::vector<ArgumentPage> arguments = {};  // the last one is --help
  std::vector<std::string> examples = {};
  bool hidden = false;  // from lists
  bool has_verbs = false, needs_verb = false;
  bool takes_rest = false;     // words that it does not know belong to another program
  bool options_below = false;  // its options may follow the verbs below it
};

// The program's own page, then those of its verbs, each followed by what is below it. `name` is the
// program's.
std::vector<VerbPage> verb_pages(const Verb& program, const std::string& name);

// Null if there is none.
const VerbPage* page_at(const std::vector<VerbPage>& pages, const std::vector<std::string>& path);
// Those directly below, without hidden ones.
std::vector<const VerbPage*> pages_below(const std::vector<VerbPage>& pages, const VerbPage& page);
// The argument with this name, such as "--limit"; null if there is none.
const ArgumentPage* argument_at(const VerbPage& page, const std::string& name);
// "muster spec check"
std::string command_of(const VerbPage& page);
// "muster power cycle [OPTIONS] NODES"
std::string usage_of(const VerbPage& page);
// "-v, --verbose", "--limit TEXT", "NODES"
std::string term_of(const ArgumentPage& argument);

}  // namespace muster
