// An entry for one boot that an earlier life of the agent left in the firmware: muster's own is removed,
// and no other.
#include "agent/image/efi_variables.h"
#include "agent/image/slot_boot.h"
#include "tests/unit/agent/slot_bench.h"

using namespace muster;
using testing::SlotBench;

namespace {

std::string one_shot(const SlotBench& b) { return b.get(SlotBench::variable(efi::kOneShot)); }

}  // namespace

TEST_CASE("a boot of the other slot that was armed and forgotten is seen, and gone when it is taken back",
          "[in-place]") {
  SlotBench b;
  CHECK_FALSE(slot_boot_armed(b.files));
  SECTION("the variable alone is left") {
    b.set_variable(efi::kOneShot, SlotBench::wide("muster-b-trial.conf"));
  }
  SECTION("of slot a, by a system that ran from slot b") {
    b.set_variable(efi::kOneShot, SlotBench::wide("muster-a-trial.conf"));
  }
  SECTION("all of it: an order that did not come to its end") {
    REQUIRE(b.write(b.job()).ok());
    REQUIRE(arm_slot_boot(b.files, {"b", b.fresh.manifest.digest, 90 * kMinute}).ok());
    REQUIRE(b.next_boot() == b.fresh.manifest.digest);
  }
  SECTION("where this system knows of no slots any more") {
    b.set_variable(efi::kOneShot, SlotBench::wide("muster-b-trial.conf"));
    b.put("/proc/self/mountinfo", "26 1 0:5 / / rw - nfs srv:/ rw\n");
  }
  CHECK(slot_boot_armed(b.files));
  disarm_slot_boot(b.files);
  CHECK_FALSE(slot_boot_armed(b.files));
  CHECK_FALSE(b.files.exists(SlotBench::variable(efi::kOneShot)));
  CHECK(b.next_boot() == b.old.manifest.digest);
  CHECK_FALSE(b.esp().exists(entry_path(trial_name("b"))));
  disarm_slot_boot(b.files);  // nothing is left to do
  CHECK(b.next_boot() == b.old.manifest.digest);
}

TEST_CASE("an entry for one boot that is not of a slot's trial is foreign", "[in-place]") {
  SlotBench b;
  std::string value;
  SECTION("the RAM system's") { value = SlotBench::wide("muster-once.conf"); }
  SECTION("the plain entry of a slot") { value = SlotBench::wide("muster-b.conf"); }
  SECTION("the firmware's menu") { value = SlotBench::wide("auto-reboot-to-firmware-setup"); }
  SECTION("a slot that there is not") { value = SlotBench::wide("muster-c-trial.conf"); }
  SECTION("one that only begins so") { value = SlotBench::wide("muster-b-trial.conf.old"); }
  SECTION("one that only ends so") { value = SlotBench::wide("x-muster-b-trial.conf"); }
  SECTION("in one byte a letter") { value = "muster-b-trial.conf"; }
  SECTION("no text") { value = std::string("\x01\xff\x03", 3); }
  b.set_variable(efi::kOneShot, value);
  REQUIRE(b.esp().write(entry_path("muster-once.conf"), "title x\n").ok());
  const std::string before = one_shot(b), untouched = b.untouched();
  CHECK_FALSE(slot_boot_armed(b.files));
  disarm_slot_boot(b.files);
  CHECK(one_shot(b) == before);
  CHECK(one_shot(b) == std::string("\7\0\0\0", 4) + value);
  CHECK(b.esp().exists(entry_path("muster-once.conf")));
  CHECK(b.untouched() == untouched);
}
