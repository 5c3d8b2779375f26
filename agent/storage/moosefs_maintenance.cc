// A chunk server that is away for a while: in maintenance mode its master copies nothing of what it holds. So
// it is only begun when no chunk lacks a copy: the missing one may be what this server has alone.
#include <algorithm>

#include "agent/steps/stack_modules.h"
#include "agent/storage/health.h"
#include "agent/storage/mfscli.h"
#include "agent/storage/parts.h"

namespace muster::steps {
namespace {

constexpr const char* kPort = "9422";
constexpr int kPatience = 600;
constexpr int kRegisters = 180;  // seconds; a chunk server that has just begun

Result<bool> wants_maintenance(const Json& params) {
  const std::string state = text_of(params, "state");
  if (state != "on" && state != "off")
    return fail(Code::invalid, "moosefs_maintenance: 'state' is on or off, not '" + state + "'");
  return state == "on";
}

// The master's state: "maintenance_off", "maintenance_on", "maintenance_tmp_on" (a minute by itself after a
// server said goodbye), "-" where this master does not lead.
Result<std::string> mode_of(StepContext& context, const Json& params) {
  TRY(const std::string out, mfscli(context, text_of(params, "master"), {"-SCS"}));
  const std::string own = text_of(params, "address");
  for (const auto& line : lines_of(out)) {
    const auto fields = split(line, '|');
    if (fields.size() > 7 && fields[0] == "chunk servers:" && fields[1] == own) return fields[7];
  }
  return fail(Code::not_found, "the master has no chunk server " + own);
}

bool is_on(const std::string& mode) { return mode == "maintenance_on"; }

// "" where every chunk has all its copies.
Result<std::string> lacking_chunks(StepContext& context, const Json& params) {
  TRY(const std::string out, mfscli(context, text_of(params, "master"), {"-SIN"}));
  return moosefs_wrong(out);
}

// A master that does not answer now is no reason to stop: apply waits for it. A chunk server that it does not
// know has nothing to be kept from being copied.
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

// Before it begins, the chunks are waited for; before it ends, a chunk server that has just begun.
Status wait_for_master(StepContext& context, const Json& params, bool begins) {
  const int64_t seconds = int_of(params, "deadline_seconds", kPatience);
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
  TRY(auto told,
      mfscli(context, text_of(params, "master"),
             {std::string(wanted ? "-CM1/" : "-CM0/") + text_of(params, "address") + "/" + kPort}));
  (void)told;
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
      "While its chunk server is in maintenance mode, the master copies nothing that this node holds "
      "although it is away. The mode is set only when no chunk is missing, endangered or undergoal, and not "
      "at all if that takes too long.";
  m.parameters = Json::array(
      {parameter("master", "string", true, "address of the master"),
       parameter("address", "string", true, "own address"), parameter("state", "string", true, "on | off"),
       parameter("deadline_seconds", "int", false, "for chunks to have their copies", kPatience)});
  m.check = check_maintenance;
  m.apply = apply_maintenance;
  m.verify = verify_maintenance;
  return m;
}

}  // namespace muster::steps
