#include "controller/store/sqlite_store.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

void drop(Reactor::Task) {}

Result<std::unique_ptr<Store>> open(const TempDir& dir) {
  return open_sqlite_store(dir.path("muster.db"), drop);
}

// A closed database with one node in it.
void make_database(const TempDir& dir) {
  auto store = open(dir);
  REQUIRE(store.ok());
  NodeRow node;
  node.name = "gpu01";
  (*store)->write({node}, {});
}

void must_refuse_untouched(const TempDir& dir, Code code, const std::string& says) {
  const std::string before = dir.read("muster.db");
  const auto opened = open(dir);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().code == code);
  INFO(opened.error().message);
  CHECK(opened.error().message.find(says) != std::string::npos);
  CHECK(dir.read("muster.db") == before);
}

// What migrations 8 to 11 added.
const std::string kBeforeCallers =
    "DROP INDEX event_by_time; ALTER TABLE node DROP COLUMN faulty_part; DROP TABLE notices; ALTER TABLE "
    "node DROP COLUMN held_caller; "
    "ALTER TABLE node DROP COLUMN held_since; "
    "ALTER TABLE spec DROP COLUMN caller; ";

std::string with_version(std::string bytes, char version) {
  bytes[63] = version;  // PRAGMA user_version, big endian
  return bytes;
}

// A controller that dies between the acknowledgement of its write and anything else.
[[noreturn]] void write_and_die(const std::string& path, int answer_to) {
  std::mutex mutex;
  std::condition_variable wake;
  Reactor::Task task;
  auto store = open_sqlite_store(path, [&](Reactor::Task t) {
    const std::lock_guard hold(mutex);
    task = std::move(t);
    wake.notify_one();
  });
  if (!store.ok()) ::_exit(2);
  NodeRow node;
  node.name = "acknowledged";
  (*store)->write({node}, [&](const Status& status) {
    const char answer = status.ok() ? 'y' : 'n';
    (void)!::write(answer_to, &answer, 1);
    ::kill(::getpid(), SIGKILL);
  });
  std::unique_lock hold(mutex);
  wake.wait(hold, [&] { return static_cast<bool>(task); });
  task();
  ::_exit(1);
}

}  // namespace

TEST_CASE("the migrated schema equals schema/current.sql", "[store]") {
  auto db = sqlite::Connection::open(":memory:", sqlite::Mode::read_write);
  REQUIRE(db.ok());
  REQUIRE(migrate(*db).ok());
  CHECK(*db->number("PRAGMA user_version") == newest_schema());
  CHECK(*db->number("PRAGMA application_id") == kApplicationId);
  const std::string golden = source_dir() + "/schema/current.sql";
  const std::string header =
      "-- What all migrations together make. Written by the tests with MUSTER_ACCEPT=1.\n";
  const std::string found = header + *dump_schema(*db);
  if (std::getenv("MUSTER_ACCEPT")) std::ofstream(golden) << found;
  std::ifstream in(golden);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == found);
}

