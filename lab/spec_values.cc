#include "lab/spec_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/lower.h"
#include "controller/spec/units.h"

namespace muster::lab {

std::string at(const YAML::Node& node) {
  return fmt::format("line {}, column {}", node.Mark().line + 1, node.Mark().column + 1);
}

std::string scalar(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : std::string(); }

std::string declared_address(const YAML::Node& value, const char* key, const GroupMember& member,
                             Problems& problems) {
  if (!value || value.IsNull()) return "";
  const bool listed = value.IsSequence();
  if (listed && value.size() != member.count) {
    if (member.index == 0)
      problems.push_back(
          fmt::format("{}: {}: {} value(s) for {} nodes", at(value), key, value.size(), member.count));
    return "";
  }
  const YAML::Node own = listed ? value[member.index] : value;
  const std::string text = scalar(own);
  if (text.empty()) {
    problems.push_back(fmt::format("{}: {}: expected an address", at(own.IsNull() ? value : own), key));
    return "";
  }
  const auto out = listed ? listed_value(text) : expand_number(text, member.number, NumberForm::decimal);
  if (!out) problems.push_back(fmt::format("{}: {}: {}", at(own), key, out.error().message));
  return out.value_or("");
}

std::string declared_mac(const YAML::Node& macs, const GroupMember& member, Problems& problems) {
  std::string text;
  if (macs && macs.IsSequence() && member.index < macs.size())
    text = scalar(macs[member.index]);
  else if (macs && macs.IsScalar() && (member.count == 1 || macs.Scalar().find('{') != std::string::npos))
    text = scalar(macs);
  const auto mac =
      macs && macs.IsSequence() ? listed_value(text) : expand_number(text, member.number, NumberForm::hex2);
  if (!mac) problems.push_back(fmt::format("{}: mac: {}", at(macs), mac.error().message));
  std::string out = lower(mac.value_or(""));
  std::replace(out.begin(), out.end(), '-', ':');
  return out;
}

}  // namespace muster::lab
