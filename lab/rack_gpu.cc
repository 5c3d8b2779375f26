// The part of Rack that breaks simulated GPUs. Their simulated driver runs in the guest (lab/stub-gpu/), so
// the fault is injected over ssh, in the running system.
#include <fmt/format.h>

#include "lab/child.h"
#include "lab/lab.h"
#include "lab/rack_slot.h"

namespace muster::lab {
namespace {

constexpr const char* kFault = "/usr/lib/muster-standin/fault";
constexpr int kFellOffTheBus = 79;  // NVIDIA's Xid catalogue

}  // namespace

Result<std::string> Rack::break_gpu(Slot& slot, const Break& request) {
  const auto node = slot.machine->node();
  if (request.gpu >= node.gpus)
    return fail(Code::not_found,
                fmt::format("{} has {} simulated GPUs (lab.gpus), numbered from 0: there is no GPU {}",
                            node.name, node.gpus, request.gpu));
  if (!slot.machine->running()) return fail(Code::conflict, node.name + " is off");
  std::vector<std::string> remote = {"sudo", kFault, request.heal ? "heal" : "xid",
                                     std::to_string(request.gpu)};
  if (!request.heal) remote.push_back(std::to_string(kFellOffTheBus));
  TRY(const auto argv, ssh_command(options_.dir, node.name, remote));
  TRY(const auto done, process_.run({.argv = argv, .deadline = 60 * kSecond}));
  if (!done.ok())
    return fail(Code::failed, fmt::format("{}: the simulated driver did not accept the fault: {}{}",
                                          node.name, done.out, done.err));
  if (request.heal) return fmt::format("{} {} answers again", kSimulatedGpu, request.gpu);
  slot.faults[shown_name(request)] = fmt::format("{} {}: Xid {}", kSimulatedGpu, request.gpu, kFellOffTheBus);
  return fmt::format("{} {} fell off the bus (Xid {})", kSimulatedGpu, request.gpu, kFellOffTheBus);
}

}  // namespace muster::lab
