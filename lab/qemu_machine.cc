#include "lab/qemu_machine.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>

#include "sys/clock.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster::lab {
namespace {

std::string clock_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return to_iso8601(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

Status create_sparse(const std::string& path, int64_t size) {
  if (std::filesystem::exists(path)) return Ok{};
  TRY_(Files("/").write_raw(path, ""));
  if (truncate(path.c_str(), size) != 0)
    return fail(Code::failed, path + ": cannot be extended to the drive's size");
  return Ok{};
}

}  // namespace

QemuMachine::QemuMachine(LabDir dir, LabNode node, QemuHost host)
    : dir_(std::move(dir)),
      host_(std::move(host)),
      boot_faults_(steady_now, [this](const std::string& text) { mark_console(text); }),
      node_(std::move(node)) {
  auto running = read_pid_file(dir_.node(node_.name, "qemu.pid"));
  if (running && alive(*running)) child_ = *running;
  worker_ = std::thread([this] { work(); });
}

QemuMachine::~QemuMachine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  worker_.join();
}

Status QemuMachine::prepare() {
  Files files("/");
  TRY_(files.make_directories(dir_.node(node_.name), 0750));
  for (const auto& drive : node_.drives)
    TRY_(create_sparse(drive_file(dir_, node_, drive), drive.size_bytes));
  const auto variables = dir_.node(node_.name, "vars.fd");
  if (files.exists(variables)) return Ok{};
  std::error_code error;
  std::filesystem::copy_file(host_.variables, variables, error);
  if (error) return fail(Code::not_found, host_.variables + ": " + error.message() + " (package ovmf)");
  return Ok{};
}

bool QemuMachine::running() {
  std::lock_guard lock(mutex_);
  if (child_.pid == 0) return false;
  waitpid(child_.pid, nullptr, WNOHANG);  // no zombies
  if (alive(child_)) return true;
  child_ = {};
  return false;
}

void QemuMachine::start() {
  post([this] { do_start(); });
}
void QemuMachine::cut_power() {
  post([this] { do_cut(); });
}

void QemuMachine::reset() {
  post([this] {
    if (!qmp_ || !running()) return;
    mark_console("reset");
    if (auto done = qmp_->execute("system_reset"); !done) note("reset: " + done.error().message);
  });
}

void QemuMachine::press_power() {
  post([this] {
    if (!qmp_ || !running()) return;
    mark_console("power button");
    if (boot_faults_.testing()) return;  // no listener yet
    if (auto done = qmp_->execute("system_powerdown"); !done) note("power button: " + done.error().message);
  });
}

void QemuMachine::set_boot_first(BootFirst first) {
  {
    std::lock_guard lock(mutex_);
    if (first_ == first) return;
    first_ = first;
  }
  post([this] { write_boot_order(); });
}

void QemuMachine::set_dead_power_button(bool dead) {
  std::lock_guard lock(mutex_);
  dead_button_ = dead;
}

void QemuMachine::set_firmware_tests(DurationMs length) {
  boot_faults_.set_tests(length);
  post([] {});  // the time of the next action may have changed
}

LabNode QemuMachine::node() {
  std::lock_guard lock(mutex_);
  return node_;
}

Status QemuMachine::throttle(const std::string& drive, int64_t bytes_per_second) {
  {
    std::lock_guard lock(mutex_);
    const bool known =
        std::any_of(node_.drives.begin(), node_.drives.end(), [&](auto& d) { return d.name == drive; });
    if (!known) return fail(Code::not_found, node_.name + " has no drive named " + drive);
    throttles_[drive] = bytes_per_second;
  }
  post([this] { apply_throttles(); });
  settle();
  return Ok{};
}

void QemuMachine::set_cable(const std::string& network, bool plugged) {
  {
    std::lock_guard lock(mutex_);
    if (plugged)
      pulled_.erase(network);
    else
      pulled_.insert(network);
  }
  post([this, network, plugged] {
    if (qmp_ && running()) set_link(network, plugged);
  });
}

Status QemuMachine::add_drive(const LabDrive& drive) {
  std::lock_guard lock(mutex_);
  for (const auto& other : node_.drives)
    if (other.name == drive.name)
      return fail(Code::conflict, node_.name + " already has a drive named " + drive.name);
  TRY_(create_sparse(drive_file(dir_, node_, drive), drive.size_bytes));
  node_.drives.push_back(drive);
  return Ok{};
}

void QemuMachine::settle() {
  auto done = std::make_shared<std::promise<void>>();
  auto finished = done->get_future();
  post([done] { done->set_value(); });
  finished.wait();
}

void QemuMachine::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_all();
}

void QemuMachine::work() {
  if (running()) adopt();
  for (;;) {
    if (auto task = next_task()) {
      task();
      continue;
    }
    {
      std::lock_guard lock(mutex_);
      if (stop_ && tasks_.empty()) break;  // earlier commands are carried out
    }
    tick();
  }
  qmp_.reset();
}

std::function<void()> QemuMachine::next_task() {
  const auto at = boot_faults_.wake_at();
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return stop_ || !tasks_.empty(); };
  if (at)
    wake_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::milliseconds(at->ms)), ready);
  else
    wake_.wait(lock, ready);
  if (tasks_.empty()) return {};
  auto task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void QemuMachine::tick() {
  if (!qmp_ || !running()) return boot_faults_.power_off();
  if (boot_faults_.tick(*qmp_)) report_boot();
}

