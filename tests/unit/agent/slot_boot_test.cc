// One boot from the other slot: what refuses it, that nothing is left behind then, and what the facts say of
// the slots. And the order that writes a slot, as the agent starts and stops its unit.
#include "agent/image/slot_boot.h"

#include "agent/facts/collect_facts.h"
#include "agent/image/slot_child.h"
#include "agent/image/own_slots.h"
#include "base/json_dump.h"
#include "base/kernel_line.h"
#include "controller/image/customize.h"
#include "tests/unit/agent/slot_bench.h"

using namespace muster;
using testing::SlotBench;

namespace {

wire::BootSlotJob boot_job(const SlotBench& b) { return {"b", b.fresh.manifest.digest, 90 * kMinute}; }

std::string trial_of(const SlotBench& b, const std::string& slot) {
  return b.esp().read(entry_path(trial_name(slot))).value_or("");
}

void refused(const SlotBench& b, const wire::BootSlotJob& job, Code code) {
  const std::string boots = b.next_boot(), before = b.untouched();
  const auto r = arm_slot_boot(b.files, job);
  REQUIRE_FALSE(r.ok());
  CAPTURE(r.error().message);
  CHECK(r.error().code == code);
  CHECK(b.next_boot() == boots);
  CHECK(b.untouched() == before);
  CHECK(efi::loader_text(b.files, efi::kOneShot).empty());
  CHECK(trial_of(b, job.slot).empty());
}

// Programs of systemd, as far as the order needs them.
struct Systemd : Process {
  std::vector<std::string> programs;
  std::string state = "inactive", output;
  Command started = {};
  int exit_code = 0;
  bool stops = true;
  Result<Output> run(const Command& c) override {
    programs.push_back(c.argv[0] + " " + (c.argv.size() > 1 ? c.argv[1] : ""));
    if (c.argv[0] == "systemd-run") {
      started = c;
      if (c.on_output) c.on_output(output);
      return Output{exit_code, output, ""};
    }
    if (c.argv[1] == "show") return Output{0, state + "\n", ""};
    if (stops) state = "inactive";
    return Output{0, "", ""};
  }
};

wire::WorkOrder write_order(const SlotBench& b) {
  wire::WorkOrder order;
  order.id = "2/node01/write#3";
  order.kind = wire::OrderKind::write_slot;
  order.params = to_json(b.job());
  order.deadline = 60 * kMinute;
  return order;
}

const WorkRunner::Emit kIgnore = [](const std::string&, const Json&) {};

}  // namespace

TEST_CASE("one boot from the slot that was written, and the running one stays the default", "[in-place]") {
  SlotBench b;
  REQUIRE(b.write(b.job()));
  const auto r = arm_slot_boot(b.files, boot_job(b));
  REQUIRE(r);
  CHECK(b.next_boot() == b.fresh.manifest.digest);
  CHECK(standing_slot(b.esp()) == "a");
  const std::string trial = trial_of(b, "b"), plain = b.esp().read(entry_path(entry_name("b"))).value();
  CHECK(kernel_argument(trial, "muster.trial") == "muster.trial=5400");
  CHECK(kernel_argument(trial, "systemd.watchdog_sec") == "systemd.watchdog_sec=120");
  // What PID 1 itself cannot survive ends in a restart, not in a machine that stands still.
  CHECK(kernel_argument(trial, "systemd.crash_reboot") == "systemd.crash_reboot=1");
  CHECK(kernel_argument(plain, "systemd.crash_reboot").empty());
  CHECK(kernel_argument(trial, "init") == "init=/sbin/init");
  CHECK(kernel_argument(plain, "init").empty());
  CHECK(kernel_argument(trial, "root") == kernel_argument(plain, "root"));
  CHECK(kernel_argument(plain, "muster.trial").empty());
  SECTION("withdrawn") {
    disarm_slot_boot(b.files);
    CHECK(trial_of(b, "b").empty());
  }
  SECTION("used up: the boot after it") { efi::remove_loader_variable(b.files, efi::kOneShot); }
  SECTION("the next write of that slot") {
    b.order = "3/node01/write";
    b.before_write = [](std::string_view what) -> Status {
      return what == "frames" ? Status(fail(Code::failed, "no power")) : Status(Ok{});
    };
    CHECK_FALSE(b.write(b.job()));
  }
  CHECK(b.next_boot() == b.old.manifest.digest);
}

