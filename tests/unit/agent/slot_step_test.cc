// The step module `slot`: the running slot is committed, or nothing is changed; and whatever write fails or
// is the last before the power goes, one of the two systems boots.
#include "agent/image/commit_slot.h"

#include <sys/stat.h>

#include "agent/core/step.h"
#include "agent/image/slot_boot.h"
#include "agent/image/own_slots.h"
#include "tests/unit/agent/slot_bench.h"

using namespace muster;
using testing::SlotBench;

namespace {

// A trial of slot b, with its timer.
struct Trial : Process {
  SlotBench b;
  std::string timer = "active";
  bool watchdog_off = false, timer_stops = true;
  bool stopped = false, stood_when_stopped = false, read_again = false;
  StepContext context{b.files, *this, "node01"};
  const StepModule& module = *find_step_module("slot");
  Json params = {{"slot", "b"}, {"digest", b.fresh.manifest.digest}};

  Trial() {
    REQUIRE(b.write(b.job()));
    REQUIRE(arm_slot_boot(b.files, {"b", b.fresh.manifest.digest, 90 * kMinute}));
    efi::remove_loader_variable(b.files, efi::kOneShot);
    b.run_from("b");
    b.put("/proc/cmdline", "muster.slot=b muster.trial=5400 systemd.watchdog_sec=120\n");
    REQUIRE(write_image_record(b.files, {"tiny", b.fresh.manifest.digest, "b"}));
    context.order = "2/node01/commit#1";
  }
  Result<Output> run(const Command& c) override {
    if (c.argv[0] == "busctl") {
      watchdog_off = c.argv.back() == "0";
      return Output{0, "", ""};
    }
    if (c.argv[1] == "show") return Output{0, timer + "\n", ""};
    if (c.argv[1] == "stop") stopped = true, stood_when_stopped = standing_slot(b.esp()) == "b";
    if (c.argv[1] == "stop" && timer_stops) timer = "inactive";
    if (c.argv[1] == "daemon-reload")
      read_again = timer == "inactive" && b.files.exists("/run/muster-committed");
    return Output{c.argv[1] == "stop" && !timer_stops ? 1 : 0, "", ""};
  }
  SlotCommit commit() const { return {"b", b.fresh.manifest.digest, "2/node01/commit"}; }
  void refused(Code code) {
    const std::string conf = b.esp().read(kLoaderConf).value_or("");
    const uint64_t serial = b.marker().serial;
    const auto checked = module.check(context, params);
    REQUIRE_FALSE(checked.ok());
    CHECK(checked.error().code == code);
    const Status applied = module.apply(context, params);
    REQUIRE_FALSE(applied.ok());
    CHECK(applied.error().code == code);
    CHECK_FALSE(module.verify(context, params).ok());
    CHECK(b.esp().read(kLoaderConf).value_or("") == conf);
    CHECK(b.marker().serial == serial);
    CHECK(timer == "active");
    CHECK_FALSE(b.files.exists("/run/muster-committed"));
  }
};

}  // namespace

TEST_CASE("a trial is committed: its slot stands, and nothing takes it back", "[in-place][slot]") {
  Trial t;
  CHECK(on_trial(t.b.files));
  CHECK(t.module.check(t.context, t.params)->holds == Holds::no);
  CHECK_FALSE(t.module.verify(t.context, t.params).ok());
  CHECK(t.b.next_boot() == t.b.old.manifest.digest);
  REQUIRE(t.module.apply(t.context, t.params));
  REQUIRE(t.module.verify(t.context, t.params));
  CHECK(t.module.check(t.context, t.params)->holds == Holds::yes);
  CHECK_FALSE(on_trial(t.b.files));
  CHECK(t.b.next_boot() == t.b.fresh.manifest.digest);
  CHECK(t.timer == "inactive");
  CHECK(t.stood_when_stopped);  // the timer runs until then
  CHECK(t.read_again);          // so that the trial's units are gone
  CHECK(t.watchdog_off);
  CHECK(t.b.esp().read(kLoaderConf).value_or("") == loader_conf("b"));
  CHECK_FALSE(t.b.esp().exists(entry_path(trial_name("b"))));
  const ImageMarker m = t.b.marker();
  CHECK(m.current == "b");
  CHECK(m.digest == t.b.fresh.manifest.digest);
  CHECK(m.stage == "done");
  CHECK(m.order == "2/node01/commit");
  // The way back: the old system is in its slot, whole.
  CHECK(m.slots.at("a").digest == t.b.old.manifest.digest);
  REQUIRE(arm_slot_boot(t.b.files, {"a", t.b.old.manifest.digest, kMinute}));
  CHECK(t.b.next_boot() == t.b.old.manifest.digest);
  efi::remove_loader_variable(t.b.files, efi::kOneShot);
  // Once more changes nothing.
  const uint64_t serial = t.b.marker().serial;
  REQUIRE(t.module.apply(t.context, t.params));
  CHECK(t.b.marker().serial == serial);
}

