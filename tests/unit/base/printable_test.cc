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

TEST_CASE("letters, signs and blanks of every language stay in a text of others", "[base]") {
  for (const char* text :
       {"node 01: ~ok~", "\xc2\xa0\xc3\xbc", "\xe2\x96\x88\xe2\x80\xaf", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"})
    CHECK(printable(text) == text);
}