TEST_CASE("a boot from a slot that cannot be had is refused, and leaves nothing", "[in-place]") {
  SlotBench b;
  auto job = boot_job(b);
  SECTION("empty") { refused(b, job, Code::conflict); }
  SECTION("written, and then") {
    REQUIRE(b.write(b.job()));
    SECTION("another image is ordered") { job.digest = "sha256:x", refused(b, job, Code::conflict); }
    SECTION("the running slot is") { job.slot = "a", refused(b, job, Code::conflict); }
    SECTION("half written since") {
      b.set_marker([](ImageMarker& m) { m.slots["b"].stage = kSlotWriting; });
      refused(b, job, Code::conflict);
    }
    SECTION("by a version that did not note whether it takes itself back") {
      b.set_marker([](ImageMarker& m) { m.slots["b"].trial = false; });
      refused(b, job, Code::conflict);
    }
    SECTION("not noted") {
      b.set_marker([](ImageMarker& m) { m.slots.erase("b"); });
      refused(b, job, Code::conflict);
    }
    SECTION("without its entry") {
      REQUIRE(b.esp().remove(entry_path(entry_name("b"))));
      refused(b, job, Code::conflict);
    }
    SECTION("without its kernel") {
      REQUIRE(b.esp().remove(kernel_path("b")));
      refused(b, job, Code::conflict);
    }
    SECTION("without its initrd") {
      REQUIRE(b.esp().remove(initrd_path("b")));
      refused(b, job, Code::conflict);
    }
    SECTION("its entry starts another partition") {
      REQUIRE(b.esp().write(entry_path(entry_name("b")), b.esp().read(entry_path(entry_name("a"))).value()));
      refused(b, job, Code::conflict);
    }
    SECTION("this system is not committed") {
      b.set_marker([](ImageMarker& m) { m.current = "b"; });
      refused(b, job, Code::conflict);
    }
    SECTION("a foreign loader.conf") {
      REQUIRE(b.esp().write(kLoaderConf, "default muster-a.conf\n"));
      refused(b, job, Code::conflict);
    }
    SECTION("another loader started this system") {
      b.set_variable("LoaderInfo", SlotBench::wide("rEFInd"));
      refused(b, job, Code::denied);
    }
    SECTION("a loader without entries for one boot") {
      b.set_variable("LoaderFeatures", std::string("\7\0\0\0\0\0\0\0", 8));
      refused(b, job, Code::denied);
    }
    SECTION("the loader came from another disk, whose loader.conf is the one that counts") {
      b.set_variable("LoaderDevicePartUUID", SlotBench::wide("1B2C3D4E-0000-4000-8000-00000000ABCD"));
      refused(b, job, Code::denied);
    }
    SECTION("the loader does not say where it came from") {
      REQUIRE(b.files.remove(SlotBench::variable("LoaderDevicePartUUID")));
      refused(b, job, Code::denied);
    }
    SECTION("an entry of the firmware's own that does not go") {
      REQUIRE(b.files.make_directories(SlotBench::variable(efi::kDefault) + "/x"));
      refused(b, job, Code::conflict);
    }
    SECTION("the firmware's store takes no variable") {
      REQUIRE(b.files.make_directories(SlotBench::variable(efi::kOneShot) + "/x"));
      refused(b, job, Code::denied);
    }
  }
}

TEST_CASE("what the firmware starts whatever loader.conf says is gone before one boot is had", "[in-place]") {
  SlotBench b;
  REQUIRE(b.write(b.job()));
  const std::string slot = GENERATE("a", "b");
  b.set_variable(efi::kDefault, SlotBench::wide(entry_name(slot)));
  REQUIRE(arm_slot_boot(b.files, boot_job(b)));
  CHECK_FALSE(b.files.exists(SlotBench::variable(efi::kDefault)));
  CHECK(b.next_boot() == b.fresh.manifest.digest);
  efi::remove_loader_variable(b.files, efi::kOneShot);  // the boot after it
  CHECK(b.next_boot() == b.old.manifest.digest);
}

