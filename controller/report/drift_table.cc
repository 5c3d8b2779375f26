// Drift in the HTML report: a table per group with the properties that differ or were not read everywhere.
#include <fmt/format.h>

#include "base/plural.h"
#include "base/split.h"
#include "controller/report/markup.h"

namespace muster::markup {
namespace {

constexpr size_t kListedHosts = 12;

bool is_equal(const DriftProperty& property) {
  return property.agreement == Agreement::equal && property.not_looked_at.empty();
}

std::string row(const DriftProperty& property) {
  const DriftValue* majority = property.majority();
  std::string others;
  for (const DriftValue& one : property.values)
    if (&one != majority)
      others += fmt::format("{}{} on <b>{}</b>", others.empty() ? "" : "<br>", escape(one.value),
                            escape(some_of(one.hosts, kListedHosts)));
  return fmt::format(
      "<tr><td><b>{}</b></td><td data-l=\"Most\">{}</td><td data-l=\"Others\">{}</td><td data-l=\"Not looked "
      "at\">{}</td></tr>",
      escape(property.name),
      majority ? fmt::format("{} <span class=\"muted\">on {}</span>", escape(majority->value),
                             counted(majority->hosts.size(), "node"))
               : fmt::format("<span class=\"muted\">{}</span>", escape(to_string(property.agreement))),
      others, escape(some_of(property.not_looked_at, kListedHosts)));
}

std::string table(const DriftGroup& group) {
  std::string rows, alike;
  size_t equal = 0;
  for (const DriftProperty& property : group.properties) {
    if (!is_equal(property)) {
      rows += row(property);
      continue;
    }
    ++equal;
    alike +=
        fmt::format("<dt>{}</dt><dd>{}</dd>", escape(property.name), escape(property.values.front().value));
  }
  std::string out =
      fmt::format("<h3>{} ({}): {} of {} properties are equal on all hosts</h3>", escape(group.name),
                  counted(group.hosts.size(), "node"), equal, group.properties.size());
  if (!rows.empty())
    out +=
        "<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>Property</th><th>Most</th><th>Others"
        "</th><th>Not looked at</th></tr></thead><tbody>" +
        rows + "</tbody></table></div>";
  if (!alike.empty())
    out += "<details><summary>equal properties</summary><dl class=\"facts\">" + alike + "</dl></details>";
  return out;
}

}  // namespace

std::string drift(const Report& report) {
  if (report.drift.empty()) return "";
  std::string out =
      "<p class=\"muted\">This section compares nodes of the same role and product. The majority may be "
      "wrong: nothing here is a verdict.</p>";
  for (const DriftGroup& group : report.drift) out += table(group);
  return out;
}

}  // namespace muster::markup
