#include "base/help_text.h"

#include <fmt/format.h>

#include "base/wrapped.h"

namespace muster {
namespace {

constexpr size_t kTermWidth = 24;  // what is explained stands left of this column

std::string paragraph(const std::string& text) {
  std::string out;
  for (const std::string& line : wrapped(text, kHelpWidth)) out += line + "\n";
  return out;
}

// A term that does not fit beside its explanation stands above it.
std::string help_entry(const std::string& term, const std::string& words) {
  std::string out, head = "  " + term;
  for (const std::string& line : wrapped(words, kHelpWidth - kTermWidth)) {
    if (head.size() + 2 > kTermWidth) out += head + "\n", head.clear();
    out += fmt::format("{:<{}}{}\n", head, kTermWidth, line);
    head.clear();
  }
  return head.empty() ? out : out + head + "\n";
}

std::string help_arguments(const VerbPage& page, bool positional, const char* title) {
  std::string out;
  for (const ArgumentPage& argument : page.arguments)
    if (argument.positional == positional) out += help_entry(term_of(argument), argument.help);
  return out.empty() ? "" : fmt::format("\n{}:\n{}", title, out);
}

std::string help_verbs(const std::vector<VerbPage>& pages, const VerbPage& page) {
  std::string out;
  for (const VerbPage* below : pages_below(pages, page))
    out += help_entry(below->path.back(), below->summary);
  return out.empty() ? "" : "\nVerbs:\n" + out;
}

// The program's options where each verb takes them, too: by name, because its own help explains them.
std::string help_of_all(const std::vector<VerbPage>& pages, const VerbPage& page) {
  const VerbPage& program = pages.front();
  if (&page == &program || !program.options_below) return "";
  std::string names;
  for (const ArgumentPage& argument : program.arguments)
    if (!argument.positional && !argument.alone && !argument_at(page, argument.names.back()))
      names += (names.empty() ? "" : ", ") + argument.names.back();
  if (names.empty()) return "";
  return "\n" + paragraph(fmt::format("Also: {}; see `{} --help`.", names, command_of(program)));
}

}  // namespace

std::string help_text(const std::vector<VerbPage>& pages, const VerbPage& page) {
  std::string out = paragraph("Usage: " + usage_of(page)) + "\n" + paragraph(page.summary);
  out += help_arguments(page, true, "Arguments") + help_arguments(page, false, "Options");
  out += help_verbs(pages, page);
  if (!page.notes.empty()) out += "\n" + paragraph(page.notes);
  if (!page.examples.empty()) out += "\nExamples:\n";
  for (const std::string& example : page.examples)
    for (const std::string& line : wrapped_command(example, kHelpWidth - 2)) out += "  " + line + "\n";
  return out + help_of_all(pages, page);
}

}  // namespace muster
