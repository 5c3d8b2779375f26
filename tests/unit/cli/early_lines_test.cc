// What is printed before the load begins: of many hosts that are left out, and of what will not be measured.
#include "cli/early_lines.h"

#include <algorithm>

#include "base/split.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::cli;

namespace {

// All that was shown, in order.
struct Shown {
  EarlyLines early = {};
  std::vector<std::string> lines = {};

  void add(const std::vector<std::string>& more) { lines.insert(lines.end(), more.begin(), more.end()); }
  void leave_out(int hosts) {
    for (int i = 0; i < hosts; ++i) add(early.left_out("gpu" + std::to_string(i)));
  }
};

const std::vector<NotMeasured> kForeseen = {{"GPUs", {"gpu90"}, "no program", "unpack it"},
                                            {"RDMA", {"gpu91"}, "no library", "install it"}};

}  // namespace

TEST_CASE("early lines: what is foreseen is in the first ten, however many hosts are left out", "[hosts]") {
  const int hosts = GENERATE(0, 1, 9, 500);
  Shown shown;
  shown.leave_out(hosts);
  shown.add(shown.early.foreseen(kForeseen));
  REQUIRE(shown.lines.size() == static_cast<size_t>(hosts) + 2);
  const auto at = std::find(shown.lines.begin(), shown.lines.end(), to_text(kForeseen[0]));
  REQUIRE(at != shown.lines.end());
  CHECK(at - shown.lines.begin() < 9);
  // No host is missing, and each is where it was.
  shown.lines.erase(at, at + 2);
  for (int i = 0; i < hosts; ++i) CHECK(shown.lines[static_cast<size_t>(i)] == "gpu" + std::to_string(i));
  // Nothing is held from then on.
  CHECK(shown.early.left_out("late").size() == 1);
  CHECK(shown.early.rest().empty());
}

TEST_CASE("early lines: hosts for which all others wait are named, a few of them", "[hosts]") {
  AcceptSession::Progress progress;
  progress.hosts = 64;
  progress.reached = 60;
  const std::string none = reaching_line(progress);
  progress.awaited = {"gpu13", "gpu17", "gpu21", "gpu22"};
  const std::string four = reaching_line(progress);
  CHECK(none.size() < four.size());
  CHECK(has(four, none));
  for (const char* name : {"gpu13", "gpu17", "gpu21"}) CHECK(has(four, name));
  CHECK_FALSE(has(four, "gpu22"));
}

TEST_CASE("early lines: where nothing is foreseen, all hosts are shown before the load", "[hosts]") {
  Shown shown;
  shown.leave_out(20);
  CHECK(shown.lines.size() < 10);
  CHECK_FALSE(shown.lines.empty());
  shown.add(shown.early.rest());
  CHECK(shown.lines.size() == 20);
  CHECK(shown.early.left_out("late").size() == 1);
}
