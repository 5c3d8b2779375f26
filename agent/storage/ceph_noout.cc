// The noout flag of a node in the CRUSH map: the node's OSDs stay members while the node is away for a
// while, and their data is not copied elsewhere. It is only set if the other nodes have enough replicas of
// everything, because data that was written while a different node was away may not have been copied back
// yet.
#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "agent/storage/ceph_node.h"
#include "agent/storage/parts.h"

namespace muster::steps {
namespace {

enum class Noout { set, unset };
constexpr Words<Noout, 2> kNoout = {{{Noout::set, "set"}, {Noout::unset, "unset"}}};
MUSTER_WORDS(Noout, kNoout)

struct WantedNoout {
  std::string node;
  Noout state = Noout::set;
  int64_t deadline_seconds = 600;
};
MUSTER_PARAMETERS(WantedNoout, required(node, "node name in the CRUSH map"), required(state, "set | unset"),
                  optional(deadline_seconds,
                           "how long to wait until other nodes have copies of the node's data"))

Result<bool> has_flag(StepContext& context, const std::string& node) {
  TRY(const Json dump, ceph_json(context, {"osd", "dump"}));
  const Json flags = dump.value("crush_node_flags", Json::object());
  if (!flags.is_object()) return false;
  const auto own = flags.find(node);
  if (own == flags.end() || !own->is_array()) return false;
  for (const auto& flag : *own)
    if (flag == "noout") return true;
  return false;
}

// Returns why the node's OSDs cannot be stopped now; "" if they can. If all OSDs are on this node, no other
// OSDs can ever take over, so waiting is pointless.
Result<std::string> needed(StepContext& context, const std::string& node) {
  TRY(const auto osds, ceph_osds(context));
  std::vector<int64_t> own;
  for (const auto& osd : osds)
    if (osd.host == node) own.push_back(osd.id);
  if (own.empty() || own.size() == osds.size()) return std::string();
  TRY(const std::string why, ceph_objection(context, "ok-to-stop", own));
  return why.empty() ? why : fmt::format("the OSDs of {} cannot be stopped now: {}", node, why);
}

Result<CheckResult> check_noout(StepContext& context, const WantedNoout& want) {
  const bool wanted = want.state == Noout::set;
  TRY(const bool now, has_flag(context, want.node));
  if (now != wanted)
    return differs(want.node + (now ? " has the noout flag" : " does not have the noout flag"));
  if (!wanted) return holds();
  TRY(const std::string why, needed(context, want.node));
  return why.empty() ? holds() : differs(why);
}

Status apply_noout(StepContext& context, const WantedNoout& want) {
  const bool wanted = want.state == Noout::set;
  if (wanted)
    TRY_(wait_for_storage(context, want.deadline_seconds, [&] { return needed(context, want.node); }));
  TRY_(ceph_text(context, {"osd", wanted ? "set-group" : "unset-group", "noout", want.node}));
  return Ok{};
}

Status verify_noout(StepContext& context, const WantedNoout& want) {
  TRY(const bool now, has_flag(context, want.node));
  if (now == (want.state == Noout::set)) return Ok{};
  return fail(Code::failed, now ? "the noout flag is still set" : "the noout flag is not set");
}

}  // namespace

StepModule ceph_noout_module() {
  return step_module<WantedNoout>({
      .name = "ceph_noout",
      .help =
          "Sets or clears the noout flag of a node. While the flag is set, the node's OSDs remain members "
          "even when the node is down, and their data is not copied to other nodes. Data that only these "
          "OSDs have cannot be read during that time, so the flag is set only once `ceph osd ok-to-stop` "
          "succeeds, and not at all if that takes too long.",
      .check = check_noout,
      .apply = apply_noout,
      .verify = verify_noout,
  });
}

}  // namespace muster::steps
