#include "base/shell_text.h"

namespace muster {

std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += R"('\'')";
    else
      out += c;
  }
  return out + "'";
}

std::string run_next_line(const std::string& shell, const std::string& before) {
  return shell + " -c '" + before + R"sh(IFS= read -r c; eval "$(printf %b "$c")"')sh";
}

std::string as_next_line(const std::string& command) {
  std::string out;
  for (const char c : command) {
    if (c == '\n')
      out += "\\n";
    else
      out += c == '\\' ? "\\\\" : std::string(1, c);
  }
  return out + "\n";
}

}  // namespace muster
