#include "lab/boot_faults.h"

#include "tests/catch.h"

using namespace muster;
using namespace muster::lab;

namespace {

const std::string kFirmware = "CPU#0\r\nRAX=0000000000000000 ...\r\nRIP=000000007ea1c5d2 RFL=00000246\r\n";
const std::string kKernel = "CPU#0\r\nRAX=0000000000000000 ...\r\nRIP=ffffffff81e0c0de RFL=00000246\r\n";
const std::string kProgram = "CPU#0\r\nRAX=0000000000000000 ...\r\nRIP=00007f12aa34b6c0 RFL=00000246\r\n";

// QEMU as far as power, resets and the monitor go: stopped or not, and what the processor executes.
class FakeQemu : public Qmp {
 public:
  explicit FakeQemu(BootFaults& faults) : faults_(faults) {}

  Result<Json> execute(const std::string& command, const Json& arguments, DurationMs) override {
    const std::string line = arguments.value("command-line", std::string());
    if (line != "info registers") said.push_back(line.empty() ? command : line.substr(0, line.find(' ')));
    if (command == "stop") stopped = true;
    if (command == "cont") stopped = false;
    if (command == "system_reset") reset();
    if (command == "human-monitor-command") return Json(line == "info registers" ? registers : std::string());
    return Json::object();
  }
  bool connected() const override { return true; }

  // From any side: its event waits for the worker.
  void reset() {
    registers = kFirmware;
    events.push_back(faults_.saw_reset());
  }

  std::vector<std::string> said;  // but for the looks at registers
  std::vector<uint64_t> events;
  std::string registers = kFirmware;
  bool stopped = false;

 private:
  BootFaults& faults_;
};

// What QemuMachine does with it, on one thread and a clock of its own.
struct Bench {
  void power_on() {
    qemu.stopped = faults.power_on();
    if (!qemu.stopped) boot();
  }
  void reset() {
    qemu.reset();
    work();
  }
  void pass(DurationMs span) {
    for (const auto end = now + span; now < end; now += std::min<DurationMs>(kSecond, end - now)) work();
    work();
  }
  void work() {
    if (const auto at = faults.wake_at(); at && now >= *at && faults.tick(qemu)) boot();
    for (const auto number : std::exchange(qemu.events, {}))
      if (faults.was_reset(qemu, number)) boot();
  }
  void boot() {
    ++boots;
    faults.booting(disk_first);
  }

  SteadyMs now{1'000'000};
  std::vector<std::string> marks;
  BootFaults faults{[this] { return now; }, [this](const std::string& text) { marks.push_back(text); }};
  FakeQemu qemu{faults};
  int boots = 0;
  bool disk_first = true;
};
using StringList = std::vector<std::string>;

}  // namespace

TEST_CASE("without faults a power-on and a reset are boots at once, and QEMU gets no command") {
  Bench b;
  b.power_on();
  CHECK(b.boots == 1);
  b.reset();
  CHECK(b.boots == 2);
  CHECK_FALSE(b.faults.wake_at());
  CHECK(b.qemu.said.empty());
  CHECK(b.marks.empty());
}

TEST_CASE("firmware tests hold the machine from power-on and from each reset on, for their whole length") {
  Bench b;
  b.faults.set_tests(72 * kSecond);
  b.power_on();
  CHECK(b.qemu.stopped);
  b.pass(71 * kSecond);
  CHECK(b.boots == 0);
  CHECK(b.faults.testing() == kSecond);
  b.pass(kSecond);
  CHECK(b.boots == 1);
  CHECK_FALSE(b.qemu.stopped);
  // The boot order is read at a reset: the one that holds at the end of the tests counts.
  CHECK(b.qemu.said == StringList{"system_reset", "cont"});
  CHECK_FALSE(b.faults.testing());

  b.reset();
  CHECK(b.qemu.stopped);
  b.pass(71 * kSecond);
  CHECK(b.boots == 1);
  b.pass(kSecond);
  CHECK(b.boots == 2);
  CHECK_FALSE(b.qemu.stopped);
}

TEST_CASE("a restart in the middle of firmware tests begins them again, and ends in one boot") {
  Bench b;
  b.faults.set_tests(60 * kSecond);
  b.power_on();
  b.pass(50 * kSecond);
  b.reset();
  b.pass(50 * kSecond);
  CHECK(b.boots == 0);
  CHECK(b.qemu.stopped);
  b.pass(10 * kSecond);
  CHECK(b.boots == 1);
  CHECK_FALSE(b.qemu.stopped);
}

TEST_CASE("power-off ends firmware tests without a boot, and the next power-on starts them again") {
  Bench b;
  b.faults.set_tests(60 * kSecond);
  b.power_on();
  b.pass(50 * kSecond);
  b.faults.power_off();
  b.pass(60 * kSecond);
  CHECK(b.boots == 0);
  b.power_on();
  CHECK(b.qemu.stopped);
  CHECK(b.faults.testing() == 60 * kSecond);
}

TEST_CASE(
    "healing ends firmware tests that are under way, and a running machine's fault starts with its reset") {
  Bench b;
  b.power_on();
  b.faults.set_tests(60 * kSecond);
  b.pass(5 * kSecond);
  CHECK_FALSE(b.qemu.stopped);
  CHECK(b.boots == 1);
  b.reset();
  CHECK(b.qemu.stopped);
  b.faults.set_tests(0);
  b.pass(kSecond);
  CHECK_FALSE(b.qemu.stopped);
  CHECK(b.boots == 2);
  b.reset();
  CHECK(b.boots == 3);
}

