// Replacing the master key: killed anywhere, either the old key opens all secrets, or the new one does.
#include <optional>

#include "controller/trust/vault.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

struct Bench {
  TempDir dir;
  ManualReactor reactor;
  MemStore store{reactor};
  std::unique_ptr<Vault> vault;
  const Files files{dir.path("")};

  Bench() {
    start();
    REQUIRE(put("bmc", "admin:one").ok());
    REQUIRE(put("other", "two").ok());
  }
  // Another life over what is on the disk.
  Status try_start() {
    vault.reset();
    TRY(vault, Vault::open(dir.path(""), reactor, store));
    return Ok{};
  }
  void start() { REQUIRE(try_start().ok()); }
  Status put(const std::string& name, const std::string& value) {
    std::optional<Status> out;
    vault->put(name, value, [&](Status done) { out = std::move(done); });
    reactor.advance(100);
    return out.value();
  }
  Status replace() {
    std::optional<Status> out;
    vault->replace_master_key([&](Status done) { out = std::move(done); });
    reactor.advance(100);
    return out.value();
  }
  std::string key() const { return files.read("/master.key").value(); }
  bool has_next() const { return files.exists("/master.key.next"); }
  bool opens() {
    return vault->get("bmc").value_or("") == "admin:one" && vault->get("other").value_or("") == "two";
  }
};

}  // namespace

TEST_CASE("a replaced master key opens every secret, and the old one none", "[secret]") {
  Bench b;
  const std::string before = b.key(), id = b.vault->master_key_id();
  const TimeMs set = b.store.secret("bmc")->time;
  b.reactor.advance(kMinute);
  REQUIRE(b.replace().ok());
  CHECK(b.key() != before);
  CHECK_FALSE(b.has_next());
  CHECK(b.opens());
  CHECK(b.vault->master_key_id() != id);
  CHECK(b.store.secret("bmc")->time == set);  // when the secret was set, not when it was sealed
  CHECK_FALSE(unseal(before.substr(0, 64), "bmc", b.store.secret("bmc")->sealed).ok());
  b.start();
  CHECK(b.opens());
  SECTION("and again") {
    const std::string second = b.key();
    REQUIRE(b.replace().ok());
    CHECK(b.key() != second);
    CHECK(b.opens());
  }
}

TEST_CASE("a controller killed while it replaces the master key comes back with all secrets", "[secret]") {
  Bench b;
  const std::string before = b.key();
  SECTION("the new key was written, no secret is sealed with it") {
    REQUIRE(b.files.write("/master.key.next", std::string(64, 'a') + "\n", 0600).ok());
    b.start();
    CHECK(b.key() == before);
  }
  SECTION("in the transaction: it is lost") {
    b.vault->replace_master_key([](Status) { FAIL("the dead answer nothing"); });
    b.store.crash(MemStore::Unsynced::lost);
    CHECK(b.has_next());
    b.start();
    CHECK(b.key() == before);
  }
  SECTION("in the transaction: the disk had it already") {
    b.vault->replace_master_key([](Status) { FAIL("the dead answer nothing"); });
    b.store.crash(MemStore::Unsynced::kept);
    b.start();
    CHECK(b.key() != before);
  }
  SECTION("the new key is in its place, its other copy was not removed") {
    REQUIRE(b.replace().ok());
    REQUIRE(b.files.write("/master.key.next", b.key(), 0600).ok());
    b.start();
    CHECK(b.key() != before);
  }
  CHECK_FALSE(b.has_next());
  CHECK(b.opens());
  CHECK(b.put("third", "three").ok());
  b.start();
  CHECK(b.vault->get("third").value_or("") == "three");
}

TEST_CASE("a database that takes nothing leaves the master key as it was", "[secret]") {
  Bench b;
  const std::string before = b.key();
  b.store.fail_next(1, fail(Code::failed, "disk full"));
  CHECK(b.replace().error().code == Code::failed);
  CHECK(b.key() == before);
  CHECK_FALSE(b.has_next());
  CHECK(b.opens());
  CHECK(b.replace().ok());
  CHECK(b.opens());
}

