#include "base/secrets.h"

#include "base/digest.h"
#include "base/utf8.h"
#include "tests/catch.h"

namespace muster {
namespace {

SecretMask mask_of(const std::string& value) { return SecretMask(std::vector<std::string>{value}); }

}  // namespace

TEST_CASE("a reference to a secret is a whole text, at any depth, and never a key", "[secrets]") {
  CHECK(refers_to_secret("secret:app"));
  CHECK(refers_to_secret({{"a", Json::array({1, {{"b", "secret:app"}}})}}));
  CHECK_FALSE(refers_to_secret("password=secret:app"));
  CHECK_FALSE(refers_to_secret({{"secret:app", 1}}));
  CHECK_FALSE(refers_to_secret(nullptr));
}

TEST_CASE("the secrets of an order are what its references were replaced by", "[secrets]") {
  const Json named = {{"steps", Json::array({{{"content", "secret:one"}, {"path", "/x"}}})},
                      {"env", {{"A", "secret:two"}, {"B", "plain"}}},
                      {"again", "secret:one"}};
  Json resolved = named;
  resolved["steps"][0]["content"] = resolved["again"] = "first";
  resolved["env"]["A"] = "second";
  const std::map<std::string, std::string> both = {{"one", "first"}, {"two", "second"}};
  CHECK(secrets_of(named, resolved) == both);
  CHECK(secrets_of({{"a", "plain"}}, {{"a", "plain"}}).empty());
  CHECK(secrets_of(Json::array({"secret:one"}), Json::array()).empty());
}

TEST_CASE("a mask hides values, and nothing where there are none", "[secrets]") {
  CHECK(mask_of("hunter2!").text("login hunter2! failed: hunter2!hunter2!") == "login *** failed: ***");
  CHECK(mask_of("hunter2!").text("login failed") == "login failed");
  CHECK(mask_of("hunter2!\n").text("is hunter2!") == "is ***");
  CHECK(mask_of("").text("as it is") == "as it is");
  CHECK(SecretMask().text("as it is") == "as it is");
  // Values that overlap leave no part of either.
  CHECK(SecretMask(std::vector<std::string>{"abcdef", "defghi"}).text("abcdefghi.") == "***.");
}

TEST_CASE("a mask hides the lines of a value, its base64, and both as JSON has them", "[secrets]") {
  const std::string pem = "-----BEGIN KEY-----\nAAAAB3NzaC1yc2E\nQ==\n-----END KEY-----\n";
  CHECK(mask_of(pem).text("line 2: '' -> 'AAAAB3NzaC1yc2E'") == "line 2: '' -> '***'");
  CHECK(mask_of(pem).text("Q==") == "Q==");  // short lines are in too many texts
  CHECK(mask_of("user:pass").text("auth " + to_base64("user:pass")) == "auth ***");
  CHECK(mask_of("pass\n").text(to_base64("pass")) == "***");
  const std::string value = "a-long-password";
  for (const char* before : {"", "u", "us", "use"})
    for (const char* behind : {"", "\n", "\n\n", "end"}) {
      const std::string shown = mask_of(value).text(to_base64(before + value + behind));
      INFO(shown);
      CHECK(shown.find("***") != std::string::npos);
      CHECK(shown.size() <=
            14);  // of 20 to 28, what encodes the rest, and up to two bytes of the value with it
    }
  CHECK(mask_of("a\"b\\c").text(R"({"key":"a\"b\\c"})") == R"({"key":"***"})");
}

TEST_CASE("what a shortened text has left of a value is hidden", "[secrets]") {
  const std::string value = "0123456789abcdef";
  const std::string output = "the program printed " + value + " and ended";
  for (size_t most = 0; most < output.size(); ++most) {
    const std::string shown = mask_of(value).text(end_of_output(output, most));
    INFO(shown);
    for (size_t from = 0; from + 4 <= value.size(); ++from)
      CHECK(shown.find(value.substr(from, 4)) == std::string::npos);
  }
  CHECK(mask_of(value).text("begins with 01234567...") == "begins with ***...");
}

TEST_CASE("a mask hides values in all texts and keys of a JSON value, and keeps the rest", "[secrets]") {
  const Json said = {{"list", Json::array({"x hunter2! y", 7, nullptr})}, {"hunter2!", true}};
  const Json hidden = {{"list", Json::array({"x *** y", 7, nullptr})}, {"***", true}};
  CHECK(mask_of("hunter2!").json(said) == hidden);
  CHECK(SecretMask().json(said) == said);
}

TEST_CASE("a mask finds values, and the forms that it hides", "[secrets]") {
  CHECK(mask_of("hunter2!").finds_in("a=hunter2!"));
  CHECK(mask_of("hunter2!").finds_in(to_base64("hunter2!")));
  CHECK_FALSE(mask_of("hunter2!").finds_in("a=hunter3!"));
  CHECK_FALSE(SecretMask().finds_in("anything"));
}

TEST_CASE("a text has a value only as a whole, not with a line that both have", "[secrets]") {
  const std::string both = "-----BEGIN CERTIFICATE-----\nMIIB\n-----BEGIN PRIVATE KEY-----\nMIIC\n";
  const SecretMask secrets = mask_of(both);
  CHECK(secrets.finds_value_in("# ours\n" + both));
  CHECK(secrets.finds_value_in("# ours\n" + both.substr(0, both.size() - 1)));
  CHECK(secrets.finds_value_in(R"({"pem": "-----BEGIN CERTIFICATE-----\nMIIB\n)"
                               R"(-----BEGIN PRIVATE KEY-----\nMIIC\n"})"));
  CHECK_FALSE(secrets.finds_value_in("-----BEGIN CERTIFICATE-----\nMIID\n"));
  CHECK(secrets.finds_in("-----BEGIN CERTIFICATE-----\nMIID\n"));
  CHECK_FALSE(SecretMask().finds_value_in("anything"));
}

}  // namespace muster