TEST_CASE("a damaged row of the journal does not hide the others", "[store]") {
  const TempDir dir;
  make_database(dir);
  {
    auto db = sqlite::Connection::open(dir.path("muster.db"), sqlite::Mode::read_write);
    REQUIRE(db.ok());
    REQUIRE(db->run("INSERT INTO run VALUES (1, 'sha256:0', 'running', 1, 0, 'ops')", {}).ok());
    for (const std::string data : {R"({"message": "no", "result": 1})", R"({"message": "n)"})
      REQUIRE(
          db->run("INSERT INTO journal (run, action, node, attempt, event, time, data) VALUES (1, 'gpu01/a', "
                  "'gpu01', 1, 'failed', 1, ?)",
                  {data})
              .ok());
  }
  const auto store = open(dir);
  REQUIRE(store.ok());
  const auto rows = (*store)->journal_turns(1, 0);
  REQUIRE(rows.ok());
  REQUIRE(rows->size() == 2);
  CHECK(rows->front().data == Json{{"message", "no"}});
  CHECK(rows->back().data == nullptr);
}

TEST_CASE("a state that this version has no word for is an error, and taken for no other", "[store]") {
  const TempDir dir;
  make_database(dir);
  {
    auto db = sqlite::Connection::open(dir.path("muster.db"), sqlite::Mode::read_write);
    REQUIRE(db.ok());
    REQUIRE(db->run("UPDATE node SET state = ?", {std::string("retired")}).ok());
    REQUIRE(db->run("INSERT INTO run VALUES (1, 'sha256:0', ?, 1, 0, 'ops')", {std::string("asleep")}).ok());
  }
  const auto store = open(dir);
  REQUIRE(store.ok());
  const auto refused = [](const auto& read) { return !read.ok() && read.error().code == Code::corrupt; };
  CHECK(refused((*store)->nodes()));
  CHECK(refused((*store)->node("gpu01")));
  CHECK(refused((*store)->runs()));
  CHECK(refused((*store)->run(1)));
}

TEST_CASE("a database from before callers were recorded is read, and names none", "[store]") {
  const TempDir dir;
  make_database(dir);
  {
    auto db = sqlite::Connection::open(dir.path("muster.db"), sqlite::Mode::read_write);
    REQUIRE(db.ok());
    REQUIRE(db->script(kBeforeCallers + R"(
        INSERT INTO spec VALUES (1, 10, 'cluster: a', 'sha256:aa', 'first');
        UPDATE node SET state = 'quarantined', held_by = 'operator', reason = 'by an operator: PSU';
        INSERT INTO run VALUES (1, 'sha256:0', 'done', 1, 2, 'muster up');
        PRAGMA user_version = 7)")
                .ok());
  }
  const auto store = open(dir);
  REQUIRE(store.ok());
  CHECK((*store)->spec(1)->note == "first");
  CHECK((*store)->spec(1)->caller.empty());
  const auto node = (*store)->node("gpu01");
  REQUIRE(node.ok());
  CHECK(node->held_by == HeldBy::an_operator);
  CHECK(node->held_caller.empty());
  CHECK(node->held_since == 0);
  CHECK((*store)->run(1)->approved_by == "muster up");
}

TEST_CASE("who took a node out before there was a column for it is read from its reason, once", "[store]") {
  auto db = sqlite::Connection::open(":memory:", sqlite::Mode::read_write);
  REQUIRE(db.ok());
  REQUIRE(migrate(*db).ok());
  REQUIRE(db->script(kBeforeCallers + "DROP TABLE rollout; ALTER TABLE node DROP COLUMN disk_written; "
                                      "ALTER TABLE node DROP COLUMN held_by; PRAGMA user_version = 4")
              .ok());
  const auto insert = [&](const std::string& name, const std::string& state, const std::string& reason) {
    return db->run("INSERT INTO node VALUES (?, ?, ?, '', '', '', '', '', '', 0, 0, '', 0)",
                   {name, state, reason});
  };
  REQUIRE(insert("a", "quarantined", "by an operator: PSU on order").ok());
  REQUIRE(insert("b", "quarantined", "image: disk died").ok());
  REQUIRE(insert("c", "accepted", "").ok());
  REQUIRE(migrate(*db).ok());
  std::map<std::string, std::string> held;
  REQUIRE(db->query("SELECT name, held_by FROM node", {}, [&](const sqlite::Row& row) {
              held[row.text(0)] = row.text(1);
            }).ok());
  CHECK(held == std::map<std::string, std::string>{{"a", "operator"}, {"b", "run"}, {"c", ""}});
  CHECK(held_by_from_string("another word") == HeldBy::an_operator);
}

namespace {

// As a controller of the version before the column of NodeRow::disk_written left it: nodes accepted, looked
// at at 100, and three runs.
void leave_schema_5(const TempDir& dir) {
  make_database(dir);
  auto db = sqlite::Connection::open(dir.path("muster.db"), sqlite::Mode::read_write);
  REQUIRE(db.ok());
  REQUIRE(db->script(kBeforeCallers +
                     "DROP TABLE rollout; DELETE FROM node; ALTER TABLE node DROP COLUMN disk_written; "
                     "PRAGMA user_version = 5")
              .ok());
  for (const char* node : {"n1", "n2", "n3", "n4", "n5"})
    REQUIRE(
        db->run("INSERT INTO node VALUES (?, 'accepted', '', 'sha256:i', 'sha256:c', 'installed', 'b', '', "
                "'', 90, 100, '{}', 1, '')",
                {std::string(node)})
            .ok());
  const std::string plan = R"({"actions": [{"id": "n1/w", "kind": "image", "params": {}},
    {"id": "n1/image", "kind": "steps"}, {"id": "n2/s", "kind": "write_slot", "params": {"slot": "b"}},
    {"id": "n2/t", "kind": "write_slot", "params": {}}, {"id": "n5/w", "kind": "image"}, "odd"]})";
  REQUIRE(db->run("INSERT INTO plan VALUES ('sha256:a', 'install', 1, 1, ?)", {plan}).ok());
  REQUIRE(db->run("INSERT INTO plan VALUES ('sha256:b', 'install', 1, 1, '{broken')", {}).ok());
  for (const auto& [run, digest] :
       std::map<int64_t, std::string>{{1, "sha256:a"}, {2, "sha256:b"}, {3, "sha256:lost"}})
    REQUIRE(db->run("INSERT INTO run VALUES (?, ?, 'partial', 1, 2, 'ops')", {run, digest}).ok());
  const auto journal = [&](int64_t run, const std::string& action, const std::string& event, int64_t time) {
    REQUIRE(
        db->run(
              "INSERT INTO journal (run, action, node, attempt, event, time, data) VALUES (?, ?, ?, 1, ?, ?, "
              "'{}')",
              {run, action, action.substr(0, action.find('/')), event, time})
            .ok());
  };
  journal(1, "n1/w", "intent", 99);  // before it was looked at
  journal(1, "n1/w", "intent", 120);
  journal(1, "n1/w", "intent", 130);
  journal(1, "n1/w", "succeeded", 140);
  journal(1, "n1/image", "intent", 150);  // by its name alone
  journal(1, "n2/s", "intent", 160);
  journal(1, "n2/t", "intent", 170);
  journal(2, "n3/x", "intent", 101);
  journal(3, "n3/x", "intent", 105);
  journal(1, "n4/configure", "intent", 500);
  journal(1, "n5/w", "intent", 100);  // which came first is not known
}

}  // namespace