TEST_CASE("what the firmware starts whatever loader.conf says is gone before the RAM system writes a slot",
          "[in-place]") {
  struct NoProcess : Process {
    Result<Output> run(const Command&) override { return fail(Code::failed, "nothing is run"); }
  } process;
  SlotBench b;
  const auto seeder = make_linux_seeder(b.files, process, kRamIdentity);
  SECTION("it is removed") {
    b.set_variable(efi::kDefault, SlotBench::wide(entry_name("b")));
    REQUIRE(seeder->drop_overrides());
    CHECK_FALSE(b.files.exists(SlotBench::variable(efi::kDefault)));
    CHECK(b.next_boot() == b.old.manifest.digest);
  }
  SECTION("there is none") { CHECK(seeder->drop_overrides()); }
  SECTION("there is no store of variables") {
    std::filesystem::remove_all(b.files.real("/sys/firmware"));
    CHECK(seeder->drop_overrides());
    CHECK_FALSE(b.files.exists("/sys/firmware"));
  }
  SECTION("it cannot be removed: an error that says why") {
    REQUIRE(b.files.make_directories(SlotBench::variable(efi::kDefault) + "/x"));
    const Status kept = seeder->drop_overrides();
    REQUIRE_FALSE(kept);
    CHECK(kept.error().code == Code::conflict);
    CHECK(kept.error().message.find(efi::kDefault) != std::string::npos);
    CHECK(kept.error().message.find("not empty") != std::string::npos);
  }
}

TEST_CASE("a trial that restarts stays a trial; a committed system and an ordinary one do not become one",
          "[in-place]") {
  SlotBench b;
  REQUIRE(b.write(b.job()));
  REQUIRE(arm_slot_boot(b.files, boot_job(b)));
  efi::remove_loader_variable(b.files, efi::kOneShot);  // the loader took it
  SECTION("not committed yet") {
    b.run_from("b");
    b.put("/proc/cmdline", "root=PARTUUID=x muster.slot=b muster.trial=5400 systemd.watchdog_sec=120\n");
    std::string plain = b.esp().read(entry_path(entry_name("b"))).value();
    plain.insert(plain.size() - 1, " iommu=pt");  // what a playbook wants
    REQUIRE(b.esp().write(entry_path(entry_name("b")), plain));
    REQUIRE(keep_trial(b.files));
    CHECK(b.next_boot() == b.fresh.manifest.digest);
    CHECK(kernel_argument(trial_of(b, "b"), "iommu") == "iommu=pt");
    CHECK(kernel_argument(trial_of(b, "b"), "muster.trial") == "muster.trial=5400");
    CHECK(standing_slot(b.esp()) == "a");
  }
  SECTION("committed") {
    b.run_from("b");
    b.put("/proc/cmdline", "root=PARTUUID=x muster.slot=b muster.trial=5400\n");
    REQUIRE(change_standing(b.esp(), "a", "b"));
    REQUIRE(keep_trial(b.files));
    CHECK(efi::loader_text(b.files, efi::kOneShot).empty());
  }
  SECTION("the old one") {
    REQUIRE(keep_trial(b.files));
    CHECK(efi::loader_text(b.files, efi::kOneShot).empty());
  }
}

TEST_CASE("whether the running slot takes itself back is read off its files where no note says so",
          "[in-place][facts]") {
  SlotBench b;
  b.set_marker([](ImageMarker& m) { m.slots["a"].trial = false; });
  CHECK_FALSE(slot_facts(b.files).slots.at("a").trial);
  b.put(kTrialGenerator, "#!/bin/sh\n");
  CHECK(slot_facts(b.files).slots.at("a").trial);
  // Written down with the next image, so that the node can go back to it later.
  CHECK_FALSE(b.marker().slots.at("a").trial);
  REQUIRE(b.write(b.job()));
  CHECK(b.marker().slots.at("a").trial);
  CHECK(b.marker().slots.at("b").trial);
}

