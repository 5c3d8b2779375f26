#include "controller/store/rows.h"

#include <fmt/format.h>

#include "base/json_dump.h"
#include "controller/ports/prefix.h"

namespace muster {

namespace {

using sqlite::Connection;
using sqlite::Row;
using sqlite::Value;

// The database has NULL where the rows of store.h have 0 for "none".
Value null_if_zero(int64_t id) {
  if (id == 0) return nullptr;
  return id;
}

// ---- writing ----

Status put(Connection& db, const SpecRow& r) {
  return db.run(
      "INSERT INTO spec (revision, time, text, digest, note) VALUES (?, ?, ?, ?, ?) ON CONFLICT (revision) "
      "DO UPDATE SET time = excluded.time, text = excluded.text, digest = excluded.digest, note = "
      "excluded.note",
      {r.revision, r.time, r.text, r.digest, r.note});
}

Status put(Connection& db, const PlanRow& r) {
  return db.run(
      "INSERT INTO plan (digest, kind, spec_revision, time, json) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
      "(digest) DO UPDATE SET kind = excluded.kind, spec_revision = excluded.spec_revision, time = "
      "excluded.time, json = excluded.json",
      {r.digest, r.kind, r.spec_revision, r.time, r.json});
}

Status put(Connection& db, const RunRow& r) {
  return db.run(
      "INSERT INTO run (id, plan_digest, state, started, ended, approved_by) VALUES (?, ?, ?, ?, ?, ?) ON "
      "CONFLICT (id) DO UPDATE SET plan_digest = excluded.plan_digest, state = excluded.state, started = "
      "excluded.started, ended = excluded.ended, approved_by = excluded.approved_by",
      {r.id, r.plan_digest, std::string(to_string(r.state)), r.started, r.ended, r.approved_by});
}

Status put(Connection& db, const JournalRow& r) {
  // dump_json() replaces bytes that are not UTF-8: text from hardware and programs may contain some.
  const std::string data = dump_json(r.data);
  return db.run(
      "INSERT INTO journal (run, action, node, attempt, event, time, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
      {null_if_zero(r.run), r.action, r.node, int64_t{r.attempt}, r.event, r.time, data});
}

Status put(Connection& db, const NodeRow& r) {
  return db.run(
      "INSERT INTO node (name, state, reason, image_digest, config_digest, mode, boot_id, product_uuid, "
      "system_serial, last_seen, facts_time, facts, accepted_run, held_by, disk_written) VALUES (?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET state = excluded.state, reason = "
      "excluded.reason, image_digest = excluded.image_digest, config_digest = excluded.config_digest, mode = "
      "excluded.mode, boot_id = excluded.boot_id, product_uuid = excluded.product_uuid, system_serial = "
      "excluded.system_serial, last_seen = excluded.last_seen, facts_time = excluded.facts_time, facts = "
      "excluded.facts, accepted_run = excluded.accepted_run, held_by = excluded.held_by, disk_written = "
      "excluded.disk_written",
      {r.name, std::string(to_string(r.state)), r.reason, r.image_digest, r.config_digest, r.mode, r.boot_id,
       r.product_uuid, r.system_serial, r.last_seen, r.facts_time, r.facts.text(), r.accepted_run,
       std::string(to_string(r.held_by)), dump_json(Json(r.disk_written))});
}

Status put(Connection& db, const TokenRow& r) {
  return db.run(
      "INSERT INTO token (digest, node, purpose, expires, public_key, certificate) VALUES (?, ?, ?, ?, ?, ?) "
      "ON CONFLICT (digest) DO UPDATE SET node = excluded.node, purpose = excluded.purpose, expires = "
      "excluded.expires, public_key = excluded.public_key, certificate = excluded.certificate",
      {r.digest, r.node, r.purpose, r.expires, r.public_key, r.certificate});
}

Status put(Connection& db, const CertificateRow& r) {
  return db.run(
      "INSERT INTO certificate (serial, node, fingerprint, issued, revoked, contested) VALUES (?, ?, ?, ?, "
      "?, ?) ON CONFLICT (serial) DO UPDATE SET node = excluded.node, fingerprint = excluded.fingerprint, "
      "issued = excluded.issued, revoked = excluded.revoked, contested = excluded.contested",
      {r.serial, r.node, r.fingerprint, r.issued, int64_t{r.revoked}, int64_t{r.contested}});
}

Status put(Connection& db, const SecretRow& r) {
  return db.run(
      "INSERT INTO secret (name, time, sealed) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET time = "
      "excluded.time, sealed = excluded.sealed",
      {r.name, r.time, r.sealed});
}

Status put(Connection& db, const EventRow& r) {
  return db.run("INSERT INTO event (time, run, node, kind, json) VALUES (?, ?, ?, ?, ?)",
                {r.time, r.run, r.node, r.kind, r.json});
}

Status put(Connection& db, const ReportRow& r) {
  return db.run(
      "INSERT INTO report (run, time, json, measured) VALUES (?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET "
      "time = excluded.time, json = excluded.json, measured = excluded.measured",
      {r.run, r.time, r.json.text(), r.measured});
}

Status put(Connection& db, const RolloutRow& r) {
  return db.run(
      "INSERT INTO rollout (id, time, text) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET time = "
      "excluded.time, text = excluded.text",
      {r.id, r.time, r.text});
}

Status put(Connection& db, const DeleteSecret& r) {
  return db.run("DELETE FROM secret WHERE name = ?", {r.name});
}
Status put(Connection& db, const DeleteNode& r) {
  TRY_(db.run("UPDATE certificate SET revoked = 1 WHERE node = ?", {r.name}));
  TRY_(db.run("DELETE FROM token WHERE node = ?", {r.name}));
  return db.run("DELETE FROM node WHERE name = ?", {r.name});
}
Status put(Connection& db, const RevokeCertificates& r) {
  return db.run("UPDATE certificate SET revoked = 1 WHERE node = ?", {r.node});
}
Status put(Connection& db, const PurgeTokens& r) {
  return db.run("DELETE FROM token WHERE expires < ?", {r.expired});
}
Status put(Connection& db, const DeleteJoinTokens& r) {
  return db.run("DELETE FROM token WHERE node = ? AND purpose = 'join'", {r.node});
}

// ---- reading ----

Result<SpecRow> spec_row(const Row& r) {
  return SpecRow{r.number(0), r.number(1), r.text(4), r.text(2), r.text(3)};
}
Result<PlanRow> plan_row(const Row& r) {
  return PlanRow{r.text(0), r.text(1), r.number(2), r.number(3), r.text(4)};
}
Result<RunRow> run_row(const Row& r) {
  const auto state = run_state_from_string(r.text(2));
  if (!state.ok())
    return fail(Code::corrupt, fmt::format("row of run {}: {}", r.number(0), state.error().message));
  return RunRow{r.number(0), r.text(1), *state, r.number(3), r.number(4), r.text(5)};
}
// An unreadable value is an error: if it were ignored, plans would rely on outdated facts about the disk.
Result<std::map<std::string, TimeMs>> written_from(const std::string& text) {
  TRY(const Json json, parse_json(text));
  if (!json.is_object()) return fail(Code::corrupt, "disk_written is not an object");
  std::map<std::string, TimeMs> out;
  for (const auto& [slot, time] : json.items()) {
    if (!time.is_number_integer()) return fail(Code::corrupt, "disk_written." + slot + " is not a time");
    out[slot] = time.get<TimeMs>();
  }
  return out;
}
Result<NodeRow> node_row(const Row& r) {
  const auto state = node_state_from_string(r.text(1));
  const auto written = written_from(r.text(14));
  if (!state.ok() || !written.ok())
    return fail(Code::corrupt, fmt::format("row of node {}: {}", r.text(0),
                                           (state.ok() ? written.error() : state.error()).message));
  return NodeRow{NodeName(r.text(0)),
                 *state,
                 r.text(2),
                 r.text(3),
                 r.text(4),
                 r.text(5),
                 r.text(6),
                 r.text(7),
                 r.text(8),
                 r.number(9),
                 r.number(10),
                 r.text(11),
                 r.number(12),
                 held_by_from_string(r.text(13)),
                 *written};
}
Result<std::string> name_row(const Row& r) { return r.text(0); }
Result<JournalRow> journal_row(const Row& r) {
  JournalRow out{r.number(0), r.number(1), r.text(2), NodeName(r.text(3)), static_cast<int>(r.number(4)),
                 r.text(5),   r.number(6), {}};
  out.data = parse_json(r.text(7)).value_or(nullptr);
  return out;
}
Result<TokenRow> token_row(const Row& r) {
  return TokenRow{r.text(0), NodeName(r.text(1)), r.text(2), r.number(3), r.text(4), r.text(5)};
}
Result<CertificateRow> certificate_row(const Row& r) {
  return CertificateRow{r.text(0),   NodeName(r.text(1)), r.text(2),
                        r.number(3), r.number(4) != 0,    r.number(5) != 0};
}
Result<SecretRow> secret_row(const Row& r) { return SecretRow{r.text(0), r.number(1), r.text(2)}; }
Result<RolloutRow> rollout_row(const Row& r) { return RolloutRow{r.number(0), r.number(1), r.text(2)}; }
Result<ReportRow> report_row(const Row& r) {
  return ReportRow{r.number(0), r.number(1), r.text(2), r.text(3)};
}
Result<EventRow> event_row(const Row& r) {
  return EventRow{r.number(0), r.number(1), r.number(2), NodeName(r.text(3)), r.text(4), r.text(5)};
}

template <typename T>
using Reader = Result<T> (*)(const Row&);

template <typename T>
Result<std::vector<T>> all(Connection& db, Reader<T> read, const char* sql,
                           const std::vector<Value>& values = {}) {
  std::vector<T> out;
  Status good = Ok{};
  TRY_(db.query(sql, values, [&](const Row& row) {
    if (!good.ok()) return;
    auto made = read(row);
    if (made.ok())
      out.push_back(std::move(*made));
    else
      good = std::move(made).error();
  }));
  TRY_(good);
  return out;
}

template <typename T>
Result<T> one(Connection& db, Reader<T> read, const char* sql, const std::vector<Value>& values,
              const std::string& missing) {
  TRY(auto found, all(db, read, sql, values));
  if (found.empty()) return fail(Code::not_found, missing);
  return std::move(found.front());
}

constexpr const char* kNode =
    "SELECT name, state, reason, image_digest, config_digest, mode, boot_id, product_uuid, system_serial, "
    "last_seen, facts_time, facts, accepted_run, held_by, disk_written FROM node WHERE name = coalesce(?, "
    "name) ORDER BY name";
constexpr const char* kRun =
    "SELECT id, plan_digest, state, started, ended, approved_by FROM run WHERE id = coalesce(?, (SELECT "
    "max(id) FROM run))";

}  // namespace

Status write_row(Connection& db, const Write& row) {
  return std::visit([&](const auto& r) { return put(db, r); }, row);
}

Result<std::vector<SpecRow>> read_specs(Connection& db) {
  return all(db, spec_row, "SELECT revision, time, digest, note, '' FROM spec ORDER BY revision");
}
Result<SpecRow> read_spec(Connection& db, int64_t revision) {
  return one(db, spec_row,
             "SELECT revision, time, digest, note, text FROM spec WHERE revision = coalesce(?, (SELECT "
             "max(revision) FROM spec))",
             {null_if_zero(revision)}, "no such spec revision");
}
Result<PlanRow> read_plan_head(Connection& db, const std::string& digest) {
  TRY(const std::string prefix, plan_prefix(digest));
  // The prefix has hexadecimal digits only, so prefix + 'g' sorts after all digests that begin with the
  // prefix.
  TRY(auto found,
      all(db, plan_row,
          "SELECT digest, kind, spec_revision, time, '' FROM plan WHERE digest >= ? AND digest < ? LIMIT 2",
          {prefix, prefix + "g"}));
  if (found.empty()) return fail(Code::not_found, "no plan " + digest);
  if (found.size() > 1) return fail(Code::conflict, "more than one plan begins with " + digest);
  return std::move(found.front());
}
Result<PlanRow> read_plan(Connection& db, const std::string& digest) {
  TRY(const PlanRow head, read_plan_head(db, digest));
  return one(db, plan_row, "SELECT digest, kind, spec_revision, time, json FROM plan WHERE digest = ?",
             {head.digest}, "no plan " + digest);
}
Result<std::vector<RunRow>> read_runs(Connection& db) {
  return all(db, run_row, "SELECT id, plan_digest, state, started, ended, approved_by FROM run ORDER BY id");
}
Result<RunRow> read_run(Connection& db, int64_t id) {
  return one(db, run_row, kRun, {null_if_zero(id)}, "no such run");
}
Result<std::vector<JournalRow>> read_journal(Connection& db, int64_t run) {
  return all(
      db, journal_row,
      "SELECT seq, run, action, node, attempt, event, time, data FROM journal WHERE run IS ? ORDER BY seq",
      {null_if_zero(run)});
}
Result<std::vector<JournalRow>> read_journal_times(Connection& db, int64_t run) {
  return all(
      db, journal_row,
      "SELECT seq, run, action, node, attempt, event, time, '{}' FROM journal WHERE run IS ? AND event <> "
      "'step' ORDER BY seq",
      {null_if_zero(run)});
}
Result<std::vector<JournalRow>> read_journal_turns(Connection& db, int64_t run, int64_t after) {
  return all(db, journal_row,
             "SELECT seq, run, action, node, attempt, event, time, CASE WHEN event IN ('intent', 'started') "
             "THEN '{}' WHEN json_valid(data) THEN json_remove(data, '$.result') ELSE data END FROM journal "
             "WHERE run IS ? AND seq > ? AND "
             "event <> 'step' ORDER BY seq",
             {null_if_zero(run), after});
}
Result<std::vector<NodeRow>> read_nodes(Connection& db) { return all(db, node_row, kNode, {nullptr}); }
Result<std::vector<std::string>> read_node_names(Connection& db) {
  return all(db, name_row, "SELECT name FROM node ORDER BY name");
}
Result<NodeRow> read_node(Connection& db, const NodeName& name) {
  return one(db, node_row, kNode, {name}, "no node " + name);
}
Result<TokenRow> read_token(Connection& db, const std::string& digest) {
  return one(db, token_row,
             "SELECT digest, node, purpose, expires, public_key, certificate FROM token WHERE digest = ?",
             {digest}, "no such token");
}
Result<std::vector<TokenRow>> read_join_tokens(Connection& db, const NodeName& node) {
  return all(db, token_row,
             "SELECT digest, node, purpose, expires, public_key, certificate FROM token WHERE node = ? AND "
             "purpose = 'join' ORDER BY expires, digest",
             {node});
}
Result<CertificateRow> read_certificate(Connection& db, const std::string& serial) {
  return one(db, certificate_row,
             "SELECT serial, node, fingerprint, issued, revoked, contested FROM certificate WHERE serial = ?",
             {serial}, "no certificate " + serial);
}
Result<std::vector<SecretRow>> read_secrets(Connection& db) {
  return all(db, secret_row, "SELECT name, time, sealed FROM secret ORDER BY name");
}
Result<SecretRow> read_secret(Connection& db, const std::string& name) {
  return one(db, secret_row, "SELECT name, time, sealed FROM secret WHERE name = ?", {name},
             "no secret " + name);
}
Result<std::vector<EventRow>> read_events(Connection& db, int64_t after_seq, size_t limit,
                                          const NodeName& node) {
  const auto most = static_cast<int64_t>(std::min<size_t>(limit, INT32_MAX));
  if (node.empty())
    return all(db, event_row,
               "SELECT seq, time, run, node, kind, json FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
               {after_seq, most});
  return all(
      db, event_row,
      "SELECT seq, time, run, node, kind, json FROM event WHERE node = ? AND seq > ? ORDER BY seq LIMIT ?",
      {node, after_seq, most});
}

Result<RolloutRow> read_rollout(Connection& db, int64_t id) {
  return one(db, rollout_row,
             "SELECT id, time, text FROM rollout WHERE id = coalesce(?, (SELECT max(id) FROM rollout))",
             {null_if_zero(id)}, "no such rollout");
}
Result<std::vector<RolloutRow>> read_rollouts(Connection& db) {
  return all(db, rollout_row, "SELECT id, time, '' FROM rollout ORDER BY id");
}

Result<ReportRow> read_report(Connection& db, int64_t run) {
  return one(
      db, report_row,
      "SELECT run, time, json, measured FROM report WHERE run = coalesce(?, (SELECT max(run) FROM report))",
      {null_if_zero(run)}, "this run has no report");
}
Result<std::vector<ReportRow>> read_reports(Connection& db, int64_t run, size_t limit) {
  return all(
      db, report_row,
      "SELECT run, time, '', measured FROM report WHERE run < coalesce(?, run + 1) ORDER BY run DESC LIMIT ?",
      {null_if_zero(run), static_cast<int64_t>(limit)});
}

}  // namespace muster