TEST_CASE("a first start that died in its migration is repeated, and the copy of before is kept", "[store]") {
  const TempDir dir;
  leave_schema_5(dir);
  const auto script = [&](const char* sql) {
    auto db = sqlite::Connection::open(dir.path("muster.db"), sqlite::Mode::read_write);
    REQUIRE(db.ok());
    REQUIRE(db->script(sql).ok());
  };
  script("ALTER TABLE node ADD COLUMN disk_written TEXT NOT NULL DEFAULT ''");
  const auto first = open(dir);
  REQUIRE_FALSE(first.ok());
  const auto again = open(dir);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message == first.error().message);  // and not that the copy is there
  const std::string copy = dir.read("muster.db.schema5.bak");
  CHECK_FALSE(copy.empty());
  SECTION("as it was") {
    script("ALTER TABLE node DROP COLUMN disk_written");
    CHECK(open(dir).ok());
  }
  SECTION("with newer rows, which no copy has") {
    script(
        "ALTER TABLE node DROP COLUMN disk_written; "
        "INSERT INTO event (time, run, node, kind, json) VALUES (1, 1, '', 'run', '{}')");
    CHECK_FALSE(open(dir).ok());
  }
  CHECK(dir.read("muster.db.schema5.bak") == copy);
}

TEST_CASE(
    "what was written before there was a column for it is read from the journals, and nodes stay accepted",
    "[store]") {
  const TempDir dir;
  leave_schema_5(dir);
  const auto store = open(dir);
  INFO((store.ok() ? "" : store.error().message));
  REQUIRE(store.ok());
  using Written = std::map<std::string, TimeMs>;
  CHECK((*store)->node("n1")->disk_written == Written{{"", 130}});
  CHECK((*store)->node("n2")->disk_written == Written{{"", 170}, {"b", 160}});
  CHECK((*store)->node("n3")->disk_written == Written{{"", 105}});  // of a plan that cannot be read
  CHECK((*store)->node("n4")->disk_written.empty());
  CHECK((*store)->node("n5")->disk_written == Written{{"", 100}});
  const auto rows = (*store)->nodes();
  REQUIRE(rows.ok());
  CHECK(rows->size() == 5);
  for (const auto& row : *rows) {
    CAPTURE(row.name);
    CHECK(row.state == NodeState::accepted);
    CHECK(row.image_digest == "sha256:i");
    CHECK(row.config_digest == "sha256:c");
    CHECK(row.accepted_run == 1);
    CHECK(row.facts.text() == "{}");
  }
}

