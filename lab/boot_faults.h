// BootFaults: faults while a machine boots, between power-on or reset and its running system: long firmware
// tests, and a system that crashes once.
//
// Firmware tests: the machine is paused for their duration, from power-on (QEMU starts it paused) and after
// each reset of any cause. The BMC reports On meanwhile. At the end the lab resets the machine once more, so
// that the current boot order applies, and resumes it. Crashes: a running kernel is recognised by its
// execution address; some seconds later the lab injects an uncorrectable machine check, which is fatal, or
// an unclaimed non-maskable interrupt, on which the lab's kernel options cause a real panic, with its text
// on the console.
// Thread-safe (one mutex, not held during QMP calls), except: saw_reset() is called on QMP's reader thread,
// functions with a Qmp parameter on the machine's worker thread.
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

// True if a kernel is executing, according to the output of QEMU's `info registers`: firmware, boot loaders
// and user programs run in the lower half of the address space.
bool kernel_executes(const std::string& registers);

enum class Strike {
  machine_check,  // crashes the next kernel that boots, RAM system or installed system
  panic,          // crashes the next kernel that boots from disk; network boots are not affected
};

class BootFaults {
 public:
  using Clock = std::function<SteadyMs()>;
  using Mark = std::function<void(const std::string&)>;  // a line for the machine's console log
  BootFaults(Clock now, Mark mark) : now_(std::move(now)), mark_(std::move(mark)) {}

  // Length of firmware tests from the next power-on or reset on; 0: none, and running tests end now.
  void set_tests(DurationMs length);
  void set_strike(Strike strike, bool wanted);
  bool wanted(Strike strike) const;  // false again once the crash was caused
  // Returns the remaining time of the running firmware tests; unset: none.
  std::optional<DurationMs> testing() const;

  // Called on power-on; true if QEMU must start the machine paused.
  bool power_on();
  void power_off();
  // Records a RESET event; returns its number.
  uint64_t saw_reset();
  // Handles that event on the worker thread. True: a boot begins, which must be reported to the BMC.
  bool was_reset(Qmp& qmp, uint64_t number);
  // Called when a boot begins: pending faults apply to it. `from_disk`: it boots an installed system.
  void booting(bool from_disk);
  // Returns when tick() must be called next; unset: not needed.
  std::optional<SteadyMs> wake_at() const;
  // Does what is due. True: firmware tests have ended, and a boot begins.
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
  uint64_t resets_ = 0, own_resets_ = 0;  // RESET events up to own_resets_ were caused by the end of tests
  std::set<Strike> wanted_;
  Strike aimed_ = Strike::machine_check;  // the fault in wanted_ that applies to the boot being watched
  std::optional<SteadyMs> next_look_;     // while a boot is watched for its kernel
  std::optional<SteadyMs> kernel_since_;
};

}  // namespace muster::lab
