// MemStore: the Store in memory, for the simulation and for unit tests, with the two things a disk does to a
// controller: it takes time, and a crash loses what it had not synced.
//
// A batch is durable when its `done` runs, never before; batches handed over while a commit is under way wait
// for the next one (as in the SQLite store). crash() is `kill -9` of the controller: no pending `done` ever
// runs; the batches behind them are lost, or kept when the machine had already synced them. The object then
// serves the next controller. Thread: the reactor's thread. Never looks at a clock, never allocates a thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

class MemStore : public Store {
 public:
  // `commit_delay` gives each group commit its duration; default: 1 ms.
  explicit MemStore(Reactor& reactor, std::function<DurationMs()> commit_delay = {});
  ~MemStore() override;

  enum class Unsynced { lost, kept };
  void crash(Unsynced unsynced);
  // The next `count` batches fail with `error` (disk full) and change nothing.
  void fail_next(int count, Error error);
  // Batches with a row of which `bad` says so fail with `error`, and change nothing; null: none.
  void refuse(std::function<bool(const Write&)> bad, Error error);
  // The next `count` reads of the node table fail with `error` (an I/O error of the disk).
  void fail_reads(int count, Error error);
  // What a database put back from a backup says of itself (Store::restored()).
  void set_restored(TimeMs at) { restored_ = at; }
  TimeMs restored() const override { return restored_; }
  size_t pending() const { return waiting_.size() + committing_.size(); }

  void write(std::vector<Write> batch, Done done) override;
  // Itself: where it is used, workers are the reactor's thread.
  std::shared_ptr<RunArchive> archive() override { return {std::shared_ptr<RunArchive>(), this}; }
  Result<std::vector<SpecRow>> specs() override;
  Result<SpecRow> spec(int64_t revision) override;
  Result<PlanRow> plan(const std::string& digest) override;
  Result<std::vector<RunRow>> runs() override;
  Result<RunRow> run(int64_t id) override;
  Result<std::vector<JournalRow>> journal(int64_t run) override;
  Result<std::vector<NodeRow>> nodes() override;
  Result<NodeRow> node(const NodeName& name) override;
  Result<TokenRow> token(const std::string& digest) override;
  Result<std::vector<TokenRow>> join_tokens(const NodeName& node) override;
  Result<CertificateRow> certificate(const std::string& serial) override;
  Result<bool> would_purge(const PurgeEvents& purge) override;
  Result<TimeMs> newest_event_before(TimeMs time) override;
  Result<std::vector<SecretRow>> secrets() override;
  using Store::events;
  Result<std::vector<EventRow>> events(const EventQuery& query) override;
  Result<ReportRow> report(int64_t run) override;
  Result<std::vector<ReportRow>> reports(int64_t run, size_t limit) override;
  Result<RolloutRow> rollout(int64_t id) override;
  Result<std::vector<RolloutRow>> rollouts() override;
  Result<NoticesRow> notices() override;
  int64_t next_run_id() override;
  int64_t next_spec_revision() override;

 private:
  struct Tables {
    std::map<int64_t, SpecRow> specs;
    std::map<std::string, PlanRow> plans;
    std::map<int64_t, RunRow> runs;
    std::map<int64_t, JournalRow> journal;
    std::map<std::string, NodeRow> nodes;
    std::map<std::string, TokenRow> tokens;
    std::map<std::string, CertificateRow> certificates;
    std::map<std::string, SecretRow> secrets;
    std::map<int64_t, EventRow> events;
    int64_t last_event = 0;  // numbers of purged ones are not used again
    std::map<int64_t, ReportRow> reports;
    std::map<int64_t, RolloutRow> rollouts;
    std::map<int64_t, NoticesRow> notices;
  };
  struct Batch {
    std::vector<Write> rows;
    Done done;
    std::optional<Error> fails;
  };
  Status apply(const std::vector<Write>& rows);
  void start_commit();
  void finish_commit();

  Reactor& reactor_;
  std::function<DurationMs()> commit_delay_;
  Tables tables_;
  std::vector<Batch> waiting_, committing_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // timers of a destroyed store do nothing
  uint64_t incarnation_ = 0;                                    // timers of a crashed controller do nothing
  int64_t reserved_run_ = 0, reserved_spec_ = 0;
  TimeMs restored_ = 0;
  int failures_left_ = 0, read_failures_ = 0;
  Error failure_, read_failure_;
  std::function<bool(const Write&)> refused_;
  Error refusal_;
};

}  // namespace muster