TEST_CASE("a row that does not say when its disk was written is an error, and not a disk that was not",
          "[store]") {
  const TempDir dir;
  make_database(dir);
  const std::string bad = GENERATE(as<std::string>(), "", "[]", "{\"\": \"soon\"}", "{\"\": 1");
  {
    auto db = sqlite::Connection::open(dir.path("muster.db"), sqlite::Mode::read_write);
    REQUIRE(db.ok());
    REQUIRE(db->run("UPDATE node SET disk_written = ?", {bad}).ok());
  }
  const auto store = open(dir);
  REQUIRE(store.ok());
  CHECK((*store)->node("gpu01").error().code == Code::corrupt);
}

TEST_CASE("a second controller is refused and told who has it", "[store]") {
  const TempDir dir;
  {
    const auto first = open(dir);
    REQUIRE(first.ok());
    const auto second = open(dir);
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == Code::conflict);
    CHECK(second.error().message ==
          "another controller has this database open (pid " + std::to_string(::getpid()) + ")");
  }
  CHECK(open(dir).ok());
}

TEST_CASE("a damaged, foreign or newer database is refused and untouched", "[store]") {
  const TempDir dir;
  make_database(dir);
  const std::string good = dir.read("muster.db");
  REQUIRE(good.size() > 8192);

  SECTION("newer schema") {
    dir.write("muster.db", with_version(good, 99));
    must_refuse_untouched(dir, Code::denied, "newer muster (schema 99");
  }
  SECTION("text instead of a database") {
    dir.write("muster.db", "cluster: gaggle\n");
    must_refuse_untouched(dir, Code::corrupt, "not a database");
  }
  SECTION("another program's database") {
    std::string bytes = good;
    bytes[68] = 0;
    dir.write("muster.db", bytes);
    must_refuse_untouched(dir, Code::corrupt, "a different program");
  }
  SECTION("cut off") {
    dir.write("muster.db", good.substr(0, good.size() - 4096));
    must_refuse_untouched(dir, Code::corrupt, "damaged");
  }
  SECTION("cut off within the header") {
    dir.write("muster.db", good.substr(0, 60));
    must_refuse_untouched(dir, Code::corrupt, "not a database");
  }
  SECTION("garbage in a page") {
    std::string bytes = good;
    for (size_t i = 4096; i < 4196; ++i) bytes[i] = '\xa5';
    dir.write("muster.db", bytes);
    must_refuse_untouched(dir, Code::corrupt, "damaged");
  }
}

TEST_CASE("a backup follows no user's link", "[store][links]") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  const TempDir dir;
  make_database(dir);
  const Files files(dir.path(""));
  REQUIRE(files.make_directories("/etc"));
  REQUIRE(files.make_directories("/u", 0755, {65534, 65534}));
  REQUIRE(files.symlink("../etc", "/u/folder"));
  REQUIRE(files.symlink("../etc/cron.db", "/u/file.db"));
  CHECK(backup_store(dir.path("muster.db"), dir.path("u/folder/copy.db")).error().code == Code::denied);
  CHECK(backup_store(dir.path("muster.db"), dir.path("u/file.db")).error().code == Code::conflict);
  REQUIRE(backup_store(dir.path("muster.db"), dir.path("u/copy.db")).ok());
  CHECK(files.list("/etc").empty());
  CHECK(files.list("/u") == std::vector<std::string>{"copy.db", "file.db", "folder"});
  for (const std::string& name : files.list("/")) CHECK_FALSE(name.starts_with("."));
}

