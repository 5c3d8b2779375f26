#include "agent/steps/network/packet_filter.h"

#include <algorithm>
#include <set>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

std::string word_after(const std::string& line, const std::string& option) {
  const auto words = split(line, ' ');
  const auto at = std::find(words.begin(), words.end(), option);
  return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
}

// Where a rule leads; "-g" jumps without coming back.
std::string target_of(const std::string& line) {
  const std::string jump = word_after(line, "-j");
  return jump.empty() ? word_after(line, "-g") : jump;
}

}  // namespace

FilterRules filter_rules(const std::string& printed) {
  FilterRules out;
  for (const auto& line : lines_of(printed)) {
    if (line.rfind("-P INPUT ", 0) == 0) out.input_policy = line.substr(9);
    if (line.rfind("-N ", 0) == 0) out.chains[line.substr(3)];
    if (line.rfind("-A ", 0) == 0) out.chains[line.substr(3, line.find(' ', 3) - 3)].push_back(line);
  }
  return out;
}

std::vector<std::string> input_jumps(const std::string& prefix) {
  std::vector<std::string> out;
  for (const char* chain : {"before-logging-input", "before-input", "after-input", "after-logging-input",
                            "reject-input", "track-input"})
    out.push_back(prefix + "-" + chain);
  return out;
}

std::vector<std::string> accepting_lines(const FilterRules& rules, const std::string& except,
                                         const std::string& prefix) {
  std::vector<std::string> out, open = {"INPUT"};
  std::set<std::string> visited = {except};
  while (!open.empty()) {
    const std::string chain = open.back();
    open.pop_back();
    const auto found = rules.chains.find(chain);
    if (found == rules.chains.end() || !visited.insert(chain).second) continue;
    const bool foreign = chain != "INPUT" && chain.rfind(prefix + "-", 0) != 0;
    for (const auto& line : found->second) {
      const std::string target = target_of(line);
      if (rules.chains.count(target)) open.push_back(target);
      const bool of_one_interface =
          foreign && !word_after(line, "-i").empty() && line.find(" ! -i ") == std::string::npos;
      if (target == "ACCEPT" && !of_one_interface) out.push_back(line);
    }
  }
  return out;
}

std::vector<std::string> accepts_around(const std::vector<std::string>& lines, const std::string& prefix) {
  std::vector<std::string> out;
  for (const auto& line : lines)
    for (const char* chain : {"-before-input ", "-after-input "})
      if (line.rfind("-A " + prefix + chain, 0) == 0 && target_of(line) == "ACCEPT") out.push_back(line);
  return out;
}

}  // namespace muster::steps