Result<std::unique_ptr<Qmp>> QemuMachine::connect(DurationMs deadline) {
  return Qmp::connect(dir_.node(node_.name, "qmp.sock"), deadline, [this](auto& event, auto&) {
    if (event != "RESET") return;
    post([this, number = boot_faults_.saw_reset()] {
      if (!qmp_ || boot_faults_.was_reset(*qmp_, number)) report_boot();
    });
  });
}

// Adopts a QEMU process that outlived the process that started it; its control socket is free again. How much
// longer firmware tests should have paused it is unknown.
void QemuMachine::adopt() {
  auto qmp = connect(5 * kSecond);
  if (!qmp) return;
  qmp_ = std::move(*qmp);
  auto state = qmp_->execute("query-status");
  if (!state || state->value("running", true)) return;
  take_down_dark_links();
  if (auto done = qmp_->execute("cont"); !done) note("cont: " + done.error().message);
}

void QemuMachine::take_down_dark_links() {
  std::set<std::string> dark;
  {
    std::lock_guard lock(mutex_);
    dark = pulled_;
    for (const auto& port : node_.ports)
      if (!port.cabled) dark.insert(port.network);
  }
  for (const auto& network : dark) set_link(network, false);
}

void QemuMachine::set_link(const std::string& network, bool up) {
  auto done = qmp_->execute("set_link", {{"name", nic_device_id(network)}, {"up", up}});
  if (!done) note("link of " + network + ": " + done.error().message);
}

void QemuMachine::do_start() {
  if (running()) return;
  Spawn spawn_qemu;
  bool dark = false;
  {
    std::lock_guard lock(mutex_);
    if (dead_button_) return;
    dark = has_dark_ports(node_) || !pulled_.empty();
    spawn_qemu.argv = qemu_args(dir_, node_, host_, first_);
  }
  qmp_.reset();
  const bool tests = boot_faults_.power_on();
  if (tests || dark) spawn_qemu.argv.push_back("-S");
  spawn_qemu.log = dir_.node(node_.name, "qemu.log");
  spawn_qemu.mark = dir_.node(node_.name) + "/";
  if (auto removed = Files("/").remove(dir_.node(node_.name, "qmp.sock")); !removed)
    note(removed.error().message);
  mark_console("power on");
  auto child = spawn(spawn_qemu);
  if (!child) return note("start: " + child.error().message);
  {
    std::lock_guard lock(mutex_);
    child_ = *child;
  }
  if (auto written = write_pid_file(dir_.node(node_.name, "qemu.pid"), *child); !written)
    note("pid file: " + written.error().message);
  auto qmp = connect(20 * kSecond);
  if (!qmp) return note("start: " + qmp.error().message);
  qmp_ = std::move(*qmp);
  apply_throttles();
  take_down_dark_links();
  if (tests) return;  // continues when they are over
  if (dark) {
    if (auto done = qmp_->execute("cont"); !done) note("cont: " + done.error().message);
  }
  // QMP responds only after QEMU's initial reset: the order for this boot has been read.
  report_boot();
}

void QemuMachine::do_cut() {
  ChildId child;
  {
    std::lock_guard lock(mutex_);
    child = child_;
  }
  if (child.pid == 0) return;
  boot_faults_.power_off();
  mark_console("power off");
  if (auto ended = terminate(child, 0); !ended) note("power off: " + ended.error().message);
  qmp_.reset();
  running();  // reaps
}

void QemuMachine::on_boot(std::function<void()> booted) {
  std::lock_guard lock(mutex_);
  booted_ = std::move(booted);
}

// True if something was written to the boot drive: the firmware skips an empty drive, and tries the network.
bool QemuMachine::boots_from_disk() {
  std::lock_guard lock(mutex_);
  if (first_ != BootFirst::disk) return false;
  return std::any_of(node_.drives.begin(), node_.drives.end(), [&](const LabDrive& drive) {
    struct stat file = {};
    return drive.boot && stat(drive_file(dir_, node_, drive).c_str(), &file) == 0 && file.st_blocks > 0;
  });
}

void QemuMachine::report_boot() {
  boot_faults_.booting(boots_from_disk());
  std::function<void()> booted;
  {
    std::lock_guard lock(mutex_);
    booted = booted_;
  }
  if (booted) booted();
}

void QemuMachine::write_boot_order() {
  if (!qmp_ || !running()) return;  // the next start reads the boot order from first_
  std::vector<BootIndex> writes;
  {
    std::lock_guard lock(mutex_);
    writes = boot_index_writes(node_, first_);
  }
  for (const auto& write : writes) {
    auto done = qmp_->execute(
        "qom-set",
        {{"path", "/machine/peripheral/" + write.device}, {"property", "bootindex"}, {"value", write.index}});
    if (!done) note("boot order: " + done.error().message);
  }
}

void QemuMachine::apply_throttles() {
  if (!qmp_ || !running()) return;
  std::map<std::string, int64_t> limits;
  {
    std::lock_guard lock(mutex_);
    limits = throttles_;
  }
  for (const auto& [drive, rate] : limits) {
    auto done = qmp_->execute("block_set_io_throttle", {{"device", drive},
                                                        {"bps", rate},
                                                        {"bps_rd", 0},
                                                        {"bps_wr", 0},
                                                        {"iops", 0},
                                                        {"iops_rd", 0},
                                                        {"iops_wr", 0}});
    if (!done) note("throttle " + drive + ": " + done.error().message);
  }
}

void QemuMachine::note(const std::string& text) { log::warning(text, {{"node", node_.name}}); }

void QemuMachine::mark_console(const std::string& text) {
  std::ofstream out(dir_.node(node_.name, "console.log"), std::ios::app);
  out << "\r\n=== " << clock_text() << " muster lab: " << text << " ===\r\n";
}

}  // namespace muster::lab
