// One flat JSON object per node and line, for log collectors and schedulers' prologs. Only "failures" is
// nested.
#include <fmt/ranges.h>

#include "base/json_dump.h"
#include "controller/report/report.h"

namespace muster {
namespace {

// "links/send_mbps" of subject node02 -> "links.send_mbps[node02]"
std::string flat_name(const Check& check) {
  std::string name = check.name;
  for (char& c : name)
    if (c == '/') c = '.';
  return check.subject.empty() ? name : name + "[" + check.subject + "]";
}

Json failure(const Check& check) {
  return {{"check", check.name},
          {"subject", check.subject},
          {"verdict", to_string(check.verdict)},
          {"mandatory", check.mandatory},
          {"measured", check.measured ? Json(*check.measured) : Json()},
          {"expected", check.expected ? Json(*check.expected) : Json()},
          {"unit", check.unit},
          {"reason", check.reason},
          {"blame", check.faulty_parts}};
}

Json flat(const Report& report, const NodeReport& node) {
  Json out = {{"cluster", report.cluster},
              {"simulated", report.simulated},
              {"run", report.run},
              {"kind", report.kind},
              {"profile", report.profile},
              {"ended_ms", report.ended},
              {"report_digest", report.digest},
              {"spec_revision", report.spec_revision},
              {"spec_digest", report.spec_digest},
              {"plan_digest", report.plan_digests.empty() ? "" : report.plan_digests.back()},
              {"node", node.name},
              {"role", node.role},
              {"serial", node.serial},
              {"uuid", node.uuid},
              {"image_digest", node.image_digest},
              {"kernel", node.kernel},
              {"firmware", node.firmware},
              {"verdict", to_string(node.verdict)},
              {"reason", node.reason},
              {"failures", Json::array()}};
  std::vector<std::string> not_looked_at;
  for (const auto& check : node.checks) {
    if (check.measured) out[flat_name(check)] = *check.measured;
    if (is_finding(check.verdict)) out["failures"].push_back(failure(check));
    if (check.verdict == Verdict::not_looked_at) not_looked_at.push_back(flat_name(check));
  }
  if (!not_looked_at.empty()) out["not_looked_at"] = fmt::format("{}", fmt::join(not_looked_at, ", "));
  if (!node.share.empty()) out["share"] = node.share;
  return out;
}

}  // namespace

std::string render_flat(const Report& given) {
  Report report = given;
  settle(report);
  std::string out;
  for (const auto& node : report.nodes) out += dump_json(flat(report, node)) + "\n";
  return out;
}

}  // namespace muster
