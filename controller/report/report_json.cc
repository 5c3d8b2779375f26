// The JSON form of a Report: schema/report.schema.json. Reading is strict; optional numbers are null when
// absent.
#include <fmt/format.h>

#include "base/json_dump.h"
#include "controller/report/report.h"

namespace muster {
namespace {

constexpr int kVersion = 2;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json write(const HistoryPoint& h) { return {{"run", h.run}, {"value", h.value}}; }
template <typename T>
Json write_list(const std::vector<T>& items);
Json write(const Check& c) {
  return {{"name", c.name},
          {"title", c.title},
          {"subject", c.subject},
          {"verdict", to_string(c.verdict)},
          {"mandatory", c.mandatory},
          {"measured", number(c.measured)},
          {"expected", number(c.expected)},
          {"lower_is_better", c.lower_is_better},
          {"unit", c.unit},
          {"measured_text", c.measured_text},
          {"expected_text", c.expected_text},
          {"derivation", c.derivation},
          {"reason", c.reason},
          {"blame", c.faulty_parts},
          {"history", write_list(c.history)},
          {"evidence", c.evidence}};
}
Json write(const StepRecord& s) {
  return {{"name", s.name},
          {"phase", s.phase},
          {"status", s.status},
          {"message", s.message},
          {"duration_ms", s.duration}};
}
Json write(const PhaseRecord& p) {
  return {{"name", p.name}, {"start_ms", p.start}, {"duration_ms", p.duration}, {"outcome", p.outcome}};
}
Json write(const DiskRecord& d) {
  return {{"group", d.group},
          {"serial", d.serial},
          {"wwid", d.wwid},
          {"model", d.model},
          {"size_bytes", d.size_bytes}};
}
Json write(const LinkRecord& l) {
  return {{"from", l.from},
          {"to", l.to},
          {"mbps", number(l.mbps)},
          {"rtt_ms", number(l.rtt_ms)},
          {"verdict", to_string(l.verdict)}};
}
Json write(const DestroyedRecord& d) {
  return {{"node", d.node},   {"group", d.group},           {"serial", d.serial},   {"wwid", d.wwid},
          {"model", d.model}, {"size_bytes", d.size_bytes}, {"content", d.content}, {"why", d.why}};
}
Json write(const NodeReport& n);

template <typename T>
Json write_list(const std::vector<T>& items) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(write(item));
  return out;
}
Json write(const NodeReport& n) {
  Json out = {{"name", n.name},
              {"role", n.role},
              {"address", n.address},
              {"verdict", to_string(n.verdict)},
              {"reason", n.reason},
              {"vendor", n.vendor},
              {"product", n.product},
              {"serial", n.serial},
              {"uuid", n.uuid},
              {"image", n.image},
              {"image_digest", n.image_digest},
              {"config_digest", n.config_digest},
              {"kernel", n.kernel},
              {"firmware", n.firmware},
              {"drivers", n.drivers},
              {"disks", write_list(n.disks)},
              {"phases", write_list(n.phases)},
              {"steps", write_list(n.steps)},
              {"checks", write_list(n.checks)},
              {"facts", n.facts}};
  if (!n.share.empty()) out["share"] = n.share;
  return out;
}

Result<Verdict> read_verdict(const std::string& word, const std::string& path) {
  for (const Verdict v : {Verdict::pass, Verdict::degraded, Verdict::fail, Verdict::not_applicable,
                          Verdict::skipped, Verdict::not_looked_at})
    if (word == to_string(v)) return v;
  return fail(Code::invalid, fmt::format("{}.verdict: unknown verdict '{}'", path, word));
}

Result<std::optional<double>> read_number(JsonReader& r, const char* key, const std::string& path) {
  const Json& raw = r.raw(key);
  if (raw.is_null()) return std::optional<double>{};
  if (!raw.is_number())
    return fail(Code::invalid, fmt::format("{}.{}: expected a number or null", path, key));
  return std::optional<double>(raw.get<double>());
}

template <typename T, typename Read>
Status read_list(JsonReader& r, const char* key, const std::string& path, std::vector<T>& out, Read read) {
  const Json& list = r.raw(key);
  if (!list.is_array()) return fail(Code::invalid, fmt::format("{}.{}: expected a list", path, key));
  for (size_t i = 0; i < list.size(); ++i) {
    TRY(T item, read(list[i], fmt::format("{}.{}[{}]", path, key, i)));
    out.push_back(std::move(item));
  }
  return Ok{};
}

Result<HistoryPoint> read_history(const Json& json, const std::string& path) {
  HistoryPoint h;
  JsonReader r(json, path);
  r.get("run", h.run);
  r.get("value", h.value);
  TRY_(r.finish());
  return h;
}
Result<Check> read_check(const Json& json, const std::string& path) {
  Check c;
  std::string verdict;
  JsonReader r(json, path);
  r.get("name", c.name);
  r.get("title", c.title);
  r.get("subject", c.subject);
  r.get("verdict", verdict);
  r.get("mandatory", c.mandatory);
  r.get("lower_is_better", c.lower_is_better);
  r.get("unit", c.unit);
  r.get("measured_text", c.measured_text);
  r.get("expected_text", c.expected_text);
  r.get("derivation", c.derivation);
  r.get("reason", c.reason);
  r.get("blame", c.faulty_parts);
  c.evidence = r.raw("evidence");
  TRY(c.measured, read_number(r, "measured", path));
  TRY(c.expected, read_number(r, "expected", path));
  TRY_(read_list(r, "history", path, c.history, read_history));
  TRY_(r.finish());
  TRY(c.verdict, read_verdict(verdict, path));
  return c;
}
Result<StepRecord> read_step(const Json& json, const std::string& path) {
  StepRecord s;
  JsonReader r(json, path);
  r.get("name", s.name);
  r.get("phase", s.phase);
  r.get("status", s.status);
  r.get("message", s.message);
  r.get("duration_ms", s.duration);
  TRY_(r.finish());
  return s;
}
Result<PhaseRecord> read_phase(const Json& json, const std::string& path) {
  PhaseRecord p;
  JsonReader r(json, path);
  r.get("name", p.name);
  r.get("start_ms", p.start);
  r.get("duration_ms", p.duration);
  r.get("outcome", p.outcome);
  TRY_(r.finish());
  return p;
}
Result<DiskRecord> read_disk(const Json& json, const std::string& path) {
  DiskRecord d;
  JsonReader r(json, path);
  r.get("group", d.group);
  r.get("serial", d.serial);
  r.get("wwid", d.wwid);
  r.get("model", d.model);
  r.get("size_bytes", d.size_bytes);
  TRY_(r.finish());
  return d;
}
Result<LinkRecord> read_link(const Json& json, const std::string& path) {
  LinkRecord l;
  std::string verdict;
  JsonReader r(json, path);
  r.get("from", l.from);
  r.get("to", l.to);
  r.get("verdict", verdict);
  TRY(l.mbps, read_number(r, "mbps", path));
  TRY(l.rtt_ms, read_number(r, "rtt_ms", path));
  TRY_(r.finish());
  TRY(l.verdict, read_verdict(verdict, path));
  return l;
}
Result<DestroyedRecord> read_destroyed(const Json& json, const std::string& path) {
  DestroyedRecord d;
  JsonReader r(json, path);
  r.get("node", d.node);
  r.get("group", d.group);
  r.get("serial", d.serial);
  r.get("wwid", d.wwid);
  r.get("model", d.model);
  r.get("size_bytes", d.size_bytes);
  r.get("content", d.content);
  r.get("why", d.why);
  TRY_(r.finish());
  return d;
}

Result<NodeReport> read_node(const Json& json, const std::string& path) {
  NodeReport n;
  std::string verdict;
  JsonReader r(json, path);
  r.get("name", n.name);
  r.get("role", n.role);
  r.get("address", n.address);
  r.get("verdict", verdict);
  r.get("reason", n.reason);
  r.get("vendor", n.vendor);
  r.get("product", n.product);
  r.get("serial", n.serial);
  r.get("uuid", n.uuid);
  r.get("image", n.image);
  r.get("image_digest", n.image_digest);
  r.get("config_digest", n.config_digest);
  r.get("kernel", n.kernel);
  r.get("firmware", n.firmware);
  r.get_or("share", n.share, {});
  r.get("drivers", n.drivers);
  n.facts = r.raw("facts");
  TRY_(read_list(r, "disks", path, n.disks, read_disk));
  TRY_(read_list(r, "phases", path, n.phases, read_phase));
  TRY_(read_list(r, "steps", path, n.steps, read_step));
  TRY_(read_list(r, "checks", path, n.checks, read_check));
  TRY_(r.finish());
  for (const NodeVerdict v : {NodeVerdict::accepted, NodeVerdict::degraded, NodeVerdict::returned,
                              NodeVerdict::quarantined, NodeVerdict::failed})
    if (verdict == to_string(v)) {
      n.verdict = v;
      return n;
    }
  return fail(Code::invalid, fmt::format("{}.verdict: unknown verdict '{}'", path, verdict));
}

}  // namespace

