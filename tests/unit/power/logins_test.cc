// What is remembered of logins: when one more may be tried, and what is answered instead.
#include "controller/power/logins.h"

#include "tests/catch.h"

using namespace muster;

namespace {

struct Bench {
  TimeMs now = 100 * kMinute;
  Logins logins{[this] { return now; }};
  PowerTarget target;

  Bench() {
    target.node = "gpu01";
    target.address = "10.20.1.11";
    target.user = "admin";
    target.password = "the-secret-itself";
  }
  PowerTarget with(const std::string& password) const {
    PowerTarget other = target;
    other.password = password;
    return other;
  }
  void refuse_twice() {
    logins.failed(target);
    logins.failed(target);
  }
};

}  // namespace

TEST_CASE("one failed login is no wrong password, and the next one waits", "[power]") {
  Bench b;
  CHECK(b.logins.pause(b.target) == 0);
  b.logins.failed(b.target);
  CHECK_FALSE(b.logins.find(b.target));
  CHECK(b.logins.pause(b.target) == 10 * kSecond);
  b.now += 4 * kSecond;
  CHECK(b.logins.pause(b.target) == 6 * kSecond);
  SECTION("the second is refused") {
    b.logins.failed(b.target);
    REQUIRE(b.logins.find(b.target));
    CHECK(b.logins.find(b.target)->code == Code::denied);
    CHECK(b.logins.find(b.target)->message.find(b.target.password) == std::string::npos);
  }
  SECTION("it lets us in") {
    b.logins.let_in(b.target);
    CHECK(b.logins.pause(b.target) == 0);
    b.logins.failed(b.target);
    CHECK_FALSE(b.logins.find(b.target));
  }
}

TEST_CASE("a refused secret is remembered until it changes, or for ten minutes", "[power]") {
  Bench b;
  b.refuse_twice();
  REQUIRE(b.logins.find(b.target));
  PowerTarget requested = b.target;
  SECTION("another node behind the same BMC is the same account") {
    requested.node = "gpu02";
    CHECK(b.logins.find(requested));
    requested.password = "right";
  }
  SECTION("another password") { requested.password = "right"; }
  SECTION("another user") { requested.user = "root"; }
  SECTION("another address") { requested.address = "10.20.1.12"; }
  SECTION("ten minutes") { b.now += 10 * kMinute; }
  SECTION("secrets were set") { b.logins.once_more(); }
  CHECK_FALSE(b.logins.find(requested));
  CHECK(b.logins.pause(requested) == 0);
}

TEST_CASE("a person's change gives one more try, not two", "[power]") {
  Bench b;
  b.refuse_twice();
  PowerTarget requested = b.target;
  SECTION("the same secret was set again") { b.logins.once_more(); }
  SECTION("another password") { requested.password = "wrong, too"; }
  SECTION("another one was set") {
    b.logins.once_more();
    requested.password = "wrong, too";
  }
  b.logins.failed(requested);
  CHECK(b.logins.find(requested));
}

TEST_CASE("what a BMC took a moment ago it does not refuse for good", "[power]") {
  Bench b;
  b.logins.let_in(b.target);
  CHECK(b.logins.took(b.target));
  DurationMs since = 9 * kMinute;
  Code code = Code::unavailable;
  SECTION("a moment") {}
  SECTION("longer ago") {
    since = 10 * kMinute;
    code = Code::denied;
  }
  b.now += since;
  b.logins.failed(b.target);
  CHECK_FALSE(b.logins.took(b.target));
  b.now += b.logins.pause(b.target);
  b.logins.failed(b.target);
  REQUIRE(b.logins.find(b.target));
  CHECK(b.logins.find(b.target)->code == code);
  CHECK_FALSE(b.logins.took(b.with("another")));
  // Still refused ten minutes later, when nothing let it in meanwhile: the password was changed.
  b.now += 10 * kMinute;
  CHECK_FALSE(b.logins.find(b.target));
  b.refuse_twice();
  CHECK(b.logins.find(b.target)->code == Code::denied);
}

TEST_CASE("a driver that counts for itself says when a secret is refused", "[power]") {
  Bench b;
  b.logins.refused(b.target);
  REQUIRE(b.logins.find(b.target));
  CHECK(b.logins.find(b.target)->code == Code::denied);
}

TEST_CASE("that a BMC wants a session is kept by its address", "[power]") {
  Bench b;
  CHECK_FALSE(b.logins.has_session(b.target));
  b.logins.wants_session(b.target);
  CHECK(b.logins.has_session(b.with("another")));
}

TEST_CASE("of one login the first failure is final for the call, and for no other", "[power][doctor]") {
  Bench b;
  CHECK_FALSE(b.logins.rejected(b.target));
  b.target.one_login = true;
  CHECK(b.logins.failed_login(b.target).error().code == Code::denied);
  CHECK(b.logins.rejected(b.target));
  CHECK_FALSE(b.logins.rejected(b.with("another")));
  CHECK_FALSE(b.logins.find(b.target));
  b.logins.let_in(b.target);
  CHECK_FALSE(b.logins.rejected(b.target));
  b.logins.failed(b.target);
  b.now += 10 * kMinute;
  CHECK_FALSE(b.logins.rejected(b.target));
}
