// Stores in front of a store: one that shows what is durable, and two with a bug on purpose: one says
// "durable" before it is, one forgets when disks were written. Everything else is the store behind it.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster::sim {

class StoreInFront : public Store {
 public:
  explicit StoreInFront(Store& store) : store_(store) {}
  std::shared_ptr<RunArchive> archive() override { return store_.archive(); }
  Result<std::vector<SpecRow>> specs() override { return store_.specs(); }
  Result<SpecRow> spec(int64_t revision) override { return store_.spec(revision); }
  Result<PlanRow> plan(const std::string& digest) override { return store_.plan(digest); }
  Result<PlanRow> plan_head(const std::string& digest) override { return store_.plan_head(digest); }
  Result<std::vector<RunRow>> runs() override { return store_.runs(); }
  Result<RunRow> run(int64_t id) override { return store_.run(id); }
  Result<std::vector<JournalRow>> journal(int64_t run) override { return store_.journal(run); }
  Result<std::vector<JournalRow>> journal_times(int64_t run) override { return store_.journal_times(run); }
  Result<std::vector<JournalRow>> journal_turns(int64_t run, int64_t after) override {
    return store_.journal_turns(run, after);
  }
  Result<std::vector<std::string>> node_names() override { return store_.node_names(); }
  Result<std::vector<NodeRow>> nodes() override { return store_.nodes(); }
  Result<NodeRow> node(const NodeName& name) override { return store_.node(name); }
  Result<TokenRow> token(const std::string& digest) override { return store_.token(digest); }
  Result<std::vector<TokenRow>> join_tokens(const NodeName& node) override {
    return store_.join_tokens(node);
  }
  Result<CertificateRow> certificate(const std::string& serial) override {
    return store_.certificate(serial);
  }
  Result<bool> would_purge(const PurgeEvents& purge) override { return store_.would_purge(purge); }
  Result<TimeMs> newest_event_before(TimeMs time) override { return store_.newest_event_before(time); }
  Result<std::vector<SecretRow>> secrets() override { return store_.secrets(); }
  Result<SecretRow> secret(const std::string& name) override { return store_.secret(name); }
  using Store::events;
  Result<std::vector<EventRow>> events(const EventQuery& query) override { return store_.events(query); }
  Result<ReportRow> report(int64_t run) override { return store_.report(run); }
  Result<std::vector<ReportRow>> reports(int64_t run, size_t limit) override {
    return store_.reports(run, limit);
  }
  Result<RolloutRow> rollout(int64_t id) override { return store_.rollout(id); }
  Result<std::vector<RolloutRow>> rollouts() override { return store_.rollouts(); }
  Result<NoticesRow> notices() override { return store_.notices(); }
  TimeMs restored() const override { return store_.restored(); }
  std::string restored_why() const override { return store_.restored_why(); }
  std::string history() const override { return store_.history(); }
  int64_t next_run_id() override { return store_.next_run_id(); }
  int64_t next_spec_revision() override { return store_.next_spec_revision(); }

 protected:
  Store& store_;
};

class WatchedStore : public StoreInFront {
 public:
  using Watch = std::function<void(const std::vector<Write>&)>;
  WatchedStore(Store& store, Watch watch) : StoreInFront(store), watch_(std::move(watch)) {}
  void write(std::vector<Write> batch, Done done) override {
    auto rows = std::make_shared<const std::vector<Write>>(batch);
    store_.write(std::move(batch), [this, rows, done = std::move(done)](Status written) {
      if (written.ok()) watch_(*rows);
      done(std::move(written));
    });
  }

 private:
  Watch watch_;
};

class UnmarkedStore : public StoreInFront {
 public:
  using StoreInFront::StoreInFront;
  void write(std::vector<Write> batch, Done done) override {
    for (Write& row : batch)
      if (auto* node = std::get_if<NodeRow>(&row)) node->disk_written.clear();
    store_.write(std::move(batch), std::move(done));
  }
};

class EarlyStore : public StoreInFront {
 public:
  EarlyStore(Store& store, Reactor& reactor) : StoreInFront(store), reactor_(reactor) {}
  void write(std::vector<Write> batch, Done done) override {
    store_.write(std::move(batch), [](Status) {});
    reactor_.post([done] { done(Ok{}); });
  }

 private:
  Reactor& reactor_;
};

}  // namespace muster::sim
