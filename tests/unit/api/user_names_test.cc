// Names of users: at once where they are known, and late or never where a directory hangs.
#include "controller/api/user_names.h"

#include <utility>

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using api::UserNames;

namespace {

using Names = std::vector<std::string>;
constexpr uint32_t kAnna = 1000, kBen = 70001, kCleo = 70002, kDora = 70003;

// Ben, Cleo and Dora are in a directory, which hangs until answer().
struct Bench {
  Bench() {
    dir.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n");
  }
  void find(uint32_t uid) {
    names.find(uid, [this](const std::string& name) { found.push_back(name); });
  }
  size_t answer() {
    const auto all = std::exchange(searches, {});
    for (const auto& [work, done] : all) {
      work();
      done();
    }
    return all.size();
  }
  // What find() was answered with since the last call.
  Names take() { return std::exchange(found, {}); }

  TempDir dir;
  ManualReactor reactor;
  std::map<uint32_t, std::string> directory = {{kBen, "ben"}, {kCleo, "cleo"}};
  std::vector<std::pair<Reactor::Task, Reactor::Task>> searches;
  Names found;
  UserNames names{reactor,
                  [this](Reactor::Task work, Reactor::Task done) {
                    searches.emplace_back(std::move(work), std::move(done));
                  },
                  Files(dir.path("")), [this](uint32_t uid) { return directory[uid]; }};
};

}  // namespace

TEST_CASE("a directory that hangs delays no local user, and its own users no longer than the deadline",
          "[api][caller]") {
  Bench b;
  b.find(kBen);
  CHECK(b.take().empty());
  b.find(kAnna);
  b.find(0);
  CHECK(b.take() == Names{"anna", "root"});
  b.reactor.advance(UserNames::kDeadline - 1);
  b.find(kBen);
  CHECK(b.take().empty());
  b.reactor.advance(1);
  CHECK(b.take() == Names{"", ""});
  // The search is still on: another request of the same user does not wait for it.
  b.find(kBen);
  CHECK(b.take() == Names{""});
  CHECK(b.answer() == 1);
  CHECK(b.take().empty());
  b.find(kBen);
  CHECK(b.take() == Names{"ben"});
}

TEST_CASE("searches in a directory occupy few threads of the pool", "[api][caller]") {
  Bench b;
  b.find(kBen);
  b.find(kCleo);
  b.find(kBen);
  REQUIRE(b.searches.size() == UserNames::kMostSearches);
  b.find(kDora);
  CHECK(b.take() == Names{""});
  CHECK(b.answer() == UserNames::kMostSearches);
  CHECK(b.take() == Names{"ben", "ben", "cleo"});
  CHECK(b.reactor.idle());
}

TEST_CASE("a name from a directory is kept for a while, and that there is none is not", "[api][caller]") {
  Bench b;
  b.find(kBen);
  b.answer();
  b.directory[kBen] = "benjamin";
  b.reactor.advance(UserNames::kKept - 1);
  b.find(kBen);
  CHECK(b.take() == Names{"ben", "ben"});
  b.reactor.advance(1);
  b.find(kBen);
  CHECK(b.answer() == 1);
  CHECK(b.take() == Names{"benjamin"});
  b.find(kDora);
  CHECK(b.answer() == 1);
  b.directory[kDora] = "dora";
  b.find(kDora);
  CHECK(b.answer() == 1);
  CHECK(b.take() == Names{"", "dora"});
}

TEST_CASE("a search that ends after the controller's end calls nothing", "[api][caller]") {
  TempDir dir;
  ManualReactor reactor;
  Reactor::Task ended;
  bool called = false;
  {
    UserNames names(
        reactor, [&ended](const Reactor::Task&, Reactor::Task done) { ended = std::move(done); },
        Files(dir.path("")), [](uint32_t) { return std::string("ben"); });
    names.find(kBen, [&called](const std::string&) { called = true; });
  }
  ended();
  reactor.advance(UserNames::kDeadline);
  CHECK_FALSE(called);
}
