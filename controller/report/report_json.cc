// The JSON form of a Report (schema/report.schema.json). Strict reading; absent optional numbers are null.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_dump.h"
#include "base/record.h"
#include "controller/report/report.h"
#include "controller/report/report_causes.h"

namespace muster {
namespace {

constexpr int kVersion = 2;

// What a report's file holds: with the derived title and causes, and the signature, which belongs to the file
// (controller/report/signature.h).
struct ReportText {
  int version = 0;
  std::string title = {};
  Json causes = {};
  Json signature = {};
  Report report = {};
};
MUSTER_RECORD(ReportText, version, title, opt(causes), signature, flat(report))

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
          {"because", check.because},
          {"source", check.source},
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
  std::vector<std::string> not_looked_at, not_judged;
  for (const auto& check : node.checks) {
    if (check.measured) out[flat_name(check)] = *check.measured;
    if (is_finding(check.verdict)) out["failures"].push_back(failure(check));
    if (check.verdict == Verdict::not_looked_at) not_looked_at.push_back(flat_name(check));
    if (check.verdict == Verdict::not_judged) not_judged.push_back(flat_name(check));
  }
  if (!not_looked_at.empty()) out["not_looked_at"] = fmt::format("{}", fmt::join(not_looked_at, ", "));
  if (!not_judged.empty()) out["not_judged"] = fmt::format("{}", fmt::join(not_judged, ", "));
  if (!node.share.empty()) out["share"] = node.share;
  return out;
}

}  // namespace

MUSTER_WORDS(Verdict, kVerdictWords)
MUSTER_WORDS(NodeVerdict, kNodeVerdictWords)
MUSTER_RECORD(HistoryPoint, run, value)
MUSTER_RECORD(Check, name, title, subject, verdict, mandatory, sparse(uncompared), sparse(no_figure_for),
              measured, expected, lower_is_better, unit, measured_text, expected_text, sparse(because),
              sparse(source), derivation, reason, as(faulty_parts, "blame"), history, evidence)
MUSTER_RECORD(StepRecord, name, phase, status, message, as(duration, "duration_ms"))
MUSTER_RECORD(PhaseRecord, name, as(start, "start_ms"), as(duration, "duration_ms"), outcome)
MUSTER_RECORD(DiskRecord, group, serial, wwid, model, size_bytes)
MUSTER_RECORD(NodeReport, name, role, address, verdict, reason, vendor, product, serial, uuid, image,
              image_digest, config_digest, kernel, firmware, sparse(share), sparse(rack),
              sparse(network_switch, "switch"), drivers, disks, phases, steps, checks, facts)
MUSTER_RECORD(LinkRecord, from, to, mbps, rtt_ms, verdict)
MUSTER_RECORD(DestroyedRecord, node, group, serial, wwid, model, size_bytes, content, why)
MUSTER_RECORD(Report, cluster, simulated, kind, run, spec_revision, spec_digest, plan_digests, images,
              approved_by, profile, as(version, "muster_version"), as(started, "started_ms"),
              as(ended, "ended_ms"), nodes, links, destroyed, notes, sparse(running, "running_hosts"),
              sparse(drift))

Json to_json(const Report& report) {
  Json out = record_json(report);
  out["version"] = kVersion;
  out["title"] = title(report);
  if (const auto causes = causes_in(report); !causes.empty()) out["causes"] = causes_json(causes);
  return out;
}

std::string to_json_text(const Report& given) {
  Report report = given;
  settle(report);
  return dump_json(to_json(report), 2) + "\n";
}

Result<Report> report_from_json(const Json& json) {
  TRY(auto read, read_record<ReportText>(json, "report"));
  if (read.version != kVersion)
    return fail(Code::invalid,
                fmt::format("report.version: {} is not supported (the supported version is {})", read.version,
                            kVersion));
  settle(read.report);
  return std::move(read.report);
}

// For log collectors and schedulers' prologs; only "failures" is nested.
std::string render_flat(const Report& given) {
  Report report = given;
  settle(report);
  std::string out;
  for (const auto& node : report.nodes) out += dump_json(flat(report, node)) + "\n";
  return out;
}

}  // namespace muster