TEST_CASE("while the master key is replaced, secrets can be read and none is stored", "[secret]") {
  Bench b;
  std::optional<Status> stored, replaced, second;
  SECTION("one that comes meanwhile is refused") {
    b.vault->replace_master_key([&](Status done) { replaced = std::move(done); });
    b.vault->replace_master_key([&](Status done) { second = std::move(done); });
    b.vault->put("bmc", "admin:new", [&](Status done) { stored = std::move(done); });
    CHECK(b.opens());
    b.reactor.advance(100);
    CHECK(replaced->ok());
    CHECK(second->error().code == Code::unavailable);
    CHECK(stored->error().code == Code::unavailable);
    CHECK(b.opens());
  }
  SECTION("one that is under way goes first") {
    b.vault->put("bmc", "admin:one", [&](Status done) { stored = std::move(done); });
    b.vault->replace_master_key([&](Status done) { replaced = std::move(done); });
    b.reactor.advance(100);
    CHECK(stored->ok());
    CHECK(replaced->error().code == Code::unavailable);
    CHECK(b.opens());
    CHECK(b.replace().ok());
  }
}

TEST_CASE("a secret that is deleted while the master key is replaced does not come back", "[secret]") {
  Bench b;
  std::optional<Status> replaced;
  const auto replace = [&] {
    b.vault->replace_master_key([&](Status done) { replaced = std::move(done); });
    b.reactor.advance(100);
  };
  SECTION("one of them") {
    b.store.write({DeleteSecret{"bmc"}},
                  [](const Status&) {});  // as a removed node's record is, without the vault
    replace();
    CHECK(replaced->ok());
    CHECK(b.vault->get("other").value_or("") == "two");
  }
  SECTION("all of them") {
    b.store.write({DeleteSecret{"bmc"}, DeleteSecret{"other"}}, [](const Status&) {});
    replace();
    CHECK(replaced->error().code == Code::unavailable);
    replace();
    CHECK(replaced->ok());
  }
  CHECK(b.vault->get("bmc").error().code == Code::not_found);
}

TEST_CASE("a secret that cannot be opened stops the replacement of the master key", "[secret]") {
  Bench b;
  const std::string before = b.key();
  b.store.write({SecretRow{"bad", 1, "AAAA"}}, [](Status) {});
  b.reactor.advance(100);
  CHECK(b.replace().error().code == Code::corrupt);
  CHECK(b.key() == before);
  CHECK_FALSE(b.has_next());
  CHECK(b.opens());
}

TEST_CASE("no master key is thrown away that may be the one", "[secret]") {
  Bench b;
  REQUIRE(b.files.write("/master.key", std::string(64, 'a') + "\n", 0600).ok());
  REQUIRE(b.files.write("/master.key.next", std::string(64, 'b') + "\n", 0600).ok());
  CHECK(b.try_start().error().code == Code::corrupt);
  CHECK(b.files.read("/master.key").value()[0] == 'a');
  CHECK(b.files.read("/master.key.next").value()[0] == 'b');
}

TEST_CASE("only what the controller makes is replaced by it", "[secret]") {
  Bench b;
  std::optional<Status> made, replaced, foreign;
  b.vault->make_own_secrets([&](Status done) { made = std::move(done); });
  b.reactor.advance(kSecond);
  REQUIRE(made->ok());
  const std::string before = b.vault->get("munge-key").value();
  const auto write = [&](Write row, Store::Done done) { b.store.write({std::move(row)}, std::move(done)); };
  b.vault->replace_own("munge-key", write, [&](Status done) { replaced = std::move(done); });
  b.vault->replace_own("bmc", write, [&](Status done) { foreign = std::move(done); });
  b.reactor.advance(100);
  CHECK(replaced->ok());
  CHECK(foreign->error().code == Code::not_found);
  CHECK(b.vault->get("munge-key").value().size() == before.size());
  CHECK(b.vault->get("munge-key").value() != before);
  CHECK(b.vault->get("bmc").value() == "admin:one");
}
