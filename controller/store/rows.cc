#include "controller/store/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "base/json_dump.h"
#include "base/record.h"
#include "controller/ports/store.h"

namespace muster {

// The columns of a table are the members of its row, the first of which is the key.
MUSTER_RECORD(SpecRow, revision, time, text, digest, note, caller)
MUSTER_RECORD(PlanRow, digest, kind, spec_revision, time, json)
MUSTER_RECORD(RunRow, id, plan_digest, state, started, ended, approved_by)
MUSTER_RECORD(JournalRow, seq, run, action, node, attempt, event, time, data)
MUSTER_RECORD(NodeRow, name, state, reason, image_digest, config_digest, mode, boot_id, product_uuid,
              system_serial, last_seen, facts_time, facts, accepted_run, held_by, disk_written, held_since,
              held_caller, faulty_part)
MUSTER_RECORD(TokenRow, digest, node, purpose, expires, public_key, certificate)
MUSTER_RECORD(CertificateRow, serial, node, fingerprint, issued, revoked, contested)
MUSTER_RECORD(SecretRow, name, time, sealed)
MUSTER_RECORD(EventRow, seq, time, run, node, kind, json)
MUSTER_RECORD(ReportRow, run, time, json, measured)
MUSTER_RECORD(RolloutRow, id, time, text)
MUSTER_RECORD(NoticesRow, id, time, text)

namespace {

using sqlite::Connection;
using sqlite::Row;
using sqlite::Value;

constexpr const char* table_of(const SpecRow*) { return "spec"; }
constexpr const char* table_of(const PlanRow*) { return "plan"; }
constexpr const char* table_of(const RunRow*) { return "run"; }
constexpr const char* table_of(const JournalRow*) { return "journal"; }
constexpr const char* table_of(const NodeRow*) { return "node"; }
constexpr const char* table_of(const TokenRow*) { return "token"; }
constexpr const char* table_of(const CertificateRow*) { return "certificate"; }
constexpr const char* table_of(const SecretRow*) { return "secret"; }
constexpr const char* table_of(const EventRow*) { return "event"; }
constexpr const char* table_of(const ReportRow*) { return "report"; }
constexpr const char* table_of(const RolloutRow*) { return "rollout"; }
constexpr const char* table_of(const NoticesRow*) { return "notices"; }

// Rows with a `seq`, which the database assigns, are added; others replace the row with the same key.
template <typename R>
constexpr bool kAdded = requires(R row) {
  row.seq;
};

// The database has NULL where the rows of store.h have 0 for "none".
Value null_if_zero(int64_t id) {
  if (id == 0) return nullptr;
  return id;
}

struct Columns {
  std::vector<std::string> names = {};

  template <typename R, typename T>
  void field(const char* name, T R::*) {
    names.emplace_back(name);
  }
};
template <typename R>
std::vector<std::string> columns() {
  Columns found;
  each_field(static_cast<const R*>(nullptr), found);
  return found.names;
}

template <typename T>
Value stored(const T& value) {
  if constexpr (std::is_integral_v<T>)
    return int64_t{value};
  else if constexpr (std::is_enum_v<T>)
    return std::string(to_string(value));
  else if constexpr (requires { value.text(); })
    return value.text();
  else if constexpr (std::is_convertible_v<const T&, const std::string&>)
    return value;
  else  // dump_json() replaces bytes that are not UTF-8: text from hardware and programs may contain some
    return dump_json(Json(value));
}

template <typename R>
struct Values {
  const R& row;
  std::vector<Value> out = {};