TEST_CASE("another system than the one that runs is never committed", "[in-place][slot]") {
  Trial t;
  SECTION("the old one runs") { t.b.run_from("a"); }
  SECTION("another slot is named") { t.params["slot"] = "a"; }
  SECTION("another image runs") {
    REQUIRE(write_image_record(t.b.files, {"tiny", t.b.old.manifest.digest, "b"}));
  }
  SECTION("no image of muster's runs") { REQUIRE(t.b.files.remove(kImageRecord)); }
  SECTION("its slot is noted as half written") {
    t.b.set_marker([](ImageMarker& m) { m.slots["b"].stage = kSlotWriting; });
  }
  SECTION("its slot is noted with another image") {
    t.b.set_marker([](ImageMarker& m) { m.slots["b"].digest = "sha256:x"; });
  }
  SECTION("its entry is gone") { REQUIRE(t.b.esp().remove(entry_path(entry_name("b")))); }
  SECTION("its kernel is gone") { REQUIRE(t.b.esp().remove(kernel_path("b"))); }
  SECTION("a foreign loader.conf") {
    REQUIRE(t.b.esp().write(kLoaderConf, "timeout 5\ndefault muster-a.conf\neditor no\n"));
  }
  SECTION("a loader.conf with more in it") {
    REQUIRE(t.b.esp().write(kLoaderConf, loader_conf("a") + "console-mode max\n"));
  }
  SECTION("no loader.conf") { REQUIRE(t.b.esp().remove(kLoaderConf)); }
  t.refused(Code::conflict);
}

TEST_CASE("a timer that does not stop fails the step, and the slot that stands is the one it would start",
          "[in-place][slot]") {
  Trial t;
  t.timer_stops = false;
  CHECK_FALSE(t.module.apply(t.context, t.params).ok());
  CHECK_FALSE(t.module.verify(t.context, t.params).ok());
  CHECK(t.b.next_boot() == t.b.fresh.manifest.digest);
  CHECK(t.b.files.exists("/run/muster-committed"));  // the timer's service is not started with it
}

TEST_CASE("a commit that fails leaves the trial's timer as it runs", "[in-place][slot]") {
  Trial t;
  // The marker has no room for this node's name any more.
  t.context.order = std::string(kMarkerSize, 'x') + "#1";
  CHECK_FALSE(t.module.apply(t.context, t.params).ok());
  CHECK(t.timer == "active");
  CHECK_FALSE(t.stopped);
  CHECK_FALSE(t.watchdog_off);
  CHECK_FALSE(t.b.files.exists("/run/muster-committed"));
  CHECK(t.b.next_boot() == t.b.old.manifest.digest);
  CHECK(standing_slot(t.b.esp()) == "a");
}

TEST_CASE("a commit of which only the last fails is one, and its trial ends", "[in-place][slot]") {
  Trial t;
  const std::string entry = entry_path(trial_name("b"));
  REQUIRE(t.b.esp().remove(entry));
  REQUIRE(t.b.esp().make_directories(entry + "/x"));  // not to be removed
  REQUIRE_FALSE(commit_slot({t.b.files}, t.commit()).ok());
  REQUIRE(change_standing(t.b.esp(), "b", "a"));
  REQUIRE(t.module.apply(t.context, t.params));
  REQUIRE(t.module.verify(t.context, t.params));
  CHECK(t.timer == "inactive");
  CHECK(standing_slot(t.b.esp()) == "b");
}

