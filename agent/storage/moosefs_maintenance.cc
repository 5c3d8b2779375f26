// For a chunk server that is away for a while: in maintenance mode the master does not copy its chunks
// elsewhere. So the mode is switched on only if no chunk lacks a copy, because this server may have the only
// one.
#include <algorithm>

#include "agent/steps/stack_modules.h"
#include "agent/storage/health.h"
#include "agent/storage/mfscli.h"
#include "agent/storage/parts.h"

namespace muster::steps {
namespace {

constexpr const char* kPort = "9422";
constexpr int kChunksSeconds = 600;
constexpr int kRegisters = 180;  // seconds until a chunk server that has just started is registered

Result<bool> wants_maintenance(const Json& params) {
  const std::string state = text_of(params, "state");
  if (state != "on" && state != "off")
    return fail(Code::invalid, "moosefs_maintenance: 'state' must be on or off, not '" + state + "'");
  return state == "on";
}

// Returns the master's state: "maintenance_off", "maintenance_on", "maintenance_tmp_on" (set automatically
// for a minute after a server disconnects), "-" if this master is not the leader.
Result<std::string> mode_of(StepContext& context, const Json& params) {
  TRY(const std::string out, mfscli(context, text_of(params, "master"), {"-SCS"}));
  const std::string own = text_of(params, "address");
  for (const auto& line : lines_of(out)) {
    const auto fields = split(line, '|');
    if (fields.size() > 7 && fields[0] == "chunk servers:" && fields[1] == own) return fields[7];
  }
  return fail(Code::not_found, "the master lists no chunk server " + own);
}

bool is_on(const std::string& mode) { return mode == "maintenance_on"; }

// Returns "" if every chunk has all its copies.
Result<std::string> lacking_chunks(StepContext& context, const Json& params) {
  TRY(const std::string out, mfscli(context, text_of(params, "master"), {"-SIN"}));
  return moosefs_wrong(out);
}

// A master that does not respond now is not an error: apply waits for it. It is an error to turn maintenance
// mode on for a chunk server that the master does not list.
Result<CheckResult> check_maintenance(StepContext& context, const Json& params) {
  TRY(const bool wanted, wants_maintenance(params));
  const auto mode = mode_of(context, params);
  if (!mode.ok() && wanted && mode.error().code == Code::not_found) return mode.error();
  if (!mode.ok()) return differs(mode.error().message);
  if (is_on(*mode) != wanted) return differs("the master reports " + *mode);
  if (!wanted) return holds();
  const auto lacking = lacking_chunks(context, params);
  if (!lacking.ok()) return differs(lacking.error().message);
  return lacking->empty() ? holds() : differs(*lacking);
}

// Before switching on, waits for the chunks; before switching off, for a chunk server that has just started.
Status wait_for_master(StepContext& context, const Json& params, bool begins) {
  const int64_t seconds = int_of(params, "deadline_seconds", kChunksSeconds);
  if (begins) return wait_for_storage(context, seconds, [&] { return lacking_chunks(context, params); });
  return wait_for_storage(context, std::min<int64_t>(seconds, kRegisters), [&]() -> Result<std::string> {
    TRY(const std::string mode, mode_of(context, params));
    (void)mode;
    return std::string();
  });
}

Status apply_maintenance(StepContext& context, const Json& params) {
  TRY(const bool wanted, wants_maintenance(params));
  TRY_(wait_for_master(context, params, wanted));
  TRY(auto result,
      mfscli(context, text_of(params, "master"),
             {std::string(wanted ? "-CM1/" : "-CM0/") + text_of(params, "address") + "/" + kPort}));
  (void)result;
  return Ok{};
}

Status verify_maintenance(StepContext& context, const Json& params) {
  TRY(const bool wanted, wants_maintenance(params));
  TRY(const std::string mode, mode_of(context, params));
  return is_on(mode) == wanted ? Status(Ok{}) : fail(Code::failed, "the master reports " + mode);
}

}  // namespace

StepModule moosefs_maintenance_module() {
  StepModule m;
  m.name = "moosefs_maintenance";
  m.help =
      "Turns maintenance mode on or off for this node's chunk server. While it is on, the master does not "
      "copy this node's chunks to other nodes, even when the node is down. The mode is turned on only once "
      "no chunk is missing, endangered or undergoal, and not at all if that takes too long.";
  m.parameters =
      Json::array({parameter("master", "string", true, "address of the master"),
                   parameter("address", "string", true, "address of this node"),
                   parameter("state", "string", true, "on | off"),
                   parameter("deadline_seconds", "int", false,
                             "how long to wait until all chunks have their copies", kChunksSeconds)});
  m.check = check_maintenance;
  m.apply = apply_maintenance;
  m.verify = verify_maintenance;
  return m;
}

}  // namespace muster::steps
