// What waited for a commit goes on in the order of the rows, a few in one task.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "controller/executor/journal_writer.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

constexpr int kMany = 100;

struct Waiting {
  ManualReactor reactor;
  MemStore store{reactor, [] { return DurationMs{0}; }};
  std::unique_ptr<JournalWriter> journal = std::make_unique<JournalWriter>(reactor, store);
  std::vector<int> seen;

  void write(int number) {
    journal->write(NodeName(fmt::format("n{}", number)), {}, [this, number] { seen.push_back(number); });
  }
  void write_all() {
    for (int i = 0; i < kMany; ++i) write(i);
  }
  // The most that went on in one task.
  size_t run() {
    size_t most = 0;
    for (size_t before = 0; reactor.step(); before = seen.size()) most = std::max(most, seen.size() - before);
    return most;
  }
  void check_order(int count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i) all.push_back(i);
    CHECK(seen == all);
  }
};

}  // namespace

TEST_CASE("many who waited for one commit go on in pieces, in their order", "[run]") {
  Waiting w;
  w.write_all();
  const size_t most = w.run();
  CHECK(most > 1);
  CHECK(most < 32);
  w.check_order(kMany);
}

TEST_CASE("a later commit does not overtake those of an earlier one who have not gone on yet", "[run]") {
  Waiting w;
  w.journal->write("n0", {}, [&w] {
    w.seen.push_back(0);
    w.write(kMany);  // its commit is over before the others went on
  });
  for (int i = 1; i < kMany; ++i) w.write(i);
  w.run();
  w.check_order(kMany + 1);
}

TEST_CASE("with its writer gone nothing goes on", "[run]") {
  Waiting w;
  w.write(0);
  w.journal->write("n1", {}, [&w] {
    w.seen.push_back(1);
    w.journal.reset();
  });
  for (int i = 2; i < kMany; ++i) w.write(i);
  w.run();
  w.check_order(2);
}
