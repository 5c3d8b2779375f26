// For a chunk server that is away for a while: in maintenance mode the master does not copy its chunks
// elsewhere. So the mode is switched on only if no chunk lacks a copy, because this server may have the only
// one.
#include <algorithm>

#include "agent/steps/step_modules.h"
#include "agent/storage/health.h"
#include "agent/storage/moosefs.h"

namespace muster::steps {
namespace {

constexpr const char* kPort = "9422";
constexpr int kRegisters = 180;  // seconds until a chunk server that has just started is registered

enum class Maintenance { on, off };
constexpr Words<Maintenance, 2> kMaintenance = {{{Maintenance::on, "on"}, {Maintenance::off, "off"}}};
MUSTER_WORDS(Maintenance, kMaintenance)

struct WantedMaintenance {
  std::string master, address;
  Maintenance state = Maintenance::on;
  int64_t deadline_seconds = 600;
};
MUSTER_PARAMETERS(WantedMaintenance, required(master, "address of the master"),
                  required(address, "address of this node"), required(state, "on | off"),
                  optional(deadline_seconds, "how long to wait until all chunks have their copies"))

// Returns the master's state: "maintenance_off", "maintenance_on", "maintenance_tmp_on" (set automatically
// for a minute after a server disconnects), "-" if this master is not the leader.
Result<std::string> mode_of(StepContext& context, const WantedMaintenance& want) {
  TRY(const std::string out, mfscli(context, want.master, {"-SCS"}));
  for (const auto& line : split_lines(out)) {
    const auto fields = split(line, '|');
    if (fields.size() > 7 && fields[0] == "chunk servers:" && fields[1] == want.address) return fields[7];
  }
  return fail(Code::not_found, "the master lists no chunk server " + want.address);
}

bool is_on(const std::string& mode) { return mode == "maintenance_on"; }

// Returns "" if every chunk has all its copies.
Result<std::string> lacking_chunks(StepContext& context, const WantedMaintenance& want) {
  TRY(const std::string out, mfscli(context, want.master, {"-SIN"}));
  return moosefs_wrong(out);
}

// A master that does not respond now is not an error: apply waits for it. It is an error to turn maintenance
// mode on for a chunk server that the master does not list.
Result<CheckResult> check_maintenance(StepContext& context, const WantedMaintenance& want) {
  const bool wanted = want.state == Maintenance::on;
  const auto mode = mode_of(context, want);
  if (!mode.ok() && wanted && mode.error().code == Code::not_found) return mode.error();
  if (!mode.ok()) return differs(mode.error().message);
  if (is_on(*mode) != wanted) return differs("the master reports " + *mode);
  if (!wanted) return holds();
  const auto lacking = lacking_chunks(context, want);
  if (!lacking.ok()) return differs(lacking.error().message);
  return lacking->empty() ? holds() : differs(*lacking);
}

// Before switching on, waits for the chunks; before switching off, for a chunk server that has just started.
Status wait_for_master(StepContext& context, const WantedMaintenance& want) {
  const int64_t seconds = want.deadline_seconds;
  if (want.state == Maintenance::on)
    return wait_for_storage(context, seconds, [&] { return lacking_chunks(context, want); });
  return wait_for_storage(context, std::min<int64_t>(seconds, kRegisters), [&]() -> Result<std::string> {
    TRY_(mode_of(context, want));
    return std::string();
  });
}

Status apply_maintenance(StepContext& context, const WantedMaintenance& want) {
  TRY_(wait_for_master(context, want));
  const std::string verb = want.state == Maintenance::on ? "-CM1/" : "-CM0/";
  TRY_(mfscli(context, want.master, {verb + want.address + "/" + kPort}));
  return Ok{};
}

Status verify_maintenance(StepContext& context, const WantedMaintenance& want) {
  TRY(const std::string mode, mode_of(context, want));
  return is_on(mode) == (want.state == Maintenance::on) ? Status(Ok{})
                                                        : fail(Code::failed, "the master reports " + mode);
}

}  // namespace

StepModule moosefs_maintenance_module() {
  return step_module<WantedMaintenance>({
      .name = "moosefs_maintenance",
      .help =
          "Turns maintenance mode on or off for this node's chunk server. While it is on, the master does "
          "not "
          "copy this node's chunks to other nodes, even when the node is down. The mode is turned on only "
          "once no chunk is missing, endangered or undergoal, and not at all if that takes too long.",
      .check = check_maintenance,
      .apply = apply_maintenance,
      .verify = verify_maintenance,
  });
}

}  // namespace muster::steps
