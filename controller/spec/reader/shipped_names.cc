#include "controller/spec/reader/shipped_names.h"

#include <algorithm>
#include <sstream>

#include "controller/spec/reader/parse_spec.h"

namespace muster {
namespace {

std::vector<std::string> words_of(const char* text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

SpecNames shipped_names() {
  return {words_of(embedded::playbook_names), words_of(embedded::profile_names), {}};
}

}  // namespace muster
