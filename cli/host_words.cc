#include "cli/host_words.h"

#include <fmt/format.h>

#include "base/lower.h"
#include "base/scan.h"
#include "cli/destination.h"
#include "cli/host_range.h"
#include "controller/spec/host_name.h"

namespace muster::cli {
namespace {

// "node04" -> {"node", "4"}; "r1n02" -> {"rn", "1 2"}.
std::pair<std::string, std::string> letters_and_numbers(const std::string& word) {
  std::string letters, numbers;
  bool inside = false;
  for (const char c : lower(word)) {
    if (!is_digit(c)) {
      letters += c;
    } else {
      if (!inside) numbers += ' ';
      if (c != '0' || (inside && numbers.back() != ' ')) numbers += c;
    }
    inside = is_digit(c);
  }
  return {letters, numbers};
}

// Words of other tools' lists.
std::string wrong_syntax(const std::string& written) {
  if (written.starts_with('@'))
    return fmt::format("'{}': groups of other tools are not known: pass what `nodeset -f {}` prints", written,
                       written);
  if (written.starts_with('^'))
    return fmt::format("'{}': pass the file by itself: --hosts {}", written, written.substr(1));
  if (written.find_first_of("*?") != std::string::npos)
    return fmt::format("'{}': wildcards are not expanded: write a range such as gpu[01-08]", written);
  if (written.find_first_of("!&^") != std::string::npos)
    return fmt::format("'{}': operators of clush are not read: pass what `nodeset -f '{}'` prints", written,
                       written);
  return "";
}

}  // namespace

std::string name_of_written(const std::string& written) {
  std::string host = destination_host(written);
  if (host.ends_with('.')) host.pop_back();
  const std::string name = host_label(host), port = distinct_port(written);
  return name.empty() || port.empty() ? name : host_label(name + "-" + port);
}

std::string wrong_listed_host(const std::string& written) {
  if (std::string wrong = wrong_syntax(written); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_destination(written); !wrong.empty()) return wrong;
  const std::string name = name_of_written(written);
  if (name.empty()) return fmt::format("'{}' has no letter or digit", written);
  const std::string wrong = wrong_host_name(name);
  return wrong.empty() ? "" : wrong + fmt::format(": `{}01 destination={}`", name, written);
}

bool are_siblings(const std::string& name, const std::string& other) {
  if (has_destination_signs(name) || has_login_signs(other)) return false;
  const auto a = letters_and_numbers(name), b = letters_and_numbers(other.substr(0, other.find('.')));
  return a.first == b.first && a.second != b.second && !a.first.empty() && !a.second.empty() &&
         !b.second.empty();
}

bool leads_elsewhere(const std::string& word, const std::string& host) {
  return lower(host) != lower(word) && !lower(host).starts_with(lower(word) + ".");
}

std::string two_plain_words(const std::string& name, const std::string& second) {
  return fmt::format(
      "'{0} {1}' could mean that {1} is measured under the name {0}: two hosts need a comma or a line "
      "between them; a login is written {1}@{0}; if ssh reaches {0} as {1}, write '{0} destination={1}'",
      name, second);
}

std::string destination_before_name(const std::string& first, const std::string& second) {
  return fmt::format(
      "'{0}' is no name: if it is where {1} is reached, write '{1} {0}'; if {1} is a login, "
      "write '{2}'; two hosts need a comma or a line between them",
      first, second, with_user_and_port(first, second, ""));
}

bool is_genders(const std::vector<HostWord>& words) {
  return words.size() == 2 && split_host_list(words[1].text).size() > 1 && !not_of_genders(words);
}

const HostWord* not_of_genders(const std::vector<HostWord>& words) {
  if (words.size() > 2) return &words[2];
  if (words.size() < 2) return nullptr;
  const std::string& second = words[1].text;
  for (const char* key : {"address=", "group=", "destination="})
    if (second.starts_with(key)) return &words[1];
  // A value may have dots: os=8.9.
  for (const std::string& part : split_host_list(second))
    if (has_destination_signs(part.substr(0, part.find('=')))) return &words[1];
  return nullptr;
}

}  // namespace muster::cli