  template <typename T>
  void field(const char*, T R::*member) {
    out.push_back(stored(row.*member));
  }
};

template <typename R>
std::string insert_text() {
  auto names = columns<R>();
  if (kAdded<R>) names.erase(names.begin());
  const std::vector<const char*> marks(names.size(), "?");
  const auto insert = fmt::format("INSERT INTO {} ({}) VALUES ({})", table_of(static_cast<const R*>(nullptr)),
                                  fmt::join(names, ", "), fmt::join(marks, ", "));
  if (kAdded<R>) return insert;
  std::vector<std::string> others;
  for (size_t i = 1; i < names.size(); ++i) others.push_back(fmt::format("{0} = excluded.{0}", names[i]));
  return fmt::format("{} ON CONFLICT ({}) DO UPDATE SET {}", insert, names.front(), fmt::join(others, ", "));
}

template <typename R>
Status put(Connection& db, const R& row) {
  static const std::string kSql = insert_text<R>();
  Values<R> values{row};
  each_field(&row, values);
  if (kAdded<R>) values.out.erase(values.out.begin());
  if constexpr (std::is_same_v<R, JournalRow>) values.out.front() = null_if_zero(row.run);
  return db.run(kSql.c_str(), values.out);
}

Status put(Connection& db, const DeleteSecret& r) {
  return db.run("DELETE FROM secret WHERE name = ?", {r.name});
}
Status put(Connection& db, const ResealSecret& r) {
  return db.run("UPDATE secret SET sealed = ? WHERE name = ?", {r.sealed, r.name});
}
Status put(Connection& db, const DeleteNode& r) {
  TRY_(db.run("UPDATE certificate SET revoked = 1 WHERE node = ?", {r.name}));
  TRY_(db.run("DELETE FROM token WHERE node = ?", {r.name}));
  return db.run("DELETE FROM node WHERE name = ?", {r.name});
}
Status put(Connection& db, const RevokeCertificates& r) {
  return db.run("UPDATE certificate SET revoked = 1 WHERE node = ?", {r.node});
}
Status put(Connection& db, const ContestCertificates& r) {
  return db.run("UPDATE certificate SET contested = 1 WHERE node = ? AND revoked = 0", {r.node});
}
Status put(Connection& db, const PurgeTokens& r) {
  return db.run("DELETE FROM token WHERE expires < ?", {r.expired});
}
Status put(Connection& db, const DeleteJoinTokens& r) {
  return db.run("DELETE FROM token WHERE node = ? AND purpose = 'join'", {r.node});
}

// Free space that stays in the file, for rows to come: 4 MiB. A purge gives back 2 MiB of the rest.
constexpr int64_t kFreePages = 1024;
constexpr int64_t kIncremental = 2;  // of PRAGMA auto_vacuum

Status put(Connection& db, const PurgeEvents& r) {
  TRY_(db.run(
      "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE time > ? AND seq < (SELECT seq FROM "
      "event WHERE time < ? ORDER BY time DESC, seq DESC LIMIT 1) LIMIT ?)",
      {r.now, r.before, r.most}));
  TRY(const int64_t gone, db.number("SELECT changes()"));
  TRY_(db.run("DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE time < ? ORDER BY time LIMIT ?)",
              {r.before, r.most - gone}));
  TRY(const int64_t spare, db.number("PRAGMA freelist_count"));
  // Does nothing in a database that was made without auto_vacuum and never rewritten.
  return spare > kFreePages ? db.run("PRAGMA incremental_vacuum(512)", {}) : Status(Ok{});
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
template <typename T>
Result<T> loaded(const Row& row, int column) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(row.number(column));
  else if constexpr (std::is_same_v<T, RunState>)
    return run_state_from_string(row.text(column));
  else if constexpr (std::is_same_v<T, NodeState>)
    return node_state_from_string(row.text(column));
  else if constexpr (std::is_same_v<T, HeldBy>)
    return held_by_from_string(row.text(column));
  else if constexpr (std::is_same_v<T, Json>)
    return parse_json(row.text(column)).value_or(nullptr);
  else if constexpr (requires { typename T::mapped_type; })
    return written_from(row.text(column));
  else
    return T(row.text(column));
}

template <typename R>
struct Loader {
  const Row& from;
  R& out;
  int column = 0;
  Status good = Ok{};

