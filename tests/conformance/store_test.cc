#include <condition_variable>
#include <deque>
#include <mutex>

#include "controller/store/sqlite_store.h"
#include "tests/catch.h"
#include "tests/conformance/store_suite.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::conformance;

namespace {

class MemHarness : public StoreHarness {
 public:
  Store& store() override { return store_; }
  void settle() override {
    while (!reactor_.idle()) reactor_.advance(1);
  }
  void reopen() override { store_.crash(MemStore::Unsynced::lost); }

 private:
  ManualReactor reactor_;
  MemStore store_{reactor_};
};

// A loop that runs only when asked to; tasks come from the writer thread.
class TaskQueue {
 public:
  void post(Reactor::Task task) {
    const std::lock_guard hold(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }
  void run_one() {
    std::unique_lock hold(mutex_);
    wake_.wait(hold, [&] { return !tasks_.empty(); });
    Reactor::Task task = std::move(tasks_.front());
    tasks_.pop_front();
    hold.unlock();
    task();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Reactor::Task> tasks_;
};

class SqliteHarness : public StoreHarness {
 public:
  SqliteHarness() { open(); }
  Store& store() override { return *store_; }
  void settle() override {
    bool done = false;
    store_->write({}, [&](const Status&) { done = true; });
    while (!done) queue_.run_one();
  }
  void reopen() override {
    store_.reset();
    open();
  }

 private:
  void open() {
    auto opened = open_sqlite_store(dir_.path("muster.db"),
                                    [this](Reactor::Task task) { queue_.post(std::move(task)); });
    INFO((opened.ok() ? "" : opened.error().message));
    REQUIRE(opened.ok());
    store_ = std::move(opened).value();
  }
  TempDir dir_;
  TaskQueue queue_;
  std::unique_ptr<Store> store_;
};

std::unique_ptr<StoreHarness> make_harness(const std::string& kind) {
  if (kind == "sqlite") return std::make_unique<SqliteHarness>();
  return std::make_unique<MemHarness>();
}

}  // namespace

TEST_CASE("store conformance", "[store][conformance]") {
  const std::string kind = GENERATE(as<std::string>(), "memory", "sqlite");
  const auto h = make_harness(kind);
  SECTION(kind + ": rows come back as written") { rows_come_back_as_written(*h); }
  SECTION(kind + ": rows with a key replace") { rows_with_a_key_replace(*h); }
  SECTION(kind + ": a forgotten node is locked out") { a_forgotten_node_is_locked_out(*h); }
  SECTION(kind + ": a power-on takes its tokens along") { a_power_on_takes_its_tokens_along(*h); }
  SECTION(kind + ": older certificates end with a new one") { older_certificates_end_with_a_new_one(*h); }
  SECTION(kind + ": journal keeps order") { journal_keeps_order(*h); }
  SECTION(kind + ": batches are all or nothing") { batches_are_all_or_nothing(*h); }
  SECTION(kind + ": done comes later and in order") { done_comes_later_and_in_order(*h); }
  SECTION(kind + ": plans are found by prefix") { plans_are_found_by_prefix(*h); }
  SECTION(kind + ": large parts are left out") { large_parts_are_left_out(*h); }
  SECTION(kind + ": the archive has what the store has") { the_archive_has_what_the_store_has(*h); }
  SECTION(kind + ": events are paged") { events_are_paged(*h); }
  SECTION(kind + ": events are found") { events_are_found(*h); }
  SECTION(kind + ": old events are purged") { old_events_are_purged(*h); }
  SECTION(kind + ": reports are kept per run") { reports_are_kept_per_run(*h); }
  SECTION(kind + ": rollouts are kept by id") { rollouts_are_kept_by_id(*h); }
  SECTION(kind + ": there is one row of notices") { there_is_one_row_of_notices(*h); }
  SECTION(kind + ": ids grow") { ids_grow(*h); }
  SECTION(kind + ": everything survives reopening") { everything_survives_reopening(*h); }
}

TEST_CASE("memory store loses what was not synced", "[store]") {
  ManualReactor reactor;
  MemStore store(reactor, [] { return DurationMs{5}; });
  NodeRow node;
  int answered = 0;
  const auto count = [&](const Status&) { ++answered; };
  node.name = "kept";
  store.write({node}, count);
  reactor.advance(5);
  REQUIRE(answered == 1);
  node.name = "lost";
  store.write({node}, count);
  reactor.advance(4);
  SECTION("lost") {
    store.crash(MemStore::Unsynced::lost);
    reactor.advance(100);
    CHECK(store.nodes()->size() == 1);
  }
  SECTION("synced, but not reported") {
    store.crash(MemStore::Unsynced::kept);
    reactor.advance(100);
    CHECK(store.nodes()->size() == 2);
  }
  CHECK(answered == 1);
  node.name = "next controller";
  store.write({node}, count);
  reactor.advance(5);
  CHECK(answered == 2);
}

TEST_CASE("memory store can be full", "[store]") {
  ManualReactor reactor;
  MemStore store(reactor);
  store.fail_next(1, fail(Code::failed, "disk full"));
  NodeRow node;
  node.name = "gpu01";
  std::vector<std::string> said;
  const auto note = [&](const Status& status) {
    said.push_back(status.ok() ? "ok" : status.error().message);
  };
  store.write({node}, note);
  reactor.advance(1);
  CHECK(store.nodes()->empty());
  store.write({node}, note);
  reactor.advance(1);
  CHECK(said == std::vector<std::string>{"disk full", "ok"});
}