TEST_CASE("a slot of which no note says that it takes itself back is written again, not called done",
          "[in-place]") {
  SlotBench b;
  REQUIRE(b.write(b.job()));
  REQUIRE(b.write(b.job())->finished_before);
  b.set_marker([](ImageMarker& m) { m.slots["b"].trial = false; });  // the agent was replaced in between
  CHECK_FALSE(b.write(b.job())->finished_before);
  CHECK(arm_slot_boot(b.files, boot_job(b)).ok());
}

TEST_CASE("a trial restarts after a panic, whatever the slot's own options say", "[in-place]") {
  struct Row {
    const char* options;
    bool own;  // they restart it themselves
  };
  for (const Row row :
       {Row{"quiet", false}, Row{"panic=0", false}, Row{"panic=10 panic=0", false}, Row{"panic=", false},
        Row{"panic", false}, Row{"panic=soon", false}, Row{"xpanic=5", false}, Row{"panic=10", true},
        Row{"panic=0 panic=10", true}, Row{"panic=-1", true}, Row{"panic=0x10", true}}) {
    CAPTURE(row.options);
    const std::string plain = fmt::format("title x\nlinux /k\noptions root=x {}\nversion 1\n", row.options);
    const auto trial = trial_entry(plain, 60);
    REQUIRE(trial);
    CHECK((trial->find(std::string(" ") + kRestartAfterPanic) != std::string::npos) == !row.own);
    CHECK(trial->find("\nversion 1\n") != std::string::npos);
  }
}

TEST_CASE("on trial: booted so, and not committed", "[in-place]") {
  SlotBench b;
  CHECK_FALSE(on_trial(b.files));
  b.put("/proc/cmdline", "root=PARTUUID=x muster.slot=b muster.trial=\n");  // as the generator takes it
  CHECK_FALSE(on_trial(b.files));
  b.put("/proc/cmdline", "root=PARTUUID=x muster.slot=b muster.trial=5400 quiet\n");
  CHECK(on_trial(b.files));
  CHECK(trial_seconds(b.files) == "5400");
  b.put(kTrialEnded, "b\n");
  CHECK_FALSE(on_trial(b.files));
  CHECK(trial_seconds(b.files) == "5400");
}

TEST_CASE("facts name the slots, and why one boot from the other cannot be had", "[in-place][facts]") {
  SlotBench b;
  BootFacts facts = slot_facts(b.files);
  CHECK(facts.running == "a");
  CHECK(facts.standing == "a");
  CHECK(facts.no_trial.empty());
  CHECK(facts.slots.size() == 1);
  CHECK(facts.slots.at("a").digest == b.old.manifest.digest);
  REQUIRE(b.write(b.job()));
  facts = slot_facts(b.files);
  REQUIRE(facts.slots.size() == 2);
  CHECK(facts.slots.at("b").digest == b.fresh.manifest.digest);
  CHECK(facts.slots.at("b").stage == kSlotWritten);
  CHECK(facts.slots.at("b").address == "10.20.0.11/24");
  CHECK(facts.slots.at("b").trial);
  SECTION("a commit that was cut off between its writes") {
    REQUIRE(change_standing(b.esp(), "a", "b"));
    CHECK(slot_facts(b.files).no_trial.find("--through-ram") != std::string::npos);
  }
  SECTION("a marker that names another slot than loader.conf") {
    b.set_marker([](ImageMarker& m) { m.current = "b"; });
    CHECK(slot_facts(b.files).no_trial.find("--through-ram") != std::string::npos);
  }
  SECTION("a loader that cannot") { b.set_variable("LoaderInfo", SlotBench::wide("GRUB")); }
  SECTION("a loader of another disk") {
    b.set_variable("LoaderDevicePartUUID", SlotBench::wide("1B2C3D4E-0000-4000-8000-00000000ABCD"));
  }
  SECTION("no variables") { REQUIRE(b.files.remove(SlotBench::variable("LoaderInfo"))); }
  SECTION("a foreign loader.conf") { REQUIRE(b.esp().write(kLoaderConf, "default x\n")); }
  CHECK_FALSE(slot_facts(b.files).no_trial.empty());
  b.put("/proc/self/mountinfo", "26 1 0:5 / / rw - nfs srv:/ rw\n");
  CHECK(slot_facts(b.files).running.empty());
}