TEST_CASE("a marker of which one copy is written commits the slot", "[in-place][slot]") {
  Trial t;
  const auto half = [&t](std::string_view what) -> Status {
    if (what != "marker") return Ok{};
    t.b.set_marker([&t](ImageMarker& m) {
      m.current = m.slot = "b";
      m.digest = t.b.fresh.manifest.digest;
    });
    std::fstream disk(t.b.files.real("/dev/nvme0n1"), std::ios::in | std::ios::out | std::ios::binary);
    disk.seekp(static_cast<std::streamoff>(kMarkerOffset));
    disk << std::string(kMarkerSize, 'x');
    return fail(Code::failed, "I/O error");
  };
  REQUIRE(commit_slot({t.b.files, half}, t.commit()));
  CHECK(standing_slot(t.b.esp()) == "b");
  CHECK(t.b.marker().current == "b");
  CHECK(uncommitted(t.b.files, t.commit()).value().empty());
  CHECK(t.b.next_boot() == t.b.fresh.manifest.digest);
}

TEST_CASE("a slot is not committed while the firmware starts another entry than loader.conf's",
          "[in-place][slot]") {
  Trial t;
  SECTION("it is taken away") {
    t.b.set_variable(efi::kDefault, SlotBench::wide(entry_name("a")));
    REQUIRE(t.module.apply(t.context, t.params));
    CHECK(t.b.next_boot() == t.b.fresh.manifest.digest);
    // Set by an operator later: committed no more.
    t.b.set_variable(efi::kDefault, SlotBench::wide(entry_name("a")));
    CHECK(t.module.check(t.context, t.params)->holds == Holds::no);
    CHECK_FALSE(t.module.verify(t.context, t.params).ok());
    REQUIRE(t.module.apply(t.context, t.params));
    REQUIRE(t.module.verify(t.context, t.params));
    CHECK(t.b.next_boot() == t.b.fresh.manifest.digest);
  }
  SECTION("it stays: nothing is changed") {
    REQUIRE(t.b.files.make_directories(SlotBench::variable(efi::kDefault) + "/x"));
    const uint64_t serial = t.b.marker().serial;
    CHECK(t.module.apply(t.context, t.params).error().code == Code::conflict);
    CHECK(standing_slot(t.b.esp()) == "a");
    CHECK(t.b.marker().serial == serial);
    CHECK(t.timer == "active");
  }
}

TEST_CASE("a watchdog that cannot be stopped is fed on", "[in-place][slot]") {
  Trial t;
  t.b.put("/sys/class/watchdog/watchdog0/nowayout", "0\n");
  const bool stays = GENERATE(false, true);
  if (stays) t.b.put("/sys/class/watchdog/watchdog1/nowayout", "1\n");
  REQUIRE(t.module.apply(t.context, t.params));
  REQUIRE(t.module.verify(t.context, t.params));
  CHECK(t.watchdog_off == !stays);
}

TEST_CASE("whatever write of a commit fails, or is the last, one of the two systems boots",
          "[in-place][slot]") {
  for (const bool loses_power : {false, true}) {
    for (int last = 0;; ++last) {
      CAPTURE(loses_power, last);
      Trial t;
      int writes = 0;
      bool cut = false;
      const auto before = [&](std::string_view) -> Status {
        cut = loses_power ? cut || writes == last : writes == last;
        ++writes;
        return cut ? Status(fail(Code::failed, "I/O error")) : Status(Ok{});
      };
      const Status done = commit_slot({t.b.files, before}, t.commit());
      const std::string boots = t.b.next_boot();
      CHECK((boots == t.b.old.manifest.digest || boots == t.b.fresh.manifest.digest));
      if (!loses_power && !done.ok() && last < 2) CHECK(boots == t.b.old.manifest.digest);
      if (done.ok()) {
        CHECK(last > 2);
        CHECK(boots == t.b.fresh.manifest.digest);
        break;
      }
      // Nothing is written into a slot until that is settled.
      if (!uncommitted(t.b.files, t.commit()).value().empty()) {
        auto job = t.b.job();
        job.slot = "a";
        CHECK(t.b.write(job).error().code == Code::conflict);
      }
      REQUIRE(commit_slot({t.b.files}, t.commit()));
      CHECK(t.b.next_boot() == t.b.fresh.manifest.digest);
    }
  }
}

TEST_CASE("loader.conf is written over in place, by one byte of the sector that it has", "[in-place][slot]") {
  SlotBench b;
  const std::string path = b.esp().real(kLoaderConf);
  struct stat before = {}, after = {};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  REQUIRE(change_standing(b.esp(), "a", "b"));
  REQUIRE(::stat(path.c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(before.st_size == after.st_size);
  CHECK(before.st_size < 512);
  CHECK(standing_slot(b.esp()) == "b");
  CHECK(change_standing(b.esp(), "a", "b").error().code == Code::conflict);
  CHECK(change_standing(b.esp(), "b", "b").error().code == Code::invalid);
}
