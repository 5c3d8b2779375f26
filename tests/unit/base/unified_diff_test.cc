#include "base/unified_diff.h"

#include "tests/catch.h"

using muster::unified_diff;

TEST_CASE("equal texts have no diff", "[base]") { CHECK(unified_diff("a\nb\n", "a\nb\n", "x", "y").empty()); }

TEST_CASE("a diff shows changed lines with three lines around them", "[base]") {
  CHECK(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "old", "new") ==
        "--- old\n+++ new\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST_CASE("changes far apart are hunks of their own", "[base]") {
  std::string from, to;
  for (int i = 0; i < 40; ++i) from += std::to_string(i) + "\n";
  to = from;
  to.replace(0, 1, "zero");
  to += "end\n";
  const std::string diff = unified_diff(from, to, "a", "b");
  CHECK(diff.find("@@ -1,4 +1,4 @@\n-0\n+zero\n 1\n 2\n 3\n@@ -38,3 +38,4 @@\n 37\n 38\n 39\n+end\n") !=
        std::string::npos);
}

TEST_CASE(
    "a diff of many lines with one change, and of two texts that have nothing in common, is not a table of "
    "all pairs",
    "[base]") {
  std::string from, to, other;
  for (int i = 0; i < 30000; ++i) {
    from += std::to_string(i) + "\n";
    to += std::to_string(i == 15000 ? -1 : i) + "\n";
    other += "x" + std::to_string(i) + "\n";
  }
  CHECK(
      unified_diff(from, to, "a", "b") ==
      "--- a\n+++ b\n@@ -14998,7 +14998,7 @@\n 14997\n 14998\n 14999\n-15000\n+-1\n 15001\n 15002\n 15003\n");
  const std::string all = unified_diff(from, other, "a", "b");
  CHECK(all.starts_with("--- a\n+++ b\n@@ -1,30000 +1,30000 @@\n-0\n-1\n"));
  CHECK(all.size() > from.size() + other.size());
}
