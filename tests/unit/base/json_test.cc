// Json against nlohmann::json, of which it is a subset: the same text, the same values, the same errors. The
// one test that includes nlohmann's header (tests/tidy_test.cc).
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "base/json_dump.h"
#include "tests/catch.h"

namespace {

using namespace muster;
using Theirs = nlohmann::json;

std::string text_of(const Json& json) { return dump_json(json); }
std::string text_of(const Theirs& json) {
  return json.dump(-1, ' ', false, Theirs::error_handler_t::replace);
}
std::string ascii_of(const Theirs& json) {
  return json.dump(-1, ' ', true, Theirs::error_handler_t::replace);
}

// What `make` returns, or throws, with one class: its text.
template <typename J, typename Make>
std::string outcome(Make make) {
  try {
    const auto made = make(std::type_identity<J>());
    return text_of(J(made));
  } catch (const typename J::exception& e) {
    return e.what();
  }
}

template <typename Make>
void same(const std::string& what, Make make) {
  CAPTURE(what);
  CHECK(outcome<Json>(make) == outcome<Theirs>(make));
}
#define SAME(...) same(#__VA_ARGS__, [&]<typename J>(std::type_identity<J>) { return __VA_ARGS__; })
#define SAME_AFTER(start, ...)                                \
  same(#__VA_ARGS__, [&]<typename J>(std::type_identity<J>) { \
    J j = start;                                              \
    __VA_ARGS__;                                              \
    return j;                                                 \
  })

using Random = std::mt19937_64;

size_t below(Random& random, size_t limit) { return random() % limit; }

std::string random_text(Random& random) {
  static const std::vector<std::string> kPieces = {"a",
                                                   "node01",
                                                   "\"",
                                                   "\\",
                                                   "/",
                                                   "\n",
                                                   "\t",
                                                   "\x01",
                                                   "\x1f",
                                                   "\x7f",
                                                   std::string(1, '\0'),
                                                   "é",
                                                   "\u2013",
                                                   "\U0001f600",
                                                   "\xff",
                                                   "\xc3",
                                                   "\xe2\x82",
                                                   "\xed\xa0\x80",
                                                   "\xf0\x9f\x98",
                                                   "\xc0\xaf",
                                                   "\xf4\x90\x80\x80",
                                                   "\xf5",
                                                   "\x80",
                                                   "\xe0\x80\x80",
                                                   "\xf0\x80\x80\x80"};
  std::string out;
  for (size_t n = below(random, 6); n > 0; --n)
    out += below(random, 4) ? kPieces[below(random, kPieces.size())]
                            : std::string(1, static_cast<char>(random()));
  return out;
}

double random_number(Random& random) {
  switch (below(random, 5)) {
    case 0:
      return std::bit_cast<double>(random());
    case 1:
      return static_cast<double>(static_cast<int64_t>(random())) / 1e6;
    case 2:
      return std::pow(10.0, static_cast<double>(below(random, 40)) - 20);
    case 3:
      return static_cast<double>(below(random, 1000));
    default:
      return static_cast<double>(below(random, 10000)) / 100;
  }
}

// The same document in both classes.
template <typename J>
J random_json(Random& random, int depth) {
  switch (below(random, depth > 0 ? 9 : 6)) {
    case 0:
      return J();
    case 1:
      return J(below(random, 2) == 0);
    case 2:
      return J(static_cast<int64_t>(random() >> below(random, 64)) * (below(random, 2) ? 1 : -1));
    case 3:
      return J(static_cast<uint64_t>(random() >> below(random, 64)));
    case 4:
      return J(random_number(random));
    case 5:
      return J(random_text(random));
    case 6: {
      J out = J::array();
      for (size_t n = below(random, 5); n > 0; --n) out.push_back(random_json<J>(random, depth - 1));
      return out;
    }
    default: {
      J out = J::object();
      for (size_t n = below(random, 5); n > 0; --n) {
        const std::string key = random_text(random);
        out[key] = random_json<J>(random, depth - 1);
      }
      return out;
    }
  }
}

struct Pair {
  Json ours;
  Theirs theirs;
};

Pair random_pair(uint64_t seed, int depth = 4) {
  Random one(seed), two(seed);
  return {random_json<Json>(one, depth), random_json<Theirs>(two, depth)};
}

