// BootFaults: what goes wrong between a machine's power-on or reset and its running system: firmware tests
// that take their time, a system that dies once.
//
// Firmware tests: the machine is stopped for as long, from power-on (QEMU starts it stopped) and again from
// each reset on, whoever caused it. The BMC says On meanwhile. At their end the machine is reset once more,
// by us, so that the boot order is the one that holds now, and goes on. Strikes: a kernel is recognised by
// where the processor executes; some seconds later it gets an uncorrectable machine check, which it cannot
// outlive, without anything in it that helps, or a non-maskable interrupt that nobody claims, on which the
// lab's kernel options have it panic: a real panic, with its text on the console.
// Thread: any; one mutex inside, not held while QMP is called. saw_reset() belongs to QMP's reader thread,
// everything that takes a Qmp to the machine's worker.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/steady.h"
#include "lab/qmp.h"

namespace muster::lab {

// A kernel executes, to judge by the answer to QEMU's `info registers`: firmware and boot loaders run in the
// lower half of the address space, programs too.
bool kernel_executes(const std::string& registers);

// What a kernel dies of, once.
enum class Strike {
  machine_check,  // that of the next boot, RAM system or installed one
  panic,          // that of the next boot from disk; boots from the network are left alone
};

class BootFaults {
 public:
  using Clock = std::function<SteadyMs()>;
  using Mark = std::function<void(const std::string&)>;  // a line for the machine's console log
  BootFaults(Clock now, Mark mark) : now_(std::move(now)), mark_(std::move(mark)) {}

  // From the next power-on or reset on; 0: none, and tests that are under way end now.
  void set_tests(DurationMs length);
  void set_strike(Strike strike, bool wanted);
  bool wanted(Strike strike) const;  // false again when it was carried out
  // How much longer the firmware tests of this moment take; unset: there are none under way.
  std::optional<DurationMs> testing() const;

  // Power-on: true when QEMU has to start the machine stopped.
  bool power_on();
  void power_off();
  // One more RESET event; its number.
  uint64_t saw_reset();
  // That event's turn on the worker. True: a boot begins, which the BMC has to know.
  bool was_reset(Qmp& qmp, uint64_t number);
  // A boot begins: what waits for the next system waits for this one. `from_disk`: a drive with a system.
  void booting(bool from_disk);
  // When tick() has something to do.
  std::optional<SteadyMs> wake_at() const;
  // True: firmware tests are over, and a boot begins.
  bool tick(Qmp& qmp);

 private:
  bool begin_tests();
  bool finish_tests(Qmp& qmp);
  void watch_kernel(Qmp& qmp);

  const Clock now_;
  const Mark mark_;
  mutable std::mutex mutex_;
  std::condition_variable reset_seen_;
  DurationMs length_ = 0;
  std::optional<SteadyMs> tests_end_;
  uint64_t resets_ = 0, own_resets_ = 0;  // events up to own_resets_ were caused by the end of tests
  std::set<Strike> wanted_;
  Strike aimed_ = Strike::machine_check;  // of wanted_, at the boot that is watched
  std::optional<SteadyMs> next_look_;     // while a boot is watched for its kernel
  std::optional<SteadyMs> kernel_since_;
};

}  // namespace muster::lab
