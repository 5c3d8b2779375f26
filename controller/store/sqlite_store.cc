#include "controller/store/sqlite_store.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/alive.h"
#include "controller/ports/store.h"
#include "controller/store/mark.h"
#include "controller/store/rows.h"
#include "sys/contain.h"
#include "sys/lock_file.h"
#include "sys/log.h"

namespace muster {
namespace {

using sqlite::Connection;

struct Batch {
  std::vector<Write> rows;
  Store::Done done;
};

Status write_batch(Connection& db, const std::vector<Write>& rows) {
  TRY_(db.run("SAVEPOINT batch", {}));
  for (const Write& row : rows) {
    Status written = write_row(db, row);
    if (written.ok()) continue;
    TRY_(db.run("ROLLBACK TO batch", {}));
    TRY_(db.run("RELEASE batch", {}));
    return written;
  }
  return db.run("RELEASE batch", {});
}

bool writes(const std::vector<Batch>& group) {
  return std::any_of(group.begin(), group.end(), [](const Batch& batch) { return !batch.rows.empty(); });
}
// True if the group announces an action on a machine (an "intent" row).
bool has_intent(const std::vector<Batch>& group) {
  const auto intent = [](const Write& row) {
    const auto* entry = std::get_if<JournalRow>(&row);
    return entry && entry->event == "intent";
  };
  return std::any_of(group.begin(), group.end(),
                     [&](const Batch& b) { return std::any_of(b.rows.begin(), b.rows.end(), intent); });
}

// One transaction and one fsync for the whole group; a batch that fails does not affect the others.
std::vector<Status> commit_group(Connection& db, const std::vector<Batch>& group) {
  std::vector<Status> results;
  Status whole = db.run("BEGIN IMMEDIATE", {});
  if (whole.ok()) {
    for (const Batch& batch : group) results.push_back(write_batch(db, batch.rows));
    if (writes(group)) whole = db.run("UPDATE history SET commits = commits + 1", {});
    if (whole.ok()) whole = db.run("COMMIT", {});
  }
  if (!whole.ok()) {
    (void)db.run("ROLLBACK", {});
    results.assign(group.size(), whole);
  }
  return results;
}

// An archive with a connection of its own, in addition to those of the reactor and the writer.
class SqliteArchive : public RunArchive {
  template <typename Read>
  auto read(const Read& what) {
    const std::lock_guard hold(mutex_);
    return what();
  }

 public:
  explicit SqliteArchive(Connection reader) : reader_(std::move(reader)) {}
  Result<SpecRow> spec(int64_t revision) override {
    return read([&] { return read_spec(reader_, revision); });
  }
  Result<PlanRow> plan(const std::string& digest) override {
    return read([&] { return read_plan(reader_, digest); });
  }
  Result<PlanRow> plan_head(const std::string& digest) override {
    return read([&] { return read_plan_head(reader_, digest); });
  }
  Result<RunRow> run(int64_t id) override {
    return read([&] { return read_run(reader_, id); });
  }
  Result<std::vector<JournalRow>> journal(int64_t run) override {
    return read([&] { return read_journal(reader_, run); });
  }
  Result<std::vector<JournalRow>> journal_times(int64_t run) override {
    return read([&] { return read_journal_times(reader_, run); });
  }
  Result<std::vector<JournalRow>> journal_turns(int64_t run, int64_t after) override {
    return read([&] { return read_journal_turns(reader_, run, after); });
  }
  Result<ReportRow> report(int64_t run) override {
    return read([&] { return read_report(reader_, run); });
  }
  Result<std::vector<ReportRow>> reports(int64_t run, size_t limit) override {
    return read([&] { return read_reports(reader_, run, limit); });
  }
  Result<std::vector<EventRow>> events(const EventQuery& query) override {
    return read([&] { return read_events(reader_, query); });
  }

