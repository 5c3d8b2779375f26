#include "base/kernel_line.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/split.h"

namespace muster {
namespace {

std::string key_of(const std::string& argument) { return argument.substr(0, argument.find('=')); }

bool plain(const std::string& word) {
  for (const unsigned char c : word)
    if (c < 33 || c > 126 || c == '$' || c == '\\' || c == '"' || c == '\'') return false;
  return true;
}

constexpr const char* kConsole = "console=";

std::string without_key(const std::string& word) {
  return word.starts_with(kConsole) ? word.substr(std::string(kConsole).size()) : word;
}

// "ttyS0,115200n8", "hvc0", "uart,mmio32,0xfe215040"
bool is_console(const std::string& name) {
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == ',' || c == '.' || c == ':' || c == '-' || c == '_';
  });
}

}  // namespace

std::string kernel_argument(const std::string& options, const std::string& key) {
  std::string found;
  for (const auto& word : split_words(options))
    if (key_of(word) == key) found = word;
  return found;
}

std::string wrong_kernel_options(const std::string& options) {
  static const std::set<std::string> kOurs = {"root",      "rootfstype", "init", "rdinit", "initrd",
                                              "initrdmem", "noinitrd",   "ro",   "rw",     "--"};
  for (const auto& word : split_words(options)) {
    if (!plain(word))
      return "'" + word + "' contains a character that is not allowed on a kernel's command line";
    if (kOurs.count(key_of(word)) || word.starts_with("muster."))
      return "'" + key_of(word) + "' is reserved, because it determines what is booted";
  }
  return options.find_first_of("\n\r") == std::string::npos
             ? ""
             : "a line break is not allowed on a kernel's command line";
}

std::string wrong_console(const std::string& consoles) {
  if (consoles.find_first_of("\n\r\t") != std::string::npos)
    return "a line break is not allowed on a kernel's command line";
  const auto words = split_words(consoles);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string name = without_key(words[i]);
    // A bare name after the first word could be a different argument, unless it begins with tty or hvc.
    const bool said = i == 0 || words[i] != name || name.starts_with("tty") || name.starts_with("hvc");
    if (!said || !is_console(name))
      return "'" + words[i] +
             "' is not a valid console such as ttyS0,115200 (for several: `tty0 ttyS0,115200`); " +
             "other arguments belong in the variable `kernel_options`";
  }
  return "";
}

std::string console_arguments(const std::string& consoles) {
  std::string out;
  for (const auto& word : split_words(consoles)) out += std::string(" ") + kConsole + without_key(word);
  return out;
}

std::string panic_argument(const std::string& options) {
  const std::string own = kernel_argument(options, "panic");
  return own.empty() || !plain(own) ? kRestartAfterPanic : own;
}

}  // namespace muster
