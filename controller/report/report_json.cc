// The JSON form of a Report: schema/report.schema.json. Reading is strict; optional numbers are null when
// absent.
#include <fmt/format.h>

#include "base/json_dump.h"
#include "base/record.h"
#include "controller/report/report.h"

namespace muster {
namespace {

constexpr int kVersion = 2;

// What a report's file holds: with the derived title, and the signature, which belongs to the file
// (controller/report/signature.h).
struct ReportText {
  int version = 0;
  std::string title = {};
  Json signature = {};
  Report report = {};
};
MUSTER_RECORD(ReportText, version, title, signature, flat(report))

}  // namespace

MUSTER_WORDS(Verdict, kVerdictWords)
MUSTER_WORDS(NodeVerdict, kNodeVerdictWords)
MUSTER_RECORD(HistoryPoint, run, value)
MUSTER_RECORD(Check, name, title, subject, verdict, mandatory, measured, expected, lower_is_better, unit,
              measured_text, expected_text, derivation, reason, as(faulty_parts, "blame"), history, evidence)
MUSTER_RECORD(StepRecord, name, phase, status, message, as(duration, "duration_ms"))
MUSTER_RECORD(PhaseRecord, name, as(start, "start_ms"), as(duration, "duration_ms"), outcome)
MUSTER_RECORD(DiskRecord, group, serial, wwid, model, size_bytes)
MUSTER_RECORD(NodeReport, name, role, address, verdict, reason, vendor, product, serial, uuid, image,
              image_digest, config_digest, kernel, firmware, sparse(share), drivers, disks, phases, steps,
              checks, facts)
MUSTER_RECORD(LinkRecord, from, to, mbps, rtt_ms, verdict)
MUSTER_RECORD(DestroyedRecord, node, group, serial, wwid, model, size_bytes, content, why)
MUSTER_RECORD(Report, cluster, simulated, kind, run, spec_revision, spec_digest, plan_digests, images,
              approved_by, profile, as(version, "muster_version"), as(started, "started_ms"),
              as(ended, "ended_ms"), nodes, links, destroyed, notes, sparse(drift))

Json to_json(const Report& report) {
  Json out = record_json(report);
  out["version"] = kVersion;
  out["title"] = title(report);
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

}  // namespace muster