TEST_CASE("random documents have the text that nlohmann gives them, and read back as the same") {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const auto [ours, theirs] = random_pair(seed);
    CAPTURE(seed);
    const std::string text = text_of(theirs);
    REQUIRE(text_of(ours) == text);
    REQUIRE(dump_ascii(ours) == ascii_of(theirs));
    REQUIRE(dump_json(ours, 2) == theirs.dump(2, ' ', false, Theirs::error_handler_t::replace));
    REQUIRE(ours.dump(0) == theirs.dump(0, ' ', false, Theirs::error_handler_t::replace));
    const auto again = parse_json(text);
    REQUIRE(again.ok());
    REQUIRE(text_of(*again) == text_of(Theirs::parse(text)));
    const Json copy = ours;
    REQUIRE((copy == ours) == (theirs == Theirs(theirs)));  // a document with NaN is not equal to itself
  }
}

TEST_CASE("random values compare as those of nlohmann do") {
  std::vector<Pair> values;
  for (uint64_t seed = 0; seed < 120; ++seed) values.push_back(random_pair(seed, 1));
  for (const auto number : {0.0, 1.0, -1.0, 1.5, 9007199254740993.0, 1e19, std::nan("")})
    values.push_back({number, number});
  for (const int64_t number : {int64_t{0}, int64_t{1}, int64_t{-1}, std::numeric_limits<int64_t>::min()})
    values.push_back({number, number});
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, std::numeric_limits<uint64_t>::max()})
    values.push_back({number, number});
  values.push_back({true, true});
  for (const Pair& a : values)
    for (const Pair& b : values) {
      CAPTURE(text_of(a.ours), text_of(b.ours));
      REQUIRE((a.ours == b.ours) == (a.theirs == b.theirs));
      REQUIRE((a.ours < b.ours) == (a.theirs < b.theirs));
    }
  CHECK(Json(1) == Json(1.0));
  CHECK(Json(1) == 1.0);
  CHECK(Json(1u) == 1);
  CHECK(Json(true) != 1);
  CHECK(Json("a") == "a");
  CHECK(Json("a") == std::string("a"));
  CHECK(Json() == nullptr);
  CHECK(Json(0) != nullptr);
  CHECK(Json("0") != 0);
}

TEST_CASE("text that is mutilated is rejected as nlohmann rejects it") {
  Random random(1);
  size_t rejected = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::string text = text_of(random_pair(seed).theirs);
    for (size_t n = 1 + below(random, 2); n > 0; --n) {
      const size_t at = below(random, text.size());
      static constexpr std::string_view kOdd = "{}[]\",:\\0123456789.eE+-tfnu \n\x01\xff";
      if (below(random, 2))
        text[at] = kOdd[below(random, kOdd.size())];
      else
        text.erase(at, 1);
      if (text.empty()) text = " ";
    }
    CAPTURE(text);
    const auto ours = parse_json(text);
    try {
      const Theirs theirs = Theirs::parse(text);
      REQUIRE(ours.ok());
      REQUIRE(text_of(*ours) == text_of(theirs));
    } catch (const Theirs::exception& e) {
      ++rejected;
      REQUIRE_FALSE(ours.ok());
      REQUIRE(ours.error().code == Code::invalid);
      REQUIRE(ours.error().message == std::string("not JSON: ") + e.what());
    }
  }
  CHECK(rejected > 1000);
}

TEST_CASE("numbers at their limits, and texts that are easily misread, are read as nlohmann reads them") {
  for (const char* text : {"0",
                           "-0",
                           "-0.0",
                           "1.0",
                           "1e-07",
                           "1E400",
                           "-1e999",
                           "1e22",
                           "123456789012345678",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "0.1",
                           "5e-324",
                           "1.7976931348623157e308",
                           "01",
                           "+1",
                           "1.",
                           ".5",
                           "NaN",
                           "Infinity",
                           "",
                           " ",
                           "null",
                           "nul",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\":1,\"a\":[2]}",
                           "{\"a\":{},\"a\":2}",
                           "[1] x",
                           "\"\\ud83d\\ude00\"",
                           "\"\\ud83d\"",
                           "\"\\u0000\"",
                           "\"\xff\"",
                           "\xef\xbb\xbf[1]",
                           "// c\n1",
                           "{\"\":{\"\":1}}"}) {
    CAPTURE(text);
    same("", [&]<typename J>(std::type_identity<J>) {
      if constexpr (std::is_same_v<J, Json>) {
        const auto parsed = parse_json(text);
        return parsed.ok() ? *parsed : Json(parsed.error().message);
      } else {
        try {
          return Theirs::parse(text);
        } catch (const Theirs::exception& e) {
          return Theirs(std::string("not JSON: ") + e.what());
        }
      }
    });
  }
  CHECK(text_of(Json{std::nan(""), INFINITY, -INFINITY}) == "[null,null,null]");
}