Json to_json(const Report& r) {
  Json out = {{"version", kVersion},
              {"cluster", r.cluster},
              {"simulated", r.simulated},
              {"title", title(r)},
              {"kind", r.kind},
              {"run", r.run},
              {"spec_revision", r.spec_revision},
              {"spec_digest", r.spec_digest},
              {"plan_digests", r.plan_digests},
              {"images", r.images},
              {"approved_by", r.approved_by},
              {"profile", r.profile},
              {"muster_version", r.version},
              {"started_ms", r.started},
              {"ended_ms", r.ended},
              {"nodes", write_list(r.nodes)},
              {"links", write_list(r.links)},
              {"destroyed", write_list(r.destroyed)},
              {"notes", r.notes}};
  if (!r.drift.empty()) out["drift"] = to_json(r.drift);
  return out;
}

std::string to_json_text(const Report& given) {
  Report report = given;
  settle(report);
  return dump_json(to_json(report), 2) + "\n";
}

Result<Report> report_from_json(const Json& json) {
  Report out;
  int version = 0;
  std::string ignored_title;
  JsonReader r(json, "report");
  r.get("version", version);
  r.get("title", ignored_title);  // derived from the other fields
  r.raw("signature");             // belongs to the file, not to the report: controller/report/signature.h
  r.get("cluster", out.cluster);
  r.get("simulated", out.simulated);
  r.get("kind", out.kind);
  r.get("run", out.run);
  r.get("spec_revision", out.spec_revision);
  r.get("spec_digest", out.spec_digest);
  r.get("plan_digests", out.plan_digests);
  r.get("images", out.images);
  r.get("approved_by", out.approved_by);
  r.get("profile", out.profile);
  r.get("muster_version", out.version);
  r.get("started_ms", out.started);
  r.get("ended_ms", out.ended);
  r.get("notes", out.notes);
  if (const Json& drift = r.raw("drift"); !drift.is_null()) {
    TRY(out.drift, drift_from_json(drift));
  }
  TRY_(read_list(r, "nodes", "report", out.nodes, read_node));
  TRY_(read_list(r, "links", "report", out.links, read_link));
  TRY_(read_list(r, "destroyed", "report", out.destroyed, read_destroyed));
  TRY_(r.finish());
  if (version != kVersion)
    return fail(
        Code::invalid,
        fmt::format("report.version: {} is not supported (the supported version is {})", version, kVersion));
  settle(out);
  return out;
}

}  // namespace muster
