#include "base/kernel_line.h"

#include <set>
#include <sstream>

namespace muster {

namespace {

std::string key_of(const std::string& argument) { return argument.substr(0, argument.find('=')); }

bool plain(const std::string& word) {
  for (const unsigned char c : word)
    if (c < 33 || c > 126 || c == '$' || c == '\\' || c == '"' || c == '\'') return false;
  return true;
}

}  // namespace

std::string kernel_argument(const std::string& options, const std::string& key) {
  std::string found;
  std::istringstream in(options);
  for (std::string word; in >> word;)
    if (key_of(word) == key) found = word;
  return found;
}

std::string wrong_kernel_options(const std::string& options) {
  static const std::set<std::string> kOurs = {"root", "rootfstype", "init", "rdinit", "initrd", "ro", "rw"};
  std::istringstream in(options);
  for (std::string word; in >> word;) {
    if (!plain(word))
      return "'" + word + "' holds a character that does not belong on a kernel's command line";
    if (kOurs.count(key_of(word)) || word.rfind("muster.", 0) == 0)
      return "'" + key_of(word) + "' decides what is booted";
  }
  return options.find_first_of("\n\r") == std::string::npos
             ? ""
             : "a line break does not belong on a kernel's command line";
}

std::string panic_argument(const std::string& options) {
  const std::string own = kernel_argument(options, "panic");
  return own.empty() || !plain(own) ? kRestartAfterPanic : own;
}

}  // namespace muster