TEST_CASE("nothing and an empty file are new databases", "[store]") {
  const TempDir dir;
  CHECK(*inspect_database(dir.path("muster.db")) == 0);
  dir.write("muster.db", "");
  CHECK(*inspect_database(dir.path("muster.db")) == 0);
  { REQUIRE(open(dir).ok()); }
  CHECK(*inspect_database(dir.path("muster.db")) == newest_schema());
}

TEST_CASE("a backup is a whole database and replaces nothing", "[store]") {
  const TempDir dir;
  make_database(dir);
  SECTION("of a closed store") { REQUIRE(backup_store(dir.path("muster.db"), dir.path("copy.db")).ok()); }
  SECTION("of a store in use") {
    const auto live = open(dir);
    REQUIRE(live.ok());
    REQUIRE(backup_store(dir.path("muster.db"), dir.path("copy.db")).ok());
  }
  const std::string copy = dir.read("copy.db");
  CHECK(copy_size(dir.path("muster.db")).value() >= static_cast<int64_t>(copy.size()));
  CHECK(backup_store(dir.path("muster.db"), dir.path("copy.db")).error().code == Code::conflict);
  CHECK(dir.read("copy.db") == copy);
  CHECK(backup_store(dir.path("absent.db"), dir.path("other.db")).error().code == Code::not_found);
  auto restored = open_sqlite_store(dir.path("copy.db"), drop);
  REQUIRE(restored.ok());
  CHECK((*restored)->node("gpu01").ok());
  struct stat info {};
  REQUIRE(::stat(dir.path("copy.db").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(info.st_nlink == 1);
  for (const auto& file : std::filesystem::directory_iterator(dir.path("")))
    CHECK(file.path().extension() != ".tmp");
}

TEST_CASE("what was acknowledged survives kill -9", "[store]") {
  const TempDir dir;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) write_and_die(dir.path("muster.db"), ends[1]);
  ::close(ends[1]);
  char answer = 0;
  CHECK(::read(ends[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  CHECK(WIFSIGNALED(status));
  const auto store = open(dir);
  INFO((store.ok() ? "" : store.error().message));
  REQUIRE(store.ok());
  CHECK((*store)->node("acknowledged").ok());
}

TEST_CASE("other threads read the archive while the store writes, and after its end", "[store]") {
  const TempDir dir;
  std::condition_variable wake;
  std::mutex mutex;
  bool written = false;
  auto store = open_sqlite_store(dir.path("muster.db"), [&](const Reactor::Task&) {
    const std::lock_guard hold(mutex);
    written = true;
    wake.notify_all();
  });
  REQUIRE(store.ok());
  const auto archive = (*store)->archive();
  const auto read = [&archive](int64_t rows) {
    for (int i = 0; i < 50; ++i) {
      const auto journal = archive->journal(1);
      if (!journal.ok() || static_cast<int64_t>(journal->size()) < rows) return false;
    }
    return true;
  };
  bool good[2] = {};
  JournalRow row;
  row.run = 1;
  row.event = "step";
  (*store)->write({RunRow{1, "sha256:0", RunState::running, 1, 0, "ops"}, row}, {});
  {
    std::unique_lock hold(mutex);
    wake.wait(hold, [&] { return written; });
  }
  std::thread readers[] = {std::thread([&] { good[0] = read(1); }), std::thread([&] { good[1] = read(1); })};
  for (int i = 0; i < 50; ++i) (*store)->write({row}, {});
  for (auto& reader : readers) reader.join();
  CHECK(good[0]);
  CHECK(good[1]);
  store->reset();
  CHECK(archive->journal(1)->size() == 51);
}

TEST_CASE("bytes that are not UTF-8 do not stop the journal", "[store]") {
  const TempDir dir;
  {
    auto store = open(dir);
    REQUIRE(store.ok());
    JournalRow row;
    row.event = "failed";
    row.data = Json{{"tail", "caf\xe9"}};
    (*store)->write({row}, {});
  }
  const auto store = open(dir);
  REQUIRE((*store)->journal(0)->size() == 1);
  CHECK((*store)->journal(0)->at(0).data["tail"] == "caf\xef\xbf\xbd");
}