TEST_CASE("a slot is written by a unit of its own, held down, with the job on its standard input",
          "[in-place]") {
  SlotBench b;
  Systemd systemd;
  systemd.output =
      "{\"kind\":\"progress\",\"data\":{\"done\":1,\"total\":2}}\n{\"kind\":\"beat\"}\n"
      "{\"kind\":\"result\",\"result\":{\"slot\":\"b\"}}\n";
  auto order = write_order(b);
  order.params["bytes_per_second"] = 50'000'000;
  int progress = 0;
  const auto r = run_write_slot(
      b.files, systemd, order,
      [&progress](const std::string& kind, const Json&) { progress += kind == "progress"; },
      [] { return false; });
  REQUIRE(r);
  CHECK((*r)["slot"] == "b");
  CHECK(progress == 1);
  const auto has = [&systemd](const std::string& word) {
    const auto& argv = systemd.started.argv;
    return std::find(argv.begin(), argv.end(), word) != argv.end();
  };
  for (const char* word :
       {"--unit=muster-write-slot.service", "--collect", "--wait", "--pipe", "CPUWeight=idle", "IOWeight=1",
        "MemoryMax=1G", "IOWriteBandwidthMax=/dev/nvme0n1 50000000", "write-slot", "--stdin"})
    CHECK(has(word));
  const auto input = parse_json(systemd.started.input);
  REQUIRE(input);
  CHECK((*input)["order"] == "2/node01/write");
  CHECK(wire::slot_job_from_json((*input)["job"]).ok());
}

TEST_CASE("an order without a deadline is not one of a minute", "[in-place]") {
  SlotBench b;
  Systemd systemd;
  systemd.output = "{\"kind\":\"result\",\"result\":{}}\n";
  auto order = write_order(b);
  REQUIRE(run_write_slot(b.files, systemd, order, kIgnore, [] { return false; }));
  CHECK(systemd.started.deadline == order.deadline);
  order.deadline = 0;
  REQUIRE(run_write_slot(b.files, systemd, order, kIgnore, [] { return false; }));
  CHECK(systemd.started.deadline == 24 * 60 * kMinute);
}

TEST_CASE("a unit of before is stopped and waited for; one that does not stop refuses the order",
          "[in-place]") {
  SlotBench b;
  Systemd systemd;
  systemd.state = "active";
  systemd.output = "{\"kind\":\"result\",\"result\":{}}\n";
  systemd.stops = GENERATE(true, false);
  const auto r = run_write_slot(b.files, systemd, write_order(b), kIgnore, [] { return false; });
  CHECK(r.ok() == systemd.stops);
  CHECK(std::count(systemd.programs.begin(), systemd.programs.end(), std::string("systemctl stop")) == 1);
  CHECK(systemd.started.argv.empty() == !systemd.stops);
  if (!r.ok()) CHECK(r.error().code == Code::conflict);
}

TEST_CASE("what the unit says went wrong is the order's end, whatever its exit status", "[in-place]") {
  SlotBench b;
  Systemd systemd;
  systemd.exit_code = 1;
  bool stop = false;
  Code wanted = Code::failed;
  SECTION("a reason") {
    systemd.output = "{\"kind\":\"result\",\"code\":\"denied\",\"message\":\"not yours\"}\n";
    wanted = Code::denied;
  }
  SECTION("no result") { systemd.output = "{\"kind\":\"beat\"}\n"; }
  SECTION("rubbish") { systemd.output = "Segmentation fault\n[1,2\n"; }
  SECTION("withdrawn") {
    systemd.output = "{\"kind\":\"beat\"}\n";
    stop = true;
    wanted = Code::cancelled;
  }
  int looks = 0;
  const auto r =
      run_write_slot(b.files, systemd, write_order(b), kIgnore, [&] { return stop && ++looks > 1; });
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().code == wanted);
}