TEST_CASE("a kernel is distinguished from firmware, loaders and programs by where the processor executes") {
  CHECK(kernel_executes(kKernel));
  CHECK_FALSE(kernel_executes(kFirmware));
  CHECK_FALSE(kernel_executes(kProgram));
  CHECK_FALSE(kernel_executes(""));
  CHECK_FALSE(kernel_executes("RIP=ffff"));
}

TEST_CASE("crash-once strikes the next kernel some seconds after it began, and no later one") {
  Bench b;
  b.faults.set_strike(Strike::machine_check, true);
  b.power_on();
  b.pass(60 * kSecond);  // firmware takes its time
  CHECK(b.qemu.said.empty());
  b.qemu.registers = kKernel;
  b.pass(2 * kSecond);
  CHECK(b.qemu.said.empty());
  b.qemu.registers = kProgram;
  b.pass(10 * kSecond);
  CHECK(b.qemu.said == StringList{"mce"});
  CHECK_FALSE(b.faults.wanted(Strike::machine_check));
  b.reset();
  b.qemu.registers = kKernel;
  b.pass(60 * kSecond);
  CHECK(b.qemu.said == StringList{"mce"});
}

TEST_CASE(
    "crash-once and a panic leave the system alone that runs when they are requested, and can be taken "
    "back") {
  const Strike strike = GENERATE(Strike::machine_check, Strike::panic);
  Bench b;
  b.power_on();
  b.qemu.registers = kKernel;
  b.faults.set_strike(strike, true);
  b.pass(60 * kSecond);
  CHECK(b.qemu.said.empty());
  CHECK(b.faults.wanted(strike));
  b.reset();
  b.qemu.registers = kKernel;
  b.pass(2 * kSecond);
  b.faults.set_strike(strike, false);
  b.pass(60 * kSecond);
  CHECK(b.qemu.said.empty());
}

TEST_CASE("crash-once waits for a power-on after a power cut, and for the end of firmware tests") {
  Bench b;
  b.faults.set_strike(Strike::machine_check, true);
  b.power_on();
  b.faults.power_off();
  b.qemu.registers = kKernel;
  b.pass(30 * kSecond);
  CHECK(b.qemu.said.empty());
  b.faults.set_tests(20 * kSecond);
  b.qemu.registers = kFirmware;
  b.power_on();
  b.pass(20 * kSecond);
  CHECK(b.qemu.said == StringList{"system_reset", "cont"});
  b.qemu.registers = kKernel;
  b.pass(10 * kSecond);
  CHECK(b.qemu.said.back() == "mce");
}

TEST_CASE("panic-first-boot lets the RAM system pass and strikes the first kernel from disk, once") {
  Bench b;
  b.faults.set_strike(Strike::panic, true);
  b.disk_first = false;
  b.power_on();
  b.qemu.registers = kKernel;
  b.pass(60 * kSecond);
  CHECK(b.qemu.said.empty());
  CHECK(b.faults.wanted(Strike::panic));

  b.disk_first = true;
  b.reset();
  b.pass(30 * kSecond);  // firmware and loader
  CHECK(b.qemu.said.empty());
  b.qemu.registers = kKernel;
  b.pass(2 * kSecond);
  CHECK(b.qemu.said.empty());  // its console is not there yet
  b.pass(10 * kSecond);
  CHECK(b.qemu.said == StringList{"inject-nmi"});
  CHECK_FALSE(b.faults.wanted(Strike::panic));
  REQUIRE(b.marks.size() == 1);

  b.reset();  // as the panicked kernel does after its 30 s
  b.qemu.registers = kKernel;
  b.pass(60 * kSecond);
  CHECK(b.qemu.said == StringList{"inject-nmi"});
}

TEST_CASE("crash and panic are two faults: each has a boot of its own, healing one leaves the other") {
  Bench b;
  b.faults.set_strike(Strike::panic, true);
  b.faults.set_strike(Strike::machine_check, true);
  b.power_on();
  b.qemu.registers = kKernel;
  b.pass(10 * kSecond);
  CHECK(b.qemu.said == StringList{"mce"});
  CHECK(b.faults.wanted(Strike::panic));
  b.reset();
  b.qemu.registers = kKernel;
  b.pass(2 * kSecond);
  b.faults.set_strike(Strike::machine_check, false);
  b.pass(10 * kSecond);
  CHECK(b.qemu.said == StringList{"mce", "inject-nmi"});
}

TEST_CASE("a boot from the network ends the watch over the boot before it, and the panic still waits") {
  Bench b;
  b.faults.set_strike(Strike::panic, true);
  b.power_on();
  b.qemu.registers = kKernel;
  b.pass(2 * kSecond);  // powered off and on for the network before it was struck
  b.faults.power_off();
  b.disk_first = false;
  b.power_on();
  b.qemu.registers = kKernel;
  b.pass(60 * kSecond);
  CHECK(b.qemu.said.empty());
  CHECK(b.faults.wanted(Strike::panic));
}
