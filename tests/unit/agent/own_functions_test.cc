// Restarts that an installed system is ordered to make, and the entry for one boot that they leave armed or
// take away.
#include "agent/work/own_functions.h"

#include "agent/image/slot_boot.h"
#include "tests/unit/agent/slot_bench.h"

using namespace muster;
using testing::SlotBench;

namespace {

// A node of which slot b is armed for one boot.
struct Armed : Process {
  SlotBench b;
  std::vector<std::string> verbs;
  bool armed_then = false;
  int exit_code = 0, seconds = 0;
  WorkFunctions functions = installed_functions(b.files, *this, [this] { ++seconds; });

  Armed() {
    REQUIRE(b.write(b.job()));
    REQUIRE(arm_slot_boot(b.files, {"b", b.fresh.manifest.digest, 90 * kMinute}));
    REQUIRE(slot_boot_armed(b.files));
  }
  Result<Output> run(const Command& c) override {
    verbs.push_back(c.argv.back());
    armed_then = slot_boot_armed(b.files);
    return Output{exit_code, "", ""};
  }
};

const CancelCheck kEnded = [] { return true; }, kNever = [] { return false; };

}  // namespace

TEST_CASE("a restart that is ordered starts the slot that stands, whatever an earlier one left armed",
          "[in-place]") {
  Armed n;
  REQUIRE(n.functions.reboot(Json::object(), kEnded));
  CHECK(n.verbs == std::vector<std::string>{"reboot"});
  CHECK_FALSE(n.armed_then);
  CHECK_FALSE(slot_boot_armed(n.b.files));
  CHECK(n.b.next_boot() == n.b.old.manifest.digest);
}

TEST_CASE("one boot of the other slot stays armed while the restart is under way", "[in-place]") {
  Armed n;
  REQUIRE(n.functions.leave_slot(kEnded, kNever));
  CHECK(n.verbs == std::vector<std::string>{"reboot"});
  CHECK(n.armed_then);
  CHECK(slot_boot_armed(n.b.files));
  CHECK(n.b.next_boot() == n.b.fresh.manifest.digest);
}

TEST_CASE("one boot of the other slot is taken back where the system does not restart", "[in-place]") {
  Armed n;
  n.exit_code = 1;
  CHECK(n.functions.leave_slot(kEnded, kNever).error().code == Code::unavailable);
  CHECK_FALSE(slot_boot_armed(n.b.files));
  CHECK(n.b.next_boot() == n.b.old.manifest.digest);
}

// The controller goes on in the system that stayed after three minutes (ExecutorTiming::leave_shows).
TEST_CASE("a restart that is only late starts the slot that stands, before the controller goes on there",
          "[in-place]") {
  Armed n;
  SECTION("nothing waits for it any more") {
    CHECK(n.functions.leave_slot(kNever, kNever).error().code == Code::failed);
    CHECK(n.seconds == 150);
  }
  SECTION("its order is withdrawn") {
    const auto withdrawn = [&n] { return n.seconds >= 3; };
    CHECK(n.functions.leave_slot(kNever, withdrawn).error().code == Code::cancelled);
    CHECK(n.seconds == 3);
  }
  CHECK(n.verbs == std::vector<std::string>{"reboot"});
  CHECK(n.armed_then);
  CHECK_FALSE(slot_boot_armed(n.b.files));
  CHECK(n.b.next_boot() == n.b.old.manifest.digest);
}

TEST_CASE("a boot of the other slot stays armed where its process ends, withdrawn or not", "[in-place]") {
  Armed n;
  REQUIRE(n.functions.leave_slot(kEnded, kEnded));
  CHECK(slot_boot_armed(n.b.files));
}

TEST_CASE("a system that powers itself off does not wait for its own end", "[agent]") {
  Armed n;
  REQUIRE(n.functions.power_off(Json::object(), kEnded));
  CHECK(n.verbs == std::vector<std::string>{"poweroff"});
}
