#include "controller/spec/reader/shipped_names.h"

#include <algorithm>

#include "base/split.h"
#include "controller/spec/reader/parse_spec.h"

namespace muster {
namespace {

std::vector<std::string> sorted_words(const char* text) {
  auto out = split_words(text);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

SpecNames shipped_names() {
  return {sorted_words(embedded::playbook_names), sorted_words(embedded::profile_names), {}};
}

}  // namespace muster