TEST_CASE("a number with a point that an integer cannot hold becomes the nearest") {
  CHECK(Json(1e300).get<int>() == std::numeric_limits<int>::max());
  CHECK(Json(-1e300).get<int>() == std::numeric_limits<int>::min());
  CHECK(Json(2147483648.0).get<int>() == std::numeric_limits<int>::max());
  CHECK(Json(1e300).get<int64_t>() == std::numeric_limits<int64_t>::max());
  CHECK(Json(-1e300).get<int64_t>() == std::numeric_limits<int64_t>::min());
  CHECK(Json(1e300).get<uint64_t>() == std::numeric_limits<uint64_t>::max());
  CHECK(Json(-0.5).get<uint64_t>() == 0);
  CHECK(Json(-1e300).get<uint16_t>() == 0);
  CHECK(Json(INFINITY).get<uint8_t>() == 255);
  CHECK(Json(std::nan("")).get<int64_t>() == 0);
  CHECK(Json(-7.9).get<int>() == -7);
}

TEST_CASE("JSON that is nested more than 100 levels deep is rejected") {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  CHECK(parse_json(deep).ok());
  CHECK(parse_json("[" + deep + "]").error().code == Code::invalid);
  CHECK_THROWS_AS(Json::parse("[" + deep + "]"), Json::exception);
}

TEST_CASE("braced lists become objects and arrays by nlohmann's rules") {
  const std::string name = "name";
  const std::string_view view = "view";
  const std::vector<std::string> words = {"a", "b"};
  SAME(J{});
  SAME(J{{}});
  SAME(J{1});
  SAME(J{"a"});
  SAME(J{"a", "b"});
  SAME(J{"a", 1});
  SAME(J{{"a", 1}});
  SAME(J{{"a", "b"}});
  SAME(J{{"a", "b"}, {"c", "d"}});
  SAME(J{{"a", 1}, {"b", {1, 2}}});
  SAME(J{{"a", 1}, {"b", {"x", 2}}});
  SAME(J{{"a", 1}, {"b", {{"x", 2}}}});
  SAME(J{{"a", 1}, {2, 1}});
  SAME(J{{"a", 1}, {"a", 2}});
  SAME(J{{"a", {}}, {"b", nullptr}});
  SAME(J{{{"a", 1}}, {{"b", 2}}});
  SAME(J({{"a", 1}}));
  SAME(J({"a", "b"}));
  SAME(J(J{1}));
  SAME(J{J{1}});
  SAME(J{J("a")});
  SAME(J{{"a", J{{"b", 1}}}});
  SAME(J{{name, view}, {std::string("moved"), words}, {"empty", J::object()}});
  SAME(J{true, 1, 1u, 1.5, 1.5f, 'c', int64_t{-1}, uint64_t{1} << 63, uint8_t{7}, nullptr});
  SAME(J{std::map<std::string, int>{{"b", 1}, {"a", 2}}, std::set<std::string>{"y", "x"}});
  SAME(J(std::vector<std::vector<double>>{{1, 2}, {}}));
  SAME(J(std::vector<bool>{true, false}));
  SAME(J(std::map<std::string, std::vector<std::string>>{{"a", {"b"}}}));
  SAME(J(std::vector<J>{1, "a"}));
  SAME(J(std::map<std::string, J>{{"a", 1}}));
  SAME(J::array());
  SAME(J::array({}));
  SAME(J::array({1, "a"}));
  SAME(J::array({"a", "b"}));
  SAME(J::array({{"a", "b"}}));
  SAME(J::array({{{"a", "b"}}}));
  SAME(J::array({J{{"a", 1}}}));
  SAME(J::object());
  SAME(J::object({{"a", 1}}));
  SAME(J::object({1, 2}));
}

