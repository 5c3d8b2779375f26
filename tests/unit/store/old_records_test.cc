// What revision 2994356b stored and sent, whose writers and readers were written by hand, read and written
// with today's (tests/golden/records/old_writers.cc).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "agent/core/identity.h"
#include "agent/core/journal.h"
#include "agent/disk/marker.h"
#include "base/facts_text.h"
#include "base/json_dump.h"
#include "base/manifest.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/report/history.h"
#include "controller/report/report.h"
#include "controller/report/signature.h"
#include "controller/rollout/rollout_record.h"
#include "controller/rollout/rollout_record.h"
#include "controller/store/mark.h"
#include "controller/store/sqlite_store.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/golden/records/values.inc"
#include "tests/source_dir.h"

using namespace muster;

namespace {

const std::string kFolder = "/tests/golden/records/";

std::string stored(const std::string& file) { return text_of(source_dir() + kFolder + file); }

std::string without_line_end(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The files end with a line end, with which not every text ends.
std::string stored_like(const std::string& text, const std::string& file) {
  return without_line_end(stored(file)) + text.substr(without_line_end(text).size());
}

auto members(const SpecRow& r) { return std::tie(r.revision, r.time, r.text, r.digest, r.note, r.caller); }
auto members(const PlanRow& r) { return std::tie(r.digest, r.kind, r.spec_revision, r.time, r.json); }
auto members(const RunRow& r) {
  return std::tie(r.id, r.plan_digest, r.state, r.started, r.ended, r.approved_by);
}
auto members(const JournalRow& r) {
  return std::tie(r.run, r.action, r.node, r.attempt, r.event, r.time, r.data);
}
auto members(const NodeRow& r) {
  return std::tie(r.name, r.state, r.reason, r.image_digest, r.config_digest, r.mode, r.boot_id,
                  r.product_uuid, r.system_serial, r.last_seen, r.facts_time, r.facts, r.accepted_run,
                  r.held_by, r.disk_written, r.held_since, r.held_caller, r.faulty_part);
}
auto members(const TokenRow& r) {
  return std::tie(r.digest, r.node, r.purpose, r.expires, r.public_key, r.certificate);
}
auto members(const CertificateRow& r) {
  return std::tie(r.serial, r.node, r.fingerprint, r.issued, r.revoked, r.contested);
}
auto members(const SecretRow& r) { return std::tie(r.name, r.time, r.sealed); }
auto members(const EventRow& r) { return std::tie(r.time, r.run, r.node, r.kind, r.json); }
auto members(const ReportRow& r) { return std::tie(r.run, r.time, r.json.text(), r.measured); }
auto members(const RolloutRow& r) { return std::tie(r.id, r.time, r.text); }

template <typename Row>
std::vector<Row> written_rows() {
  std::vector<Row> out;
  for (const Write& row : kept::rows())
    if (const auto* one = std::get_if<Row>(&row)) out.push_back(*one);
  return out;
}

template <typename Row>
void check_same(const Result<Row>& read, const Row& written) {
  REQUIRE(read.ok());
  CHECK((members(*read) == members(written)));
}
template <typename Row>
void check_same(const Result<std::vector<Row>>& read, const std::vector<Row>& written) {
  REQUIRE(read.ok());
  REQUIRE(read->size() == written.size());
  for (size_t i = 0; i < written.size(); ++i) CHECK((members((*read)[i]) == members(written[i])));
}

std::vector<JournalRow> journal_of(int64_t run) {
  auto rows = written_rows<JournalRow>();
  std::erase_if(rows, [run](const JournalRow& row) { return row.run != run; });
  return rows;
}

// With the mark that its last start left. Returns the name of its history.
std::string make_old_database(const std::string& path) {
  auto db = sqlite::Connection::open(path, sqlite::Mode::read_write);
  REQUIRE(db.ok());
  REQUIRE(db->script(stored("muster.sql")).ok());
  const std::string start = db->text("SELECT start FROM history").value_or("");
  auto mark = Mark::open(mark_path(path));
  REQUIRE(mark.ok());
  REQUIRE(mark->write({start, start, db->number("SELECT commits FROM history").value_or(0)}, false).ok());
  return db->text("SELECT name FROM history").value_or("");
}

Result<std::unique_ptr<Store>> open_store(const std::string& path) {
  return open_sqlite_store(path, [](Reactor::Task) {});
}

void check_runs(Store& store) {
  for (const SpecRow& row : written_rows<SpecRow>()) check_same(store.spec(row.revision), row);
  auto specs = written_rows<SpecRow>();
  for (SpecRow& row : specs) row.text.clear();
  check_same(store.specs(), specs);
  for (PlanRow row : written_rows<PlanRow>()) {
    check_same(store.plan(row.digest), row);
    row.json.clear();
    check_same(store.plan_head(row.digest), row);
  }
  check_same(store.runs(), written_rows<RunRow>());
  check_same(store.run(0), written_rows<RunRow>().back());
  check_same(store.journal(0), journal_of(0));
  check_same(store.journal(3), journal_of(3));
  auto times = journal_of(3);
  std::erase_if(times, [](const JournalRow& row) { return row.event == "step"; });
  for (JournalRow& row : times) row.data = Json::object();
  check_same(store.journal_times(3), times);
  times.back().data = {{"message", "done"}};
  check_same(store.journal_turns(3, 0), times);
  for (ReportRow row : written_rows<ReportRow>()) {
    check_same(store.report(row.run), row);
    row.json = "";
    check_same(store.reports(0, 9), {row});
  }
  for (RolloutRow row : written_rows<RolloutRow>()) {
    check_same(store.rollout(row.id), row);
    row.text.clear();
    check_same(store.rollouts(), {row});
  }
}

void check_machines(Store& store) {
  check_same(store.nodes(), written_rows<NodeRow>());
  for (const NodeRow& row : written_rows<NodeRow>()) check_same(store.node(row.name), row);
  CHECK(store.node_names().value_or({}) == std::vector<std::string>{"gpu01", "gpu02"});
  const auto tokens = written_rows<TokenRow>();
  for (const TokenRow& row : tokens) check_same(store.token(row.digest), row);
  check_same(store.join_tokens("gpu01"), {tokens.front()});
  for (const CertificateRow& row : written_rows<CertificateRow>())
    check_same(store.certificate(row.serial), row);
  check_same(store.secrets(), written_rows<SecretRow>());
  for (const SecretRow& row : written_rows<SecretRow>()) check_same(store.secret(row.name), row);
  const auto events = written_rows<EventRow>();
  check_same(store.events(0, 9, ""), events);
  check_same(store.events(0, 9, "gpu01"), {events.front()});
}

// The rows of each table but the one that names this database's history.
using Columns = std::map<std::string, std::vector<std::string>>;  // by table

std::vector<std::string> column(sqlite::Connection& db, const std::string& sql) {
  std::vector<std::string> out;
  CHECK(db.query(sql.c_str(), {}, [&](const sqlite::Row& row) { out.push_back(row.text(0)); }).ok());
  return out;
}

Columns columns_of(const std::string& path) {
  auto db = sqlite::Connection::open(path, sqlite::Mode::read_only);
  REQUIRE(db.ok());
  Columns out;
  for (const auto& table :
       column(*db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'history'"))
    out[table] = column(*db, "SELECT 'quote(' || name || ')' FROM pragma_table_info('" + table + "')");
  return out;
}

std::map<std::string, std::string> rows_of(const std::string& path, const Columns& columns) {
  auto db = sqlite::Connection::open(path, sqlite::Mode::read_only);
  REQUIRE(db.ok());
  std::map<std::string, std::string> out;
  for (const auto& [table, names] : columns) {
    const auto rows =
        column(*db, fmt::format("SELECT {} FROM {} ORDER BY 1", fmt::join(names, " || ', ' || "), table));
    out[table] = fmt::format("{}", fmt::join(rows, "\n"));
  }
  return out;
}

}  // namespace

TEST_CASE("old records: today's readers and writers give the same text", "[store]") {
  std::set<std::string> files = {"muster.sql"};
  kept::take_all([&](const std::string& file, const std::string& text, const kept::Again& again) {
    CAPTURE(file);
    const std::string old = stored_like(text, file);
    CHECK(text == old);
    files.insert(file);
    if (!again) return;
    const auto copy = again(old);
    INFO((copy.ok() ? "" : copy.error().message));
    REQUIRE(copy.ok());
    CHECK(*copy == old);
  });
  for (const auto& one : std::filesystem::directory_iterator(source_dir() + kFolder)) {
    const std::string name = one.path().filename();
    const bool program = name == "values.inc" || name == "old_writers.cc" || name == "dump.py";
    CAPTURE(name);
    CHECK(files.contains(name) != program);
  }
}

TEST_CASE("old records: a database of that revision is read in full", "[store]") {
  const TempDir dir;
  const std::string history = make_old_database(dir.path("muster.db"));
  const auto store = open_store(dir.path("muster.db"));
  INFO((store.ok() ? "" : store.error().message));
  REQUIRE(store.ok());
  check_runs(**store);
  check_machines(**store);
  CHECK((*store)->restored_why() == "");
  CHECK((*store)->restored() == 0);
  CHECK((*store)->history() == history);
  CHECK((*store)->next_run_id() == 4);
  CHECK((*store)->next_spec_revision() == 6);
}

TEST_CASE("old records: today's rows are stored as they were", "[store]") {
  const TempDir old, now;
  make_old_database(old.path("muster.db"));
  {
    const auto store = open_store(now.path("muster.db"));
    REQUIRE(store.ok());
    (*store)->write(kept::rows(), [](Status) {});
  }
  // Later schemas have more tables and columns, and miss none.
  const auto columns = columns_of(old.path("muster.db"));
  CHECK(columns.size() == 12);
  const auto was = rows_of(old.path("muster.db"), columns);
  for (const auto& [table, rows] : rows_of(now.path("muster.db"), columns)) {
    CAPTURE(table);
    CHECK(rows == was.at(table));
  }
}
