#include "base/manual_page.h"

#include <fmt/format.h>

#include "base/split.h"
#include "base/version.h"
#include "base/wrapped.h"

namespace muster {
namespace {

constexpr size_t kManualWidth = 72;  // of an example: readers indent it

// Text that means itself: neither a request nor an escape, and with the characters of a terminal, so that
// what is copied from a manual works.
std::string man_text(const std::string& text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  return out;
}

// A request with one argument.
std::string man_request(const char* request, const std::string& text) {
  std::string quoted;
  for (const char c : man_text(text)) quoted += c == '"' ? "\\(dq" : std::string(1, c);
  return fmt::format(".{} \"{}\"\n", request, quoted);
}

std::string man_paragraphs(const std::string& text) {
  std::string out;
  for (const std::string& line : split_lines(text))
    if (const std::string words = trim(line); !words.empty()) out += ".PP\n" + man_text(words) + "\n";
  return out;
}

std::string man_arguments(const VerbPage& page, bool with_help) {
  std::string out;
  for (const ArgumentPage& argument : page.arguments) {
    if (argument.names.back() == "--help" && !with_help) continue;
    out += ".TP\n" + man_request("B", term_of(argument));
    out += argument.help.empty() ? "\\&\n" : man_text(argument.help) + "\n";
  }
  return out;
}

std::string man_examples(const VerbPage& page) {
  std::string out = ".PP\n.EX\n";
  for (const std::string& example : page.examples)
    for (const std::string& line : wrapped_command(example, kManualWidth)) out += man_text(line) + "\n";
  return out + ".EE\n";
}

}  // namespace

std::string manual_page(const std::vector<VerbPage>& pages, int section) {
  const VerbPage& program = pages.front();
  const std::string name = command_of(program), prefix = name + ": ";
  std::string title = name, what = program.summary;
  for (char& c : title) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (what.starts_with(prefix)) what.erase(0, prefix.size());
  std::string out = fmt::format(".TH {} {} \"\" \"muster {}\"\n", title, section, man_text(kProgramVersion));
  out += ".SH NAME\n" + man_text(name) + " \\- " + man_text(what) + "\n";
  out += ".SH SYNOPSIS\n" + man_request("B", usage_of(program));
  out += ".SH OPTIONS\n";
  if (program.options_below) out += "They may also follow a verb.\n";
  out += man_arguments(program, true);
  bool any = false;
  for (const VerbPage& page : pages) {
    if (page.hidden || &page == &program) continue;
    if (!any) out += ".SH VERBS\n";
    any = true;
    out += man_request("SS", usage_of(page)) + man_text(page.summary) + "\n";
    out += man_arguments(page, false) + man_paragraphs(page.notes);
    if (!page.examples.empty()) out += ".PP\nExamples:\n" + man_examples(page);
  }
  if (!program.notes.empty()) out += ".SH NOTES\n" + man_paragraphs(program.notes);
  if (!program.examples.empty()) out += ".SH EXAMPLES\n" + man_examples(program);
  return out;
}

}  // namespace muster