TEST_CASE("changes have the effect that they have in nlohmann") {
  SAME_AFTER(J(), j["a"]["b"] = 1);
  SAME_AFTER(J(), j["a"][2] = "x");
  SAME_AFTER(J(), j[0] = 1);
  SAME_AFTER(J(1), j["a"] = 1);
  SAME_AFTER(J("x"), j[0] = 1);
  SAME_AFTER(J(), j.push_back(1));
  SAME_AFTER(J(), j.push_back({}));
  SAME_AFTER(J(), j.push_back({"a", 1}));
  SAME_AFTER(J(), j.push_back({{"a", 1}}));
  SAME_AFTER(J(), j.push_back(J{1, 2}));
  SAME_AFTER(J::object(), j.push_back({"a", 1}));
  SAME_AFTER(J(1), j.push_back(1));
  SAME_AFTER(J(), j.emplace_back("x"));
  SAME_AFTER(J{1}, j.emplace_back(J{2}));
  SAME_AFTER(J(), j.emplace_back());
  SAME_AFTER(J(), j.emplace("a", 1));
  SAME_AFTER((J{{"a", 2}}), j.emplace("a", 1));
  SAME_AFTER((J{{"a", 1}, {"b", 2}}), j.update({{"b", 3}, {"c", J{1}}}));
  SAME_AFTER(J(), j.update(J{{"b", 3}}));
  SAME_AFTER(J{1}, j.update(J{{"b", 3}}));
  SAME_AFTER((J{{"a", 1}}), j.update(J(3)));
  SAME_AFTER((J{{"a", {{"b", 1}, {"c", 2}}}, {"d", 1}}),
             j.merge_patch({{"a", {{"b", nullptr}}}, {"d", {1}}}));
  SAME_AFTER((J{{"a", 1}, {"b", 2}}), j["n"] = j.erase("a"));
  SAME_AFTER((J{{"a", 1}, {"b", 2}}), j.erase(j.find("a")));
  SAME_AFTER((J{1, 2, 3}), j.erase(++j.begin()));
  SAME_AFTER(J{1}, j.erase("a"));
  SAME_AFTER((J{{"a", {{"b", 1}}}}), j = j["a"]);
  SAME_AFTER((J{{"a", {{"b", 1}}}}), j = std::move(j["a"]));
  SAME_AFTER((J{{"a", 1}}), j["b"] = j);
  SAME_AFTER((J{1, 2, 3}), j.push_back(j[0]));
  SAME_AFTER((J{1, 2, 3}), j.front() = j.back());
  SAME_AFTER(J{1}, j = {});
  SAME_AFTER(J{1}, (j = {{"a", 1}}));
  SAME_AFTER(J{1}, (j = "x"));
  SAME_AFTER((J{{"a", 1}, {"b", J{2}}}), for (auto& [key, value] : j.items()) value = key);
  SAME_AFTER((J{"x", "y"}), for (auto& [key, value] : j.items()) value = key);
  SAME_AFTER((J{1, 2}), for (auto& one : j) one = J{one});
  SAME_AFTER(J(1), for (auto& one : j) one = 2);
}

TEST_CASE("what is read has the value and the error that it has in nlohmann") {
  for (const std::string text : {"null", "true", "7", "-7", "7.9", "18446744073709551615", "\"x\"", "[1,2]",
                                 "[\"a\",\"b\"]", "{\"a\":1}", "[]", "{}"}) {
    CAPTURE(text);
    const auto as = [&]<typename T>(std::type_identity<T>) {
      same(__PRETTY_FUNCTION__,
           [&]<typename J>(std::type_identity<J>) { return J(J::parse(text).template get<T>()); });
    };
    as(std::type_identity<bool>());
    as(std::type_identity<int>());
    as(std::type_identity<unsigned>());
    as(std::type_identity<int64_t>());
    as(std::type_identity<uint64_t>());
    as(std::type_identity<long long>());
    if (text.size() < 8) as(std::type_identity<uint8_t>());
    as(std::type_identity<double>());
    as(std::type_identity<float>());
    as(std::type_identity<std::string>());
    as(std::type_identity<std::vector<int>>());
    as(std::type_identity<std::vector<std::string>>());
    as(std::type_identity<std::set<std::string>>());
    as(std::type_identity<std::map<std::string, int>>());
    SAME(J(J::parse(text).size()));
    SAME(J(J::parse(text).empty()));
    SAME(J(J::parse(text).type_name()));
    SAME(J(J::parse(text).at("a")));
    SAME(J(J::parse(text).at("absent")));
    SAME(J(J::parse(text).at(0)));
    SAME(J(J::parse(text).at(9)));
    SAME(J(J::parse(text).contains("a")));
    SAME(J(J::parse(text).count("a")));
    SAME(J(J::parse(text).value("a", 2)));
    SAME(J(J::parse(text).value("a", "text")));
    SAME(J(J::parse(text).value("absent", "text")));
    SAME(J(J::parse(text).value("absent", J{1})));
    SAME(J(J::parse(text).template get_ref<const std::string&>().size()));
  }
  const Json json{{"a", 1}};
  CHECK_THROWS_AS(json["absent"], Json::exception);
  CHECK_THROWS_AS(Json::array()[0].front(), Json::exception);
}

