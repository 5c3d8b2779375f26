// Text of others, before a terminal shows it.
#include "base/printable.h"

#include "tests/catch.h"

using namespace muster;

TEST_CASE("text of others is one line that controls no terminal", "[base]") {
  CHECK(printable("a\x1b[2J\r\n\t\x7f z") == "a [2J     z");
  // C1 in UTF-8, then one of them as a single byte.
  CHECK(printable("a\xc2\x80\xc2\x9bH\xc2\x9f") == "a  H ");
  CHECK(printable("a\x9bH") == "a H");
  CHECK(printable("a\xe2\x80\xae\xe2\x81\xa6z", '?') == "a??z");
  CHECK(printable("\xff\xc3z\xe2\x82", '?') == "??z?");
  CHECK(printable(std::string_view("\0z", 2), '?') == "?z");
  CHECK(printable("").empty());
}

TEST_CASE("marks of direction and separators of lines are no part of a text of others", "[base]") {
  for (const char* mark : {"\xe2\x80\x8e", "\xe2\x80\x8f", "\xd8\x9c", "\xe2\x80\xa8", "\xe2\x80\xa9"})
    CHECK(printable(std::string("a") + mark + "z", '?') == "a?z");
}

TEST_CASE("a text of several lines keeps its line ends and tabs, and nothing else that controls", "[base]") {
  CHECK(printable_lines("a\tb\r\n\x1b[2J\xc2\x9b"
                        "c\xff\n") == "a\tb \n [2J c \n");
  CHECK(printable_lines("").empty());
}

TEST_CASE("all texts of a value become printable, with the names of its members, and no others change",
          "[base]") {
  Json value = {{"text", "a\x1b[0m"},
                {"list",
                 {"\xe2\x80\xae"
                  "b",
                  7, true, nullptr}},
                {"c\x07", {{"inner\n", "d\x9f"}}},
                {"fine", "\xc3\xbc\n"}};
  make_printable(value);
  CHECK(value == Json({{"text", "a [0m"},
                       {"list", {" b", 7, true, nullptr}},
                       {"c ", {{"inner\n", "d "}}},
                       {"fine", "\xc3\xbc\n"}}));
  Json text = "\x1b";
  make_printable(text);
  CHECK(text == " ");
}

TEST_CASE("letters, signs and blanks of every language stay in a text of others", "[base]") {
  for (const char* text :
       {"node 01: ~ok~", "\xc2\xa0\xc3\xbc", "\xe2\x96\x88\xe2\x80\xaf", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"})
    CHECK(printable(text) == text);
}
