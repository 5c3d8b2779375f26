// Who is named when a group cannot go on, from what its members say of one another.
#include "kernels/together/culprit.h"

#include "tests/catch.h"

using namespace muster::together;

namespace {

Statement waits(int rank) { return {false, {{rank, Loss::silent}}}; }
Statement expired(int rank, Loss kind = Loss::silent) { return {true, {{rank, kind}}}; }

}  // namespace

TEST_CASE("culprit: of a chain of members that wait the one that says nothing is named") {
  Evidence seen(0, 4);
  seen.said[0] = expired(1);
  CHECK(culprits(seen) == LossReports{{1, Loss::silent}});  // nothing else is known yet
  CHECK_FALSE(settled(seen, culprits(seen)));               // 2 and 3 may still speak
  seen.said[1] = waits(2);
  CHECK(culprits(seen) == LossReports{{2, Loss::silent}});
  seen.said[2] = waits(3);
  CHECK(culprits(seen) == LossReports{{3, Loss::silent}});
  CHECK(settled(seen, culprits(seen)));
}

TEST_CASE("culprit: no member names the one that a member with time left waits for") {
  Evidence seen(0, 4);
  seen.said[0] = expired(3);
  seen.said[1] = waits(2);  // 2 computes, and 1 has waited a moment only
  CHECK(culprits(seen) == LossReports{{3, Loss::silent}});
}

TEST_CASE("culprit: of several silent members one may still report that it waits for another") {
  Evidence seen(1, 4);
  seen.said[0] = expired(3);
  seen.said[1] = expired(2);
  CHECK(culprits(seen) == LossReports{{2, Loss::silent}, {3, Loss::silent}});
  CHECK_FALSE(settled(seen, culprits(seen)));
  seen.said[3] = expired(2);
  CHECK(culprits(seen) == LossReports{{2, Loss::silent}});
  CHECK(settled(seen, culprits(seen)));
}

TEST_CASE("culprit: a death that was seen goes before silence, and all the dead are named") {
  Evidence seen(1, 5);
  seen.said[0] = expired(2);
  seen.said[1] = expired(2);
  seen.said[2] = Statement{false, {{4, Loss::died}}};
  CHECK(culprits(seen) == LossReports{{4, Loss::died}});
  CHECK_FALSE(settled(seen, culprits(seen)));  // 3
  seen.gone[3] = true;
  CHECK(culprits(seen) == LossReports{{3, Loss::died}, {4, Loss::died}});
  CHECK(settled(seen, culprits(seen)));
}

TEST_CASE("culprit: who has spoken, or said that it leaves, is not dead when its connection ends") {
  Evidence seen(0, 3);
  seen.gone[1] = seen.gone[2] = true;
  seen.said[1] = expired(2);
  seen.left[2] = true;
  seen.said[0] = waits(1);
  CHECK(culprits(seen) == LossReports{{2, Loss::silent}});
  seen.said[0] = Statement{false, {{2, Loss::left}}};
  CHECK(culprits(seen) == LossReports{{2, Loss::left}});
}

TEST_CASE("culprit: both ends of a broken connection are named when both live") {
  Evidence seen(2, 3);
  seen.said[0] = Statement{false, {{1, Loss::died}}};
  seen.said[1] = Statement{false, {{0, Loss::died}}};
  seen.said[2] = waits(0);
  CHECK(culprits(seen) == LossReports{{0, Loss::died}, {1, Loss::died}});
}

TEST_CASE("culprit: members that wait for each other name the one that waited longest for") {
  Evidence seen(0, 2);
  seen.said[0] = waits(1);
  seen.said[1] = expired(0);
  CHECK(culprits(seen) == LossReports{{0, Loss::silent}});
}

TEST_CASE("culprit: who never came is named, and not who could not reach it") {
  Evidence seen(0, 4);
  for (const size_t r : {0U, 1U}) seen.said[r] = Statement{true, {{2, Loss::absent}, {3, Loss::refused}}};
  seen.said[2] = expired(3, Loss::absent);  // only late
  CHECK(culprits(seen) == LossReports{{3, Loss::refused}});
}

TEST_CASE("culprit: statements survive the way, and what is none is refused") {
  const Statement one{true, {{7, Loss::refused}, {300, Loss::died}}};
  const auto back = decode_statement(encode(one), 301);
  REQUIRE(back);
  CHECK(back->expired);
  CHECK(back->reported == one.reported);
  CHECK_FALSE(decode_statement(encode(one), 300));  // of a rank that does not exist
  CHECK_FALSE(decode_statement("abc", 301));
  CHECK_FALSE(decode_statement(std::string(8, '\xff'), 301));
  CHECK_FALSE(decode_statement(std::string("\0\0\0\0\x63\0\0\0", 8), 301));  // of an unknown kind
}
