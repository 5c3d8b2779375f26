// QemuMachine: a Machine implemented by a QEMU process; off means that no process is running.
//
// One thread per machine executes commands in order. QEMU outlives this process, and the next one adopts it
// through its PID file. A reset regenerates the firmware's boot order from the boot indexes, so they are
// written over QMP whenever the order changes, and the on_boot() callback is called on QEMU's RESET event,
// after the order for that boot has been read. Also implements the hardware faults of `muster lab break`:
// dead power button, power cut, slow drive, extra drive, and those of lab/boot_faults.h. Links of ports
// without a cable are taken down before the machine's first instruction.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "lab/boot_faults.h"
#include "lab/child.h"
#include "lab/lab_dir.h"
#include "lab/machine.h"
#include "lab/qmp.h"

namespace muster::lab {

class QemuMachine : public Machine {
 public:
  QemuMachine(LabDir dir, LabNode node, QemuHost host);
  ~QemuMachine() override;  // leaves QEMU running

  // Creates missing drives and firmware variables. Must be called before the first start().
  Status prepare();

  bool running() override;
  void start() override;
  void cut_power() override;
  void reset() override;
  void press_power() override;
  void set_boot_first(BootFirst first) override;
  void on_boot(std::function<void()> booted) override;

  void set_dead_power_button(bool dead);
  // Limits a drive's reads and writes, in bytes per second; 0: no limit. Also applies to later starts.
  Status throttle(const std::string& drive, int64_t bytes_per_second);
  // Unplugs or plugs the cable of the port on that network. Also applies to later starts.
  void set_cable(const std::string& network, bool plugged);
  // The guest sees it from the next start on.
  Status add_drive(const LabDrive& drive);
  // At each power-on and reset; 0: none.
  void set_firmware_tests(DurationMs length);
  std::optional<DurationMs> testing() const { return boot_faults_.testing(); }
  void set_strike(Strike strike, bool wanted) { boot_faults_.set_strike(strike, wanted); }
  bool wanted(Strike strike) const { return boot_faults_.wanted(strike); }
  LabNode node();
  // Waits until every command given so far has been carried out.
  void settle();

 private:
  void post(std::function<void()> task);
  void work();
  std::function<void()> next_task();  // empty: none yet, or the machine is being destroyed
  void do_start();
  void do_cut();
  void adopt();
  Result<std::unique_ptr<Qmp>> connect(DurationMs deadline);
  void take_down_dark_links();
  void set_link(const std::string& network, bool up);
  void tick();
  void report_boot();
  bool boots_from_disk();
  void write_boot_order();
  void note(const std::string& text);  // one line in qemu.log
  void mark_console(const std::string& text);
  void apply_throttles();

  const LabDir dir_;
  const QemuHost host_;
  BootFaults boot_faults_;

  std::mutex mutex_;  // guards the members below; not held while calling QMP or booted_
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::function<void()> booted_;
  LabNode node_;
  BootFirst first_ = BootFirst::disk;
  ChildId child_;
  bool dead_button_ = false;
  std::map<std::string, int64_t> throttles_;
  std::set<std::string> pulled_;  // networks whose cable is unplugged

  std::unique_ptr<Qmp> qmp_;  // worker thread only
  std::thread worker_;
};

}  // namespace muster::lab
