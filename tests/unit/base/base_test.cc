#include "base/digest.h"
#include "base/disk_source.h"
#include "base/json.h"
#include "base/json_dump.h"
#include "base/lower.h"
#include "base/split.h"
#include "base/time.h"
#include "base/utf8.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("a digest's short form is its first twelve digits, with and without the algorithm", "[base]") {
  CHECK(short_digest("sha256:ba7816bf8f01cfea4141") == "ba7816bf8f01");
  CHECK(short_digest("ba7816bf8f01cfea4141") == "ba7816bf8f01");
  CHECK(short_digest("sha256:ba78") == "ba78");
  CHECK(short_digest("").empty());
}

TEST_CASE("sha256 matches the standard's example", "[base]") {
  CHECK(sha256("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("base64 goes both ways for every length of padding", "[base]") {
  for (const std::string text : {"", "a", "ab", "abc", "abcd"})
    CHECK(from_base64(to_base64(text)).value() == text);
  CHECK_FALSE(from_base64("abc").ok());
  CHECK_FALSE(from_base64("ab!=").ok());
}

TEST_CASE("a JSON reader names every problem at once", "[base]") {
  const Json j = {{"name", 3}, {"extra", true}};
  JsonReader r(j, "plan");
  std::string name;
  int limit = 0;
  r.get("name", name);
  r.get("limit", limit);
  const auto status = r.finish();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message ==
        "plan.name: wrong type (number); plan.limit: missing; plan.extra: unknown key");
}

TEST_CASE("every error code has a word and comes back from it", "[base]") {
  for (int i = 0; i <= static_cast<int>(Code::cancelled); ++i)
    CHECK(code_from_string(to_string(static_cast<Code>(i))) == static_cast<Code>(i));
}

TEST_CASE("JSON that is nested without end is refused before anything walks it", "[base]") {
  const std::string deep(100'000, '[');
  CHECK(parse_json(deep + std::string(100'000, ']')).error().code == Code::invalid);
  CHECK(parse_json("{\"a\":" + deep).error().code == Code::invalid);
  std::string words = "[";
  for (int i = 0; i < 500; ++i)
    words += R"("[[[{{{\"[[", [], {}, )";  // wide, and brackets in texts: neither is depth
  CHECK(parse_json(words + "1]").ok());
}

TEST_CASE("writing JSON never throws, whatever bytes a text holds", "[base]") {
  const Json cut = {{"text", "caf\xc3"}, {"list", {1, true, nullptr}}};
  CHECK(dump_json(cut) == "{\"list\":[1,true,null],\"text\":\"caf\xef\xbf\xbd\"}");
  CHECK(dump_json(cut, 1) ==
        "{\n \"list\": [\n  1,\n  true,\n  null\n ],\n \"text\": \"caf\xef\xbf\xbd\"\n}");
  CHECK(dump_ascii(cut) == R"({"list":[1,true,null],"text":"caf\ufffd"})");
  CHECK(dump_json(Json("é")) == "\"é\"");  // what is right stays as it is: digests are made of it
}

TEST_CASE("text is cut between characters", "[base]") {
  const std::string text = "aé€😀";  // of 1, 2, 3 and 4 bytes
  CHECK(first_bytes(text, 10) == text);
  CHECK(last_bytes(text, 10) == text);
  for (const auto& [most, begin] :
       std::vector<std::pair<size_t, std::string>>{{9, "aé€"}, {6, "aé€"}, {5, "aé"}, {2, "a"}, {0, ""}})
    CHECK(first_bytes(text, most) == begin);
  for (const auto& [most, end] :
       std::vector<std::pair<size_t, std::string>>{{9, "é€😀"}, {8, "€😀"}, {4, "😀"}, {3, ""}, {0, ""}})
    CHECK(last_bytes(text, most) == end);
  const std::string none(20, '\x80');  // no UTF-8: cut all the same
  CHECK(first_bytes(none, 10).size() == 10);
  CHECK(last_bytes(none, 10).size() == 7);
  // Of what a program printed the reader sees that its beginning is missing.
  CHECK(end_of_output("abcdef", 3) == "...def");
  CHECK(end_of_output("def", 3) == "def");
}

TEST_CASE("a text in pieces has no empty ones", "[base]") {
  using Pieces = std::vector<std::string>;
  CHECK(split("a,b,c", ',') == Pieces{"a", "b", "c"});
  CHECK(split(",,a b,,c,", ',') == Pieces{"a b", "c"});
  CHECK(split("one", ',') == Pieces{"one"});
  CHECK(split("", ',').empty());
  CHECK(split(",,", ',').empty());
  CHECK(split("\ta b\t\tc\n", " \t\n") == Pieces{"a", "b", "c"});
}

TEST_CASE("lines, words and blanks of a text", "[base]") {
  using Pieces = std::vector<std::string>;
  CHECK(split_lines("a\n\nb\r\n") == Pieces{"a", "", "b\r"});
  CHECK(split_lines("a\nb") == Pieces{"a", "b"});
  CHECK(split_lines("\n") == Pieces{""});
  CHECK(split_lines("").empty());
  CHECK(split_lines("a\r\nb", "\n\r") == Pieces{"a", "", "b"});
  CHECK(split_words(" a \t\r\nb\v\fc") == Pieces{"a", "b", "c"});
  CHECK(split_words("a\rb c ", " \t") == Pieces{"a\rb", "c"});
  CHECK(split_words(" \n").empty());
  CHECK(trim("\t a b\r\n") == "a b");
  CHECK(trim(" \t") == "");
  for (const char* nothing : {"", " \t\r", "# a", "  #"}) CHECK(says_nothing(nothing));
  for (const char* something : {"a", " - # a"}) CHECK_FALSE(says_nothing(something));
}

TEST_CASE("a text of hardware has no padding and only printable characters", "[base]") {
  CHECK(hardware_text("  S4 EV\n  ") == "S4 EV");
  CHECK(hardware_text(std::string("S1\0\0", 4)) == "S1");
  CHECK(hardware_text("a\tb\x80\x7f") == "a?b??");
  CHECK(hardware_text("   ") == "");
}

TEST_CASE("a text in lower case keeps all but the letters of ASCII", "[base]") {
  CHECK(lower("AZaz 09-_:ÄÉ") == "azaz 09-_:ÄÉ");
  CHECK(lower("").empty());
}
