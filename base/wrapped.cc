#include "base/wrapped.h"

#include <algorithm>

#include "base/split.h"

namespace muster {
namespace {

constexpr size_t kCommandIndent = 4;

// Pieces of a command between blanks that no quotes enclose.
std::vector<std::string> command_pieces(const std::string& command) {
  std::vector<std::string> out(1);
  char quote = '\0';
  for (const char c : command) {
    if (quote == '\0' && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = '\0';
    if (c == ' ' && quote == '\0')
      out.emplace_back();
    else
      out.back() += c;
  }
  std::erase(out, "");
  return out;
}

// `end`: what a line that goes on ends with.
void fill_lines(const std::vector<std::string>& pieces, const std::string& first, const std::string& next,
                const std::string& end, size_t width, std::vector<std::string>& out) {
  std::string line = first;
  bool fresh = true;
  for (const std::string& piece : pieces) {
    if (!fresh && line.size() + 1 + piece.size() + end.size() > width) {
      out.push_back(line + end);
      line = next;
      fresh = true;
    }
    line += (fresh ? "" : " ") + piece;
    fresh = false;
  }
  out.push_back(line);
}

}  // namespace

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> out;
  for (const std::string& line : split_lines(text)) {
    const std::string indent(std::min(line.find_first_not_of(' '), line.size()), ' ');
    fill_lines(split_words(line), indent, indent, "", width, out);
  }
  return out;
}

std::vector<std::string> wrapped_command(const std::string& command, size_t width) {
  std::vector<std::string> out;
  fill_lines(command_pieces(command), "", std::string(kCommandIndent, ' '), " \\", width, out);
  return out;
}

}  // namespace muster
