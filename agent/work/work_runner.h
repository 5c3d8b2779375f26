// RealWorkRunner: carries out orders on this machine, in one worker thread.
//
// Owned by agent/main.cc. Writing images and rebooting are passed in as functions, because they differ
// between the RAM system and an installed one. An order whose function is missing is rejected (a RAM-system
// order sent to an installed agent, for example), as is one of an unknown kind. The result of an inventory is
// HardwareFacts as JSON; that of steps and checks is defined in agent/core/step_runner.h. Thread: as
// specified by WorkRunner; the functions run in the worker thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/core/runner.h"
#include "agent/work/carried_programs.h"
#include "sys/clock.h"
#include "sys/os.h"
#include "sys/reactor.h"

namespace muster {

using CancelCheck = std::function<bool()>;
inline void wait_a_second() { std::this_thread::sleep_for(std::chrono::seconds(1)); }
struct WorkFunctions {
  std::function<Result<Json>(const wire::WorkOrder& order, const WorkRunner::Emit& emit,
                             const CancelCheck& cancelled)>
      image = {};
  // Prepares the change to the RAM system. `leave_ready` carries it out, through this system's service
  // manager; `drop_ready` unloads the RAM system instead.
  std::function<Result<Json>(const wire::WorkOrder& order, const CancelCheck& cancelled)> kexec = {};
  std::function<Status()> leave_ready = {}, drop_ready = {};
  // For the root slot that this system does not run from: `write_slot` writes it, `boot_slot` prepares one
  // boot from it, `leave_slot` starts that boot, and `drop_slot` undoes the preparation.
  std::function<Result<Json>(const wire::WorkOrder& order, const WorkRunner::Emit& emit,
                             const CancelCheck& cancelled)>
      write_slot = {};
  std::function<Result<Json>(const Json& params)> boot_slot = {};
  // `ended`: this process is being stopped, so the restart has begun. `withdrawn`: the restart must be undone
  // as far as possible; it may still happen.
  std::function<Status(const CancelCheck& ended, const CancelCheck& withdrawn)> leave_slot = {};
  std::function<Status()> drop_slot = {};
  // After success these do not return, because this process ends.
  using Depart = std::function<Status(const Json& params, const CancelCheck& ended)>;
  Depart boot_disk = {}, reboot = {}, power_off = {};
  // Prepares the programs that an order lists (at least one): name -> path. `params` are the order's. If the
  // function is missing, such an order is rejected.
  std::function<Result<std::map<std::string, std::string>>(
      const Json& params, const std::vector<CarriedProgram>& programs, const CancelCheck& cancelled)>
      programs = {};
  std::string folder = "/run";  // StepContext::folder

  std::function<void()> a_second = wait_a_second;  // between two checks of preconditions
  std::function<int64_t()> now = monotonic_ms;
};

std::unique_ptr<WorkRunner> make_work_runner(Reactor& reactor, Files& files, Process& process,
                                             std::string node, WorkFunctions functions);

}  // namespace muster
