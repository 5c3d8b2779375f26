#include "sys/account_files.h"

#include <stdlib.h>

#include "tests/catch.h"

namespace muster {
namespace {

class Accounts {
 public:
  Accounts(const std::string& passwd, const std::string& group) {
    char pattern[] = "/tmp/muster-accounts.XXXXXX";
    path_ = ::mkdtemp(pattern);
    const Files files(path_);
    REQUIRE(files.make_directories("/etc").ok());
    REQUIRE(files.write("/etc/passwd", passwd).ok());
    REQUIRE(files.write("/etc/group", group).ok());
  }
  ~Accounts() { (void)make_process()->run({.argv = {"rm", "-rf", "--", path_}}); }
  Files files() const { return Files(path_); }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("account files: empty fields stay, lines that are none are left out", "[sys][accounts]") {
  const Accounts at(
      "root:x:0:0:root:/root:/bin/bash\n"
      "+::::::\n"
      ":x:7:7::/:/bin/sh\n"
      "anna::1000:1000::/home/anna:\n"
      "short:x:1001:1001\n"
      "cut:x:1002\n"
      "negative:x:-1:99999999999::/:/bin/sh\n",
      "root:x:0:\nops:x:27:anna, short,,\ncut:x\n:x:5:anna\n");
  const auto users = users_of(at.files());
  REQUIRE(users.size() == 5);
  CHECK(users[1].name == "+");
  CHECK(users[1].uid == -1);
  CHECK(users[2].name == "anna");
  CHECK(users[2].home == "/home/anna");
  CHECK(users[2].shell.empty());
  CHECK(users[3].gid == 1001);
  CHECK(users[3].home.empty());
  CHECK(users[4].uid == -1);
  CHECK(users[4].gid == -1);
  CHECK(user_of_id(at.files(), UINT32_MAX).empty());  // an id that is none is not this one
  const auto groups = groups_of(at.files());
  REQUIRE(groups.size() == 2);
  CHECK(groups[1].gid == 27);
  CHECK(groups[1].members == std::vector<std::string>{"anna", "short"});
}

TEST_CASE("account files: by name, the first line counts", "[sys][accounts]") {
  const Accounts at("anna:x:1000:1000::/home/anna:/bin/sh\nanna:x:0:0::/root:/bin/sh\n", "anna:x:1000:\n");
  CHECK(find_user(at.files(), "anna").value().uid == 1000);
  CHECK_FALSE(find_user(at.files(), "ann").has_value());
  CHECK(user_of_id(at.files(), 0) == "anna");
  CHECK(user_of_id(at.files(), 1).empty());
  CHECK(find_group(at.files(), "anna").value().gid == 1000);
  CHECK_FALSE(find_group(at.files(), "").has_value());
  const Files none("/nonexistent");
  CHECK(users_of(none).empty());
  CHECK(groups_of(none).empty());
}

TEST_CASE("account files: an id is decimal and has at most 32 bits", "[sys][accounts]") {
  CHECK(account_id("0") == 0);
  CHECK(account_id("4294967295") == 4294967295);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "4294967296", "anna"})
    CHECK(account_id(text) == -1);
}

}  // namespace muster
