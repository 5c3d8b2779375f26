#include "base/at_most.h"

#include <vector>

#include "tests/catch.h"

using namespace muster;

TEST_CASE("turns: at most so many are under way, in their order, and the next begins when one ends",
          "[base]") {
  AtMost turns(2);
  std::vector<int> begun;
  const auto work = [&begun](int number, bool begins = true) {
    return [&begun, number, begins] {
      begun.push_back(number);
      return begins;
    };
  };
  for (int i = 1; i <= 3; ++i) turns.add(work(i));
  CHECK(begun == std::vector<int>{1, 2});
  turns.add(work(4, false));
  turns.add(work(5));
  turns.ended();
  CHECK(begun == std::vector<int>{1, 2, 3});
  turns.ended();
  CHECK(begun == std::vector<int>{1, 2, 3, 4, 5});  // 4 did nothing, and took no turn
  turns.add(work(6));
  turns.drop();
  turns.ended();
  turns.ended();
  CHECK(begun.size() == 5);
  turns.add(work(7));
  CHECK(begun.back() == 7);
}