TEST_CASE("pointers lead where they lead in nlohmann") {
  for (const char* path : {"", "/a", "/a/b", "/a/b/1", "/a/b/9", "/a/b/01", "/a/x", "/s/t", "/~1/~0"}) {
    CAPTURE(path);
    const auto with = [&](auto use) {
      same("", [&]<typename J>(std::type_identity<J>) {
        J j{{"a", {{"b", {1, 2, "x"}}}}, {"s", "text"}, {"/", {{"~", 5}}}};
        return use(j, typename J::json_pointer(path));
      });
    };
    with([](auto& j, const auto& at) { return j.contains(at); });
    with([](auto& j, const auto& at) { return j.contains(at) ? j.at(at).size() : 99; });
    const bool odd = std::string_view(path) == "/a/b/01";  // an error of its own in nlohmann
    if (!odd) with([](auto& j, const auto& at) { return j.value(at, std::decay_t<decltype(j)>(7)); });
  }
  Json made;
  made[Json::json_pointer("/a/b")] = 1;
  CHECK(text_of(made) == R"({"a":{"b":1}})");
  CHECK_THROWS_AS(made.at(Json::json_pointer("/a/c")), Json::exception);
  CHECK_THROWS_AS(Json::json_pointer("a"), Json::exception);
}

TEST_CASE("a member is left out at its place only") {
  const auto without = [](std::string_view text) {
    return text_of(parse_json_without(text, "p", "k").value());
  };
  CHECK(without(R"({"a":{"k":1},"k":2,"p":{"k":[{"k":3}],"l":4},"q":{"k":5}})") ==
        R"({"a":{"k":1},"k":2,"p":{"l":4},"q":{"k":5}})");
  CHECK(without(R"({"p":[{"k":1}]})") == R"({"p":[{"k":1}]})");
  CHECK(without(R"({"p":{"l":{"k":1},"k":{"p":{"k":1}}}})") == R"({"p":{"l":{"k":1}}})");
  CHECK(without(R"([{"p":{"k":1}}])") == R"([{"p":{"k":1}}])");
  CHECK_FALSE(parse_json_without("{\"p\":{\"k\":x}}", "p", "k").ok());
}

TEST_CASE("a reader names what is wrong, and what it reads has the type of the member") {
  const Json json{{"text", nullptr}, {"list", {1, 2}}, {"flag", true}, {"more", 1}};
  JsonReader r(json, "x");
  std::string text = "before";
  std::vector<int> list;
  int flag = 0, limit = 0;
  std::optional<int> none = 5;
  r.get("text", text);
  r.get("list", list);
  r.get("flag", flag);
  r.get("absent", text);
  r.get_or("limit", limit, 4);
  CHECK(r.finish().error().message == "x.text: wrong type (null); x.absent: missing; x.more: unknown key");
  CHECK(text == "before");
  CHECK(list == std::vector<int>{1, 2});
  CHECK(flag == 1);
  CHECK(limit == 4);
  json.at("text").get_to(none);
  CHECK_FALSE(none);
  json.at("more").get_to(none);
  CHECK(none == 1);
}

TEST_CASE("a moved value is null, and assigning a value to itself keeps it") {
  Json from{{"a", 1}};
  const Json* before = &from["a"];
  Json to = std::move(from);
  CHECK(from.is_null());
  CHECK(&to["a"] == before);
  Json& alias = to;
  to = alias;
  to = std::move(alias);
  CHECK(to == Json{{"a", 1}});
  CHECK(sizeof(Json) == 16);
}

}  // namespace
