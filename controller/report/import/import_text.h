// Other programs' output as it is saved: by a shell, a terminal recorder, PowerShell, mpirun or srun, several
// runs in one file. Internal to the importers. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Returns the text that the program itself wrote, in UTF-8 with "\n": decodes UTF-16, and removes byte order
// marks, colours, and what mpirun ("[1,0]<stdout>:") and srun ("0: ") put in front of lines. The number of
// lines stays.
std::string plain_text(const std::string& text);

// One run of a tool; `line` is the number of its first line in the file.
struct Run {
  std::string text = {};
  size_t line = 1;
};

// The lines that a run begins with, in their order; a line is one if it contains all of the words.
using Beginning = std::vector<std::vector<const char*>>;

// Splits the text where such a line follows a later one, or itself. Without any: one run.
std::vector<Run> runs_of(const std::string& text, const Beginning& beginning);

}  // namespace muster