  template <typename T>
  void field(const char*, T R::*member) {
    if (!good.ok()) return;
    if (auto value = loaded<T>(from, column++); value.ok())
      out.*member = std::move(*value);
    else
      good = std::move(value).error();
  }
};

// What is selected in the place of a column: "''" for a text that may be large.
using Instead = std::map<std::string, std::string>;

template <typename R>
Result<std::vector<R>> all(Connection& db, const std::string& where, const std::vector<Value>& values = {},
                           const Instead& instead = {}) {
  constexpr const char* kTable = table_of(static_cast<const R*>(nullptr));
  auto names = columns<R>();
  for (auto& name : names)
    if (const auto other = instead.find(name); other != instead.end()) name = other->second;
  const std::string sql = fmt::format("SELECT {} FROM {} {}", fmt::join(names, ", "), kTable, where);
  std::vector<R> out;
  Status good = Ok{};
  TRY_(db.query(sql.c_str(), values, [&](const Row& row) {
    if (!good.ok()) return;
    Loader<R> loader{row, out.emplace_back()};
    each_field(&loader.out, loader);
    if (!loader.good.ok())
      good = fail(Code::corrupt,
                  fmt::format("row of {} {}: {}", kTable, row.text(0), loader.good.error().message));
  }));
  TRY_(good);
  return out;
}

template <typename R>
Result<R> one(Connection& db, const std::string& where, const std::vector<Value>& values,
              const std::string& missing) {
  TRY(auto found, all<R>(db, where, values));
  if (found.empty()) return fail(Code::not_found, missing);
  return std::move(found.front());
}

}  // namespace

Status write_row(Connection& db, const Write& row) {
  return std::visit([&](const auto& r) { return put(db, r); }, row);
}

Result<std::vector<SpecRow>> read_specs(Connection& db) {
  return all<SpecRow>(db, "ORDER BY revision", {}, {{"text", "''"}});
}
Result<SpecRow> read_spec(Connection& db, int64_t revision) {
  return one<SpecRow>(db, "WHERE revision = coalesce(?, (SELECT max(revision) FROM spec))",
                      {null_if_zero(revision)}, "no such spec revision");
}
Result<PlanRow> read_plan_head(Connection& db, const std::string& digest) {
  TRY(const std::string prefix, plan_prefix(digest));
  // The prefix has hexadecimal digits only: prefix + 'g' sorts after all digests that begin with the prefix.
  TRY(auto found,
      all<PlanRow>(db, "WHERE digest >= ? AND digest < ? LIMIT 2", {prefix, prefix + "g"}, {{"json", "''"}}));
  if (found.empty()) return fail(Code::not_found, "no plan " + digest);
  if (found.size() > 1) return fail(Code::conflict, "more than one plan begins with " + digest);
  return std::move(found.front());
}
Result<PlanRow> read_plan(Connection& db, const std::string& digest) {
  TRY(const PlanRow head, read_plan_head(db, digest));
  return one<PlanRow>(db, "WHERE digest = ?", {head.digest}, "no plan " + digest);
}
Result<std::vector<RunRow>> read_runs(Connection& db) { return all<RunRow>(db, "ORDER BY id"); }
Result<RunRow> read_run(Connection& db, int64_t id) {
  return one<RunRow>(db, "WHERE id = coalesce(?, (SELECT max(id) FROM run))", {null_if_zero(id)},
                     "no such run");
}
Result<std::vector<JournalRow>> read_journal(Connection& db, int64_t run) {
  return all<JournalRow>(db, "WHERE run IS ? ORDER BY seq", {null_if_zero(run)});
}
Result<std::vector<JournalRow>> read_journal_times(Connection& db, int64_t run) {
  return all<JournalRow>(db, "WHERE run IS ? AND event <> 'step' ORDER BY seq", {null_if_zero(run)},
                         {{"data", "'{}'"}});
}
Result<std::vector<JournalRow>> read_journal_turns(Connection& db, int64_t run, int64_t after) {
  return all<JournalRow>(db, "WHERE run IS ? AND seq > ? AND event <> 'step' ORDER BY seq",
                         {null_if_zero(run), after},
                         {{"data",
                           "CASE WHEN event IN ('intent', 'started') THEN '{}' WHEN NOT json_valid(data) OR "
                           "coalesce(json_extract(data, '$.result.precondition'), "
                           "json_extract(data, '$.result.denied')) IS NOT NULL THEN data ELSE "
                           "json_remove(data, '$.result') END"}});
}
Result<std::vector<NodeRow>> read_nodes(Connection& db) { return all<NodeRow>(db, "ORDER BY name"); }
Result<std::vector<std::string>> read_node_names(Connection& db) {
  std::vector<std::string> names;
  TRY_(db.query("SELECT name FROM node ORDER BY name", {},
                [&](const Row& row) { names.push_back(row.text(0)); }));
  return names;
}
Result<NodeRow> read_node(Connection& db, const NodeName& name) {
  return one<NodeRow>(db, "WHERE name = ?", {name}, "no node " + name);
}
Result<TokenRow> read_token(Connection& db, const std::string& digest) {
  return one<TokenRow>(db, "WHERE digest = ?", {digest}, "no such token");
}
Result<std::vector<TokenRow>> read_join_tokens(Connection& db, const NodeName& node) {
  return all<TokenRow>(db, "WHERE node = ? AND purpose = 'join' ORDER BY expires, digest", {node});
}
Result<CertificateRow> read_certificate(Connection& db, const std::string& serial) {
  return one<CertificateRow>(db, "WHERE serial = ?", {serial}, "no certificate " + serial);
}
Result<std::vector<SecretRow>> read_secrets(Connection& db) { return all<SecretRow>(db, "ORDER BY name"); }
Result<SecretRow> read_secret(Connection& db, const std::string& name) {
  return one<SecretRow>(db, "WHERE name = ?", {name}, "no secret " + name);
}
Result<std::vector<EventRow>> read_events(Connection& db, const EventQuery& query) {
  std::string where = "WHERE seq > ?";
  std::vector<Value> values = {query.after};
  const auto only = [&](const char* condition, Value value) {
    where += condition;
    values.push_back(std::move(value));
  };
  if (!query.node.empty()) only(" AND node = ?", query.node);
  if (query.run != 0) only(" AND run = ?", query.run);
  if (query.since != 0) only(" AND time >= ?", query.since);
  values.push_back(static_cast<int64_t>(std::min<size_t>(query.limit, INT32_MAX)));
  where += query.newest ? " ORDER BY seq DESC LIMIT ?" : " ORDER BY seq LIMIT ?";
  TRY(auto rows, all<EventRow>(db, where, values));
  if (query.newest) std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<bool> read_would_purge(Connection& db, const PurgeEvents& purge) {
  bool old = false;
  TRY_(db.query("SELECT 1 FROM event WHERE time < ? LIMIT 1", {purge.before},
                [&](const Row&) { old = true; }));
  if (old) return true;
  TRY(const int64_t spare, db.number("PRAGMA freelist_count"));
  TRY(const int64_t mode, db.number("PRAGMA auto_vacuum"));
  return spare > kFreePages && mode == kIncremental;
}

Result<TimeMs> read_newest_event_before(Connection& db, TimeMs time) {
  std::optional<TimeMs> found;
  TRY_(db.query("SELECT time FROM event WHERE time < ? ORDER BY time DESC LIMIT 1", {time},
                [&](const Row& row) { found = row.number(0); }));
  if (!found) return fail(Code::not_found, "no event is older");
  return *found;
}

Result<RolloutRow> read_rollout(Connection& db, int64_t id) {
  return one<RolloutRow>(db, "WHERE id = coalesce(?, (SELECT max(id) FROM rollout))", {null_if_zero(id)},
                         "no such rollout");
}
Result<std::vector<RolloutRow>> read_rollouts(Connection& db) {
  return all<RolloutRow>(db, "ORDER BY id", {}, {{"text", "''"}});
}

Result<NoticesRow> read_notices(sqlite::Connection& db) {
  return one<NoticesRow>(db, "WHERE id = 1", {}, "no notices");
}

Result<ReportRow> read_report(Connection& db, int64_t run) {
  return one<ReportRow>(db, "WHERE run = coalesce(?, (SELECT max(run) FROM report))", {null_if_zero(run)},
                        "this run has no report");
}
Result<std::vector<ReportRow>> read_reports(Connection& db, int64_t run, size_t limit) {
  return all<ReportRow>(db, "WHERE run < coalesce(?, run + 1) ORDER BY run DESC LIMIT ?",
                        {null_if_zero(run), static_cast<int64_t>(limit)}, {{"json", "''"}});
}

}  // namespace muster
