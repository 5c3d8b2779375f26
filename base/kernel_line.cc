#include "base/kernel_line.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <vector>

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

namespace {

std::vector<std::string> consoles(const std::string& declared) {
  std::vector<std::string> out;
  std::istringstream in(declared);
  for (std::string word; in >> word;) out.push_back(word.rfind("console=", 0) == 0 ? word.substr(8) : word);
  return out;
}

}  // namespace

std::string console_value(const std::string& declared) {
  std::string out;
  for (const auto& one : consoles(declared)) out += (out.empty() ? "" : " console=") + one;
  return out;
}

std::string wrong_console(const std::string& declared) {
  for (const auto& one : consoles(declared)) {
    const bool device = !one.empty() && std::isalpha(static_cast<unsigned char>(one[0])) != 0;
    const bool named =
        device && std::all_of(one.begin(), one.end(), [](unsigned char c) {
          return std::isalnum(c) != 0 || c == ',' || c == '/' || c == '-' || c == '_' || c == '.';
        });
    if (!named)
      return "'" + one + "' is no console: name the device as the kernel takes it, such as ttyS0 or " +
             "\"tty0 console=ttyS0,115200\"";
  }
  return "";
}

std::string panic_argument(const std::string& options) {
  const std::string own = kernel_argument(options, "panic");
  return own.empty() || !plain(own) ? kRestartAfterPanic : own;
}

}  // namespace muster
