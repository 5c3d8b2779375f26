#include "lab/boot_faults.h"

#include <chrono>

#include "sys/log.h"

namespace muster::lab {
namespace {

constexpr DurationMs kLookEvery = kSecond;
// Time from the first observed kernel instruction until its machine check handler is certainly installed; an
// emulated kernel on a busy host takes a second or two for that.
constexpr DurationMs kKernelSettles = 5 * kSecond;
constexpr DurationMs kResetWithin = 5 * kSecond;
// Processor 0, bank 1: valid, uncorrected, enabled, processor context corrupt; machine check in progress,
// no valid return address.
constexpr const char* kMachineCheck = "mce 0 1 0xb200000000000000 0x4 0 0";

std::string monitor(Qmp& qmp, const std::string& line) {
  auto reply = qmp.execute("human-monitor-command", {{"command-line", line}});
  return reply && reply->is_string() ? reply->get<std::string>() : std::string();
}

void send_command(Qmp& qmp, const std::string& command) {
  if (auto done = qmp.execute(command); !done) log::warning(command + ": " + done.error().message);
}

}  // namespace

bool kernel_executes(const std::string& registers) {
  const auto at = registers.find("RIP=");
  return at != std::string::npos && registers.compare(at + 4, 8, "ffffffff") == 0;
}

void BootFaults::set_tests(DurationMs length) {
  std::lock_guard lock(mutex_);
  length_ = length;
  if (length == 0 && tests_end_) tests_end_ = now_();
}

void BootFaults::set_strike(Strike strike, bool wanted) {
  std::lock_guard lock(mutex_);
  if (wanted)
    wanted_.insert(strike);
  else
    wanted_.erase(strike);
  if (aimed_ == strike) next_look_.reset();  // meant for the next system, not for the one that runs now
}

bool BootFaults::wanted(Strike strike) const {
  std::lock_guard lock(mutex_);
  return wanted_.count(strike) > 0;
}

std::optional<DurationMs> BootFaults::testing() const {
  std::lock_guard lock(mutex_);
  if (!tests_end_) return std::nullopt;
  return std::max<DurationMs>(0, *tests_end_ - now_());
}

bool BootFaults::begin_tests() {
  DurationMs length;
  {
    std::lock_guard lock(mutex_);
    length = length_;
    next_look_.reset();
    tests_end_.reset();
    if (length > 0) tests_end_ = now_() + length;
  }
  if (length > 0) mark_("firmware tests, " + to_human(length));
  return length > 0;
}

bool BootFaults::power_on() { return begin_tests(); }

void BootFaults::power_off() {
  std::lock_guard lock(mutex_);
  tests_end_.reset();
  next_look_.reset();
}

uint64_t BootFaults::saw_reset() {
  std::lock_guard lock(mutex_);
  reset_seen_.notify_all();
  return ++resets_;
}

bool BootFaults::was_reset(Qmp& qmp, uint64_t number) {
  {
    std::lock_guard lock(mutex_);
    if (number <= own_resets_) return false;
  }
  if (!begin_tests()) return true;
  send_command(qmp, "stop");
  return false;
}

void BootFaults::booting(bool from_disk) {
  std::lock_guard lock(mutex_);
  kernel_since_.reset();
  next_look_.reset();
  for (const auto strike : {Strike::machine_check, Strike::panic}) {
    if (!wanted_.count(strike) || (strike == Strike::panic && !from_disk)) continue;
    aimed_ = strike;
    next_look_ = now_() + kLookEvery;
    return;  // one crash only
  }
}

std::optional<SteadyMs> BootFaults::wake_at() const {
  std::lock_guard lock(mutex_);
  return tests_end_ ? tests_end_ : next_look_;
}

bool BootFaults::tick(Qmp& qmp) {
  const auto at = wake_at();
  if (!at || now_() < *at) return false;
  if (testing()) return finish_tests(qmp);
  watch_kernel(qmp);
  return false;
}

bool BootFaults::finish_tests(Qmp& qmp) {
  uint64_t before;
  {
    std::lock_guard lock(mutex_);
    before = resets_;
    tests_end_.reset();
  }
  send_command(qmp, "system_reset");  // also undoes what ran between a reset and our stop
  {
    std::unique_lock lock(mutex_);
    reset_seen_.wait_for(lock, std::chrono::milliseconds(kResetWithin), [&] { return resets_ > before; });
    own_resets_ = resets_;
  }
  mark_("firmware tests have ended");
  send_command(qmp, "cont");
  return true;
}

void BootFaults::watch_kernel(Qmp& qmp) {
  const bool executes = kernel_executes(monitor(qmp, "info registers"));
  Strike strike;
  {
    std::lock_guard lock(mutex_);
    if (!next_look_) return;  // healed meanwhile
    const auto now = now_();
    next_look_ = now + kLookEvery;
    if (executes && !kernel_since_) kernel_since_ = now;
    if (!kernel_since_ || now - *kernel_since_ < kKernelSettles) return;
    next_look_.reset();
    strike = aimed_;
    wanted_.erase(strike);
  }
  if (strike == Strike::panic) {
    mark_("a non-maskable interrupt, on which the kernel panics");
    return send_command(qmp, "inject-nmi");
  }
  mark_("an uncorrectable machine check");
  // QEMU prints only errors.
  if (const auto refused = monitor(qmp, kMachineCheck); !refused.empty())
    log::warning("machine check: " + refused);
}

}  // namespace muster::lab
