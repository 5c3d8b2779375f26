#include "controller/trust/vault.h"

#include <sys/stat.h>

#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {
const std::string kKeyA(64, 'a'), kKeyB(64, 'b');
}

TEST_CASE("a secret opens under its name and key only", "[secret]") {
  for (const std::string& value :
       {std::string("admin:pass:word"), std::string(), std::string("\0\xff", 2), std::string(100000, 'x')}) {
    const auto sealed = seal(kKeyA, "bmc", value);
    REQUIRE(sealed.ok());
    if (value.size() > 3) CHECK(from_base64(*sealed)->find(value) == std::string::npos);
    CHECK(*unseal(kKeyA, "bmc", *sealed) == value);
    CHECK(unseal(kKeyB, "bmc", *sealed).error().code == Code::corrupt);
    CHECK(unseal(kKeyA, "bmc2", *sealed).error().code == Code::corrupt);
  }
}

TEST_CASE("every changed byte of a sealed secret is noticed", "[secret]") {
  const std::string blob = *from_base64(*seal(kKeyA, "bmc", "admin:secret"));
  for (size_t i = 0; i < blob.size(); ++i) {
    std::string changed = blob;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK(unseal(kKeyA, "bmc", to_base64(changed)).error().code == Code::corrupt);
  }
  for (size_t size : {size_t{0}, size_t{5}, size_t{27}, blob.size() - 1})
    CHECK(unseal(kKeyA, "bmc", to_base64(blob.substr(0, size))).error().code == Code::corrupt);
  CHECK(unseal(kKeyA, "bmc", "not base64!").error().code == Code::corrupt);
}

TEST_CASE("equal secrets are sealed differently", "[secret]") {
  CHECK(*seal(kKeyA, "a", "x") != *seal(kKeyA, "a", "x"));
  CHECK(seal("short", "a", "x").error().code == Code::corrupt);
  CHECK(seal(kKeyA, "", "x").error().code == Code::invalid);
}

TEST_CASE("the master key is made once and kept private", "[secret]") {
  const TempDir dir;
  const auto first = master_key(dir.path("master.key"));
  REQUIRE(first.ok());
  CHECK(first->size() == 64);
  CHECK(*master_key(dir.path("master.key")) == *first);
  struct stat info {};
  REQUIRE(::stat(dir.path("master.key").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  ::chmod(dir.path("master.key").c_str(), 0640);
  CHECK(master_key(dir.path("master.key")).error().code == Code::denied);
  ::chmod(dir.path("master.key").c_str(), 0600);
  dir.write("master.key", "abc\n");
  CHECK(master_key(dir.path("master.key")).error().code == Code::corrupt);
  CHECK(dir.read("master.key") == "abc\n");
}