 private:
  std::mutex mutex_;
  Connection reader_;
};

class SqliteStore : public Store {
 public:
  struct Start {
    Mark mark;
    Mark::Reading entered;
    std::string why, history;
    TimeMs restored = 0;
  };
  struct Connections {
    Connection writer, reader, archive;
  };
  SqliteStore(LockFile lock, Connections to, Start start, std::function<void(Reactor::Task)> post)
      : lock_(std::move(lock)),
        writer_(std::move(to.writer)),
        reader_(std::move(to.reader)),
        archive_(std::make_shared<SqliteArchive>(std::move(to.archive))),
        start_(std::move(start)),
        post_(std::move(post)) {
    thread_ = std::thread([this] { write_loop(); });
  }
  ~SqliteStore() override {
    alive_.end();
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void write(std::vector<Write> batch, Done done) override {
    {
      const std::lock_guard hold(mutex_);
      queue_.push_back({std::move(batch), std::move(done)});
    }
    wake_.notify_one();
  }

  std::shared_ptr<RunArchive> archive() override { return archive_; }
  Result<std::vector<SpecRow>> specs() override { return read_specs(reader_); }
  Result<SpecRow> spec(int64_t revision) override { return read_spec(reader_, revision); }
  Result<PlanRow> plan(const std::string& digest) override { return read_plan(reader_, digest); }
  Result<PlanRow> plan_head(const std::string& digest) override { return read_plan_head(reader_, digest); }
  Result<std::vector<RunRow>> runs() override { return read_runs(reader_); }
  Result<RunRow> run(int64_t id) override { return read_run(reader_, id); }
  Result<std::vector<JournalRow>> journal(int64_t run) override { return read_journal(reader_, run); }
  Result<std::vector<JournalRow>> journal_times(int64_t run) override {
    return read_journal_times(reader_, run);
  }
  Result<std::vector<JournalRow>> journal_turns(int64_t run, int64_t after) override {
    return read_journal_turns(reader_, run, after);
  }
  Result<std::vector<NodeRow>> nodes() override { return read_nodes(reader_); }
  Result<std::vector<std::string>> node_names() override { return read_node_names(reader_); }
  Result<NodeRow> node(const NodeName& name) override { return read_node(reader_, name); }
  Result<TokenRow> token(const std::string& digest) override { return read_token(reader_, digest); }
  Result<std::vector<TokenRow>> join_tokens(const NodeName& node) override {
    return read_join_tokens(reader_, node);
  }
  Result<CertificateRow> certificate(const std::string& serial) override {
    return read_certificate(reader_, serial);
  }
  Result<bool> would_purge(const PurgeEvents& purge) override { return read_would_purge(reader_, purge); }
  Result<TimeMs> newest_event_before(TimeMs time) override { return read_newest_event_before(reader_, time); }
  Result<std::vector<SecretRow>> secrets() override { return read_secrets(reader_); }
  Result<SecretRow> secret(const std::string& name) override { return read_secret(reader_, name); }
  Result<std::vector<EventRow>> events(const EventQuery& query) override {
    return read_events(reader_, query);
  }
  Result<ReportRow> report(int64_t run) override { return read_report(reader_, run); }
  Result<std::vector<ReportRow>> reports(int64_t run, size_t limit) override {
    return read_reports(reader_, run, limit);
  }
  Result<RolloutRow> rollout(int64_t id) override { return read_rollout(reader_, id); }
  Result<std::vector<RolloutRow>> rollouts() override { return read_rollouts(reader_); }
  Result<NoticesRow> notices() override { return read_notices(reader_); }
  TimeMs restored() const override { return start_.restored; }
  std::string restored_why() const override { return start_.why; }
  std::string history() const override { return start_.history; }
  int64_t next_run_id() override { return reserve(reserved_run_, "SELECT coalesce(max(id), 0) FROM run"); }
  int64_t next_spec_revision() override {
    return reserve(reserved_spec_, "SELECT coalesce(max(revision), 0) FROM spec");
  }

 private:
  int64_t reserve(int64_t& reserved, const char* sql) {
    reserved = std::max(reserved, reader_.number(sql).value_or(0)) + 1;
    return reserved;
  }

  void write_loop() {
    for (;;) {
      std::vector<Batch> group;
      {
        std::unique_lock hold(mutex_);
        wake_.wait(hold, [&] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        group.swap(queue_);
      }
      std::vector<Status> results = commit_group(writer_, group);
      if (writes(group)) leave_mark(has_intent(group));
      // shared: a Task must be copyable.
      auto answer = std::make_shared<std::pair<std::vector<Batch>, std::vector<Status>>>(std::move(group),
                                                                                         std::move(results));
      post_([answer, alive = alive_.watch()] {
        for (size_t i = 0; i < answer->first.size(); ++i)
          // Each callback is contained: if one throws, the others in the group must still get their results.
          if (*alive && answer->first[i].done)
            contain_exceptions("the end of a write", [&] { answer->first[i].done(answer->second[i]); });
      });
    }
  }

  // Called after the commit, before anything acts on it.
  void leave_mark(bool sync) {
    const auto commits = writer_.number("SELECT commits FROM history");
    if (!commits.ok() || *commits == start_.entered.commits) return;  // it was not committed
    start_.entered.commits = *commits;
    const Status left = start_.mark.write(start_.entered, sync);
    if (!left.ok() && !std::exchange(complained_, true))
      log::error("journal.mark could not be written: an older copy of the database would not be recognised",
                 {{"error", left.error().message}});
    if (left.ok()) complained_ = false;
  }

  LockFile lock_;  // first in, last out
  Connection writer_, reader_;
  std::shared_ptr<RunArchive> archive_;
  Start start_;  // mark and commits: used by the writer thread
  bool complained_ = false;
  std::function<void(Reactor::Task)> post_;
  Alive alive_;  // reactor's thread
  int64_t reserved_run_ = 0, reserved_spec_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Batch> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

Result<std::string> newest_rows(const std::string& path) {
  TRY(Connection db, Connection::open(path, sqlite::Mode::read_only));
  return db.text(
      "SELECT (SELECT coalesce(max(seq), 0) FROM journal) || ' ' || (SELECT coalesce(max(seq), 0) FROM "
      "event)");
}

// True if an earlier, failed migration left a copy of this database that is still current.
bool is_copied(const std::string& path, const std::string& copy, int64_t version) {
  if (::access(copy.c_str(), F_OK) != 0) return false;
  const auto kept = inspect_database(copy);
  if (!kept.ok() || *kept != version) return false;
  const auto rows = newest_rows(path), copied = newest_rows(copy);
  return rows.ok() && copied.ok() && *rows == *copied;
}

Result<Connection> open_reader(const std::string& path) {
  TRY(Connection reader, Connection::open(path, sqlite::Mode::read_write));
  TRY_(reader.script("PRAGMA query_only = ON"));
  return reader;
}

// Space of deleted rows can be given back a little at a time only in a database that was made, or once
// rewritten, with auto_vacuum. Without the room for that it stays in the file, for new rows.
void rewrite(Connection& db, const std::string& path) {
  if (const Status done = db.script("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"); !done.ok())
    log::warning("the database was not rewritten: its file will not get smaller (docs: operations, events)",
                 {{"file", path}, {"error", done.error().message}});
}

Result<Connection> open_current(const std::string& path, int64_t version) {
  const std::string copy = fmt::format("{}.schema{}.bak", path, version);
  const bool older = version > 0 && version < newest_schema();
  if (older && !is_copied(path, copy, version)) {
    log::info("the database is copied before its upgrade",
              {{"to", copy}, {"bytes", std::to_string(copy_size(path).value_or(0))}});
    TRY_(backup_store(path, copy));
  }
  TRY(Connection writer, Connection::open(path, sqlite::Mode::read_write));
  ::chmod(path.c_str(), 0600);
  // auto_vacuum first: it counts for a database that is empty.
  TRY_(
      writer.script("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                    "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"));
  TRY(const std::string mode, writer.text("PRAGMA journal_mode"));
  if (mode != "wal")
    return fail(Code::failed, path + ": this file system does not support write-ahead logging");
  TRY_(migrate(writer));
  if (older) rewrite(writer, path);
  return writer;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 std::function<void(Reactor::Task)> post, TimeMs now) {
  TRY(LockFile lock, LockFile::take(path + ".lock", "another controller has this database open"));
  TRY(const int64_t version, inspect_database(path));
  TRY(Connection writer, open_current(path, version));
  TRY(Mark mark, Mark::open(mark_path(path)));
  SqliteStore::Start start{std::move(mark), {}, "", "", 0};
  TRY(start.why, enter_start(writer, start.mark, std::max<TimeMs>(now, 1), start.entered));
  TRY(start.history, writer.text("SELECT name FROM history"));
  TRY(start.restored, writer.number("SELECT restored FROM history"));
  TRY(Connection reader, open_reader(path));
  TRY(Connection archive, open_reader(path));
  return std::unique_ptr<Store>(new SqliteStore(std::move(lock),
                                                {std::move(writer), std::move(reader), std::move(archive)},
                                                std::move(start), std::move(post)));
}

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, Reactor& reactor) {
  return open_sqlite_store(
      path, [&reactor](Reactor::Task task) { reactor.post(std::move(task)); }, reactor.now());
}

Result<std::unique_ptr<CertificateReader>> CertificateReader::open(const std::string& path) {
  TRY(sqlite::Connection db, sqlite::Connection::open(path, sqlite::Mode::read_write));
  TRY_(db.script("PRAGMA query_only = ON"));
  return std::unique_ptr<CertificateReader>(new CertificateReader(std::move(db)));
}

Result<CertificateRow> CertificateReader::find(const std::string& serial) {
  const std::lock_guard hold(mutex_);
  return read_certificate(db_, serial);
}

}  // namespace muster
