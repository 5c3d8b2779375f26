// Reads and writes the rows of controller/ports/store.h in SQLite. Internal to the SQLite store. Thread: that
// of the connection.
#pragma once

#include "controller/ports/store.h"
#include "controller/store/sqlite.h"

namespace muster {

Status write_row(sqlite::Connection& db, const Write& row);

Result<std::vector<SpecRow>> read_specs(sqlite::Connection& db);
Result<SpecRow> read_spec(sqlite::Connection& db, int64_t revision);
Result<PlanRow> read_plan(sqlite::Connection& db, const std::string& digest);
Result<PlanRow> read_plan_head(sqlite::Connection& db, const std::string& digest);
Result<std::vector<RunRow>> read_runs(sqlite::Connection& db);
Result<RunRow> read_run(sqlite::Connection& db, int64_t id);
Result<std::vector<JournalRow>> read_journal(sqlite::Connection& db, int64_t run);
Result<std::vector<JournalRow>> read_journal_times(sqlite::Connection& db, int64_t run);
Result<std::vector<JournalRow>> read_journal_turns(sqlite::Connection& db, int64_t run, int64_t after);
Result<std::vector<NodeRow>> read_nodes(sqlite::Connection& db);
Result<std::vector<std::string>> read_node_names(sqlite::Connection& db);
Result<NodeRow> read_node(sqlite::Connection& db, const NodeName& name);
Result<TokenRow> read_token(sqlite::Connection& db, const std::string& digest);
Result<std::vector<TokenRow>> read_join_tokens(sqlite::Connection& db, const NodeName& node);
Result<CertificateRow> read_certificate(sqlite::Connection& db, const std::string& serial);
Result<std::vector<SecretRow>> read_secrets(sqlite::Connection& db);
Result<SecretRow> read_secret(sqlite::Connection& db, const std::string& name);
Result<std::vector<EventRow>> read_events(sqlite::Connection& db, const EventQuery& query);
Result<bool> read_would_purge(sqlite::Connection& db, const PurgeEvents& purge);
Result<TimeMs> read_newest_event_before(sqlite::Connection& db, TimeMs time);

Result<RolloutRow> read_rollout(sqlite::Connection& db, int64_t id);
Result<std::vector<RolloutRow>> read_rollouts(sqlite::Connection& db);
Result<NoticesRow> read_notices(sqlite::Connection& db);
Result<ReportRow> read_report(sqlite::Connection& db, int64_t run);
Result<std::vector<ReportRow>> read_reports(sqlite::Connection& db, int64_t run, size_t limit);

}  // namespace muster
