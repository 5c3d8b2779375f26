// BootFaults: faults between a machine's power-on or reset and its running system: long firmware tests, a
// system that crashes once.
//
// Firmware tests: the machine is stopped for their duration, from power-on (QEMU starts it stopped) and after
// each reset of any cause. The BMC reports On meanwhile. At their end the lab resets the machine once more,
// so that the present boot order applies, and it continues. Crashes: a kernel is recognised by its execution
// address; some seconds later it gets an uncorrectable machine check, which it cannot survive, or an
// unclaimed non-maskable interrupt, on which the lab's kernel options make it panic: a real panic, with its
// text on the console.
// Thread: any; one mutex inside, not held while QMP is called. saw_reset() belongs to QMP's reader thread,
// everything with a Qmp parameter to the machine's worker.
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

// The cause of a kernel's crash, once.
enum class Strike {
  machine_check,  // that of the next boot, RAM system or installed one
  panic,          // that of the next boot from disk; boots from the network are not affected
};

class BootFaults {
 public:
  using Clock = std::function<SteadyMs()>;
  using Mark = std::function<void(const std::string&)>;  // a line for the machine's console log
  BootFaults(Clock now, Mark mark) : now_(std::move(now)), mark_(std::move(mark)) {}

  // From the next power-on or reset on; 0: none, and running tests end now.
  void set_tests(DurationMs length);
  void set_strike(Strike strike, bool wanted);
  bool wanted(Strike strike) const;  // false again when it was carried out
  // Remaining time of the present firmware tests; unset: none.
  std::optional<DurationMs> testing() const;

  // Power-on: true when QEMU has to start the machine stopped.
  bool power_on();
  void power_off();
  // One more RESET event; its number.
  uint64_t saw_reset();
  // Handles that event on the worker. True: a boot begins, to be reported to the BMC.
  bool was_reset(Qmp& qmp, uint64_t number);
  // A boot begins: pending faults apply to it. `from_disk`: a drive with a system.
  void booting(bool from_disk);
  // When tick() is due.
  std::optional<SteadyMs> wake_at() const;
  // True: firmware tests have ended, and a boot begins.
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
