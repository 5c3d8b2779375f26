// A Ceph cluster as a whole, read and changed through its own program: the file system and its pools, the
// members and their health, removal of nodes that are no longer declared, and draining one node's disks or
// putting them back into use.
//
// The monitors' state is authoritative. Nothing is removed unless they report that no data is lost.
#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/steps/step_modules.h"
#include "agent/storage/health.h"
#include "agent/storage/parts.h"
#include "base/split.h"

namespace muster::steps {

Result<std::string> ceph_text(StepContext& context, std::vector<std::string> args, const std::string& input) {
  Command command;
  command.argv = {"ceph", "--connect-timeout", "30"};
  command.argv.insert(command.argv.end(), args.begin(), args.end());
  command.input = input;
  command.deadline = 2 * kMinute;
  return run_ok(context.process, command);
}

Result<Json> ceph_json(StepContext& context, std::vector<std::string> args, const std::string& input) {
  args.insert(args.end(), {"-f", "json"});
  TRY(const std::string text, ceph_text(context, std::move(args), input));
  return parse_json(text);
}

namespace {

// Maps each OSD to its host, at any level below the root that the pools use: a site may have racks, rows and
// rooms in between.
std::map<int64_t, std::string> hosts_of(const Json& tree) {
  std::map<int64_t, Json> nodes;
  std::vector<std::pair<int64_t, std::string>> open;  // IDs still to be visited, each with its host
  for (const auto& node : tree.value("nodes", Json::array())) {
    const int64_t id = node.value("id", int64_t{0});
    nodes[id] = node;
    if (node.value("name", "") == "default" && node.value("type", "") == "root") open.emplace_back(id, "");
  }
  std::map<int64_t, std::string> out;
  while (!open.empty()) {
    const auto [id, above] = open.back();
    open.pop_back();
    const auto found = nodes.find(id);
    if (found == nodes.end()) continue;
    const Json node = std::move(found->second);
    nodes.erase(found);
    const std::string host = node.value("type", "") == "host" ? node.value("name", "") : above;
    for (const Json& child : node.value("children", Json::array())) {
      const int64_t below = child.get<int64_t>();
      if (below >= 0)  // an OSD; containers of OSDs have negative numbers
        out[below] = host;
      else
        open.emplace_back(below, host);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<CephOsd>> ceph_osds(StepContext& context, bool with_hosts) {
  TRY(const Json dump, ceph_json(context, {"osd", "dump"}));
  Json tree = Json::object();
  if (with_hosts) {
    TRY(tree, ceph_json(context, {"osd", "tree"}));
  }
  auto hosts = hosts_of(tree);
  std::vector<CephOsd> out;
  for (const auto& osd : dump.value("osds", Json::array())) {
    const int64_t id = osd.value("osd", int64_t{-1});
    out.push_back({id, osd.value("uuid", ""), hosts[id], osd.value("up", 0) == 1, osd.value("in", 0) == 1});
  }
  return out;
}

// Reads the text output: with JSON output (18.2.7), safe-to-destroy exits with 0 in both cases.
Result<std::string> ceph_objection(StepContext& context, const char* question,
                                   const std::vector<int64_t>& osds) {
  Command command;
  command.argv = {"ceph", "--connect-timeout", "30", "osd", question};
  for (const int64_t id : osds) command.argv.push_back(std::to_string(id));
  TRY(const Output out, context.process.run(command));
  if (out.ok()) return std::string();
  std::string text = out.err.substr(0, 300);
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text.empty() ? fmt::format("`ceph osd {}` failed", question) : text;
}

namespace {

std::set<std::string> names_of(const std::vector<StorageMember>& members) {
  std::set<std::string> out;
  for (const auto& one : members) out.insert(one.name);
  return out;
}

std::string words(const std::vector<int64_t>& ids) {
  std::vector<std::string> out;
  for (const int64_t id : ids) out.push_back(std::to_string(id));
  return join(out, " ");
}

Status tell(StepContext& context, const char* verb, const std::vector<int64_t>& ids) {
  std::vector<std::string> args = {"osd", verb};
  for (const int64_t id : ids) args.push_back(std::to_string(id));
  TRY_(ceph_text(context, args));
  return Ok{};
}

struct WantedFs {
  std::string name;
  int64_t copies = 2, min_copies = 1, standbys = 0, deadline_seconds = 180;
};
MUSTER_PARAMETERS(WantedFs, required(name, "name of the file system"),
                  optional(copies, "number of copies of all data"),
                  optional(min_copies, "minimum number of copies; with fewer, nothing is written"),
                  optional(standbys, "number of standby metadata servers"),
                  optional(deadline_seconds, "how long to wait for an active metadata server"))

struct Pool {
  std::string name;
  int64_t groups;  // placement groups
};

// Placement groups: 64 per disk, counting all replicas, as a power of two. Debian 13's manager cannot load
// the module that would choose the number.
int64_t data_groups(size_t osds, int64_t copies) {
  const int64_t wanted =
      std::clamp<int64_t>(static_cast<int64_t>(osds) * 64 / std::max<int64_t>(copies, 1), 32, 4096);
  int64_t out = 32;
  while (out * 2 <= wanted) out *= 2;
  return out;
}

// By name.
Result<std::map<std::string, Json>> pools_now(StepContext& context) {
  TRY(const Json all, ceph_json(context, {"osd", "pool", "ls", "detail"}));
  std::map<std::string, Json> out;
  for (const auto& pool : all) out[pool.value("pool_name", "")] = pool;
  return out;
}

Result<std::string> fs_lacking(StepContext& context, const WantedFs& want) {
  const std::string& name = want.name;
  TRY(const auto pools, pools_now(context));
  Diff diff;
  for (const std::string& wanted : {name + "-meta", name + "-data"}) {
    const auto pool = pools.find(wanted);
    if (pool == pools.end())
      diff.add("missing pool " + wanted);
    else if (pool->second.value("size", 0) != want.copies ||
             pool->second.value("min_size", 0) != want.min_copies)
      diff.add(fmt::format(
          "pool {} keeps {} copies and accepts writes with at least {}: the spec declares other values",
          wanted, pool->second.value("size", 0), pool->second.value("min_size", 0)));
  }
  TRY(const Json dump, ceph_json(context, {"fs", "dump"}));
  bool there = false, works = false;
  for (const auto& fs : dump.value("filesystems", Json::array())) {
    const Json map = fs.value("mdsmap", Json::object());
    if (map.value("fs_name", "") != name) continue;
    there = true;
    if (map.value("standby_count_wanted", 0) != want.standbys)
      diff.add("the number of standby metadata servers differs from the spec");
    for (const auto& server : map.value("info", Json::object()))
      works = works || server.value("state", "") == "up:active";
  }
  if (!there)
    diff.add("file system " + name + " does not exist");
  else if (!works)
    diff.add("no metadata server is active");
  return diff.result().diff;
}

Result<CheckResult> check_fs(StepContext& context, const WantedFs& want) {
  TRY(const std::string lacking, fs_lacking(context, want));
  return lacking.empty() ? holds() : differs(lacking);
}

// Each of these commands changes nothing if the object already exists.
Status apply_fs(StepContext& context, const WantedFs& want) {
  const std::string& name = want.name;
  TRY(const auto osds, ceph_osds(context, false));
  const Pool wanted[] = {{name + "-meta", 16}, {name + "-data", data_groups(osds.size(), want.copies)}};
  for (const Pool& pool : wanted)
    TRY_(ceph_text(context, {"osd", "pool", "create", pool.name, std::to_string(pool.groups)}));
  TRY(const auto now, pools_now(context));
  for (const Pool& pool : wanted) {
    const auto created = now.find(pool.name);
    for (const auto& [key, value] : {std::pair("size", want.copies), std::pair("min_size", want.min_copies)})
      if (created == now.end() || created->second.value(key, int64_t{0}) != value)
        TRY_(ceph_text(context, {"osd", "pool", "set", pool.name, key, std::to_string(value)}));
  }
  TRY_(ceph_text(context, {"fs", "new", name, name + "-meta", name + "-data"}));
  // For a cluster that has shrunk, Ceph would keep the old number of standbys and warn forever.
  TRY_(ceph_text(context, {"fs", "set", name, "standby_count_wanted", std::to_string(want.standbys)}));
  return wait_for_storage(context, want.deadline_seconds, [&] { return fs_lacking(context, want); });
}

struct WantedMembers {
  std::vector<StorageMember> members;
  int64_t declared = 0, deadline_seconds = 300;
};
MUSTER_PARAMETERS(WantedMembers, required(members, "[{name}]"),
                  required(declared, "total number of declared members"),
                  optional(deadline_seconds, "how long to wait for the cluster to become healthy"))

Result<std::string> members_lacking(StepContext& context, const WantedMembers& want) {
  TRY(const auto osds, ceph_osds(context));
  const auto members = names_of(want.members);
  Diff diff;
  for (const auto& member : members) {
    size_t own = 0;
    for (const auto& osd : osds) {
      if (osd.host != member) continue;
      ++own;
      if (!osd.up || !osd.in)
        diff.add(fmt::format("osd.{} of {} is {}", osd.id, member, osd.up ? "out" : "down"));
    }
    if (own == 0) diff.add(member + " has no OSD in the CRUSH map");
  }
  TRY(const Json health, ceph_json(context, {"health"}));
  const bool all = static_cast<int64_t>(members.size()) == want.declared;
  const std::string bad = ceph_wrong(health, all ? CephScope::all_members : CephScope::some_members);
  if (!bad.empty()) diff.add(bad);
  return diff.result().diff;
}

Result<CheckResult> check_ceph_members(StepContext& context, const WantedMembers& want) {
  const Status there =
      wait_for_storage(context, want.deadline_seconds, [&] { return members_lacking(context, want); });
  if (there.ok()) return holds();
  return there.error().code == Code::cancelled ? Result<CheckResult>(there.error())
                                               : differs(there.error().message);
}

struct Declared {
  std::vector<StorageMember> members, mons;
  int64_t deadline_seconds = 600;
};
MUSTER_PARAMETERS(Declared, required(members, "[{name}] of all declared members"),
                  required(mons, "[{name}] of all declared monitors"),
                  optional(deadline_seconds, "how long to wait for the OSDs' data to be copied"))

struct Left {
  std::vector<std::string> mons;
  std::map<std::string, std::vector<CephOsd>> hosts;
  std::set<std::string> quorum;
};

Result<Left> left_behind(StepContext& context, const Declared& want) {
  const auto members = names_of(want.members), mons = names_of(want.mons);
  TRY(const Json quorum, ceph_json(context, {"quorum_status"}));
  TRY(const auto osds, ceph_osds(context));
  Left out;
  for (const auto& mon : quorum.value("monmap", Json::object()).value("mons", Json::array()))
    if (const std::string name = mon.value("name", ""); !mons.count(name)) out.mons.push_back(name);
  for (const auto& name : quorum.value("quorum_names", Json::array()))
    out.quorum.insert(name.get<std::string>());
  // Unreachable monitors first: while they count, removing a reachable one may cost the others the majority.
  std::stable_partition(out.mons.begin(), out.mons.end(),
                        [&](const std::string& name) { return !out.quorum.count(name); });
  for (const auto& osd : osds)
    if (!osd.host.empty() && !members.count(osd.host)) out.hosts[osd.host].push_back(osd);
  return out;
}

Result<CheckResult> check_left(StepContext& context, const Declared& want) {
  TRY(const Left left, left_behind(context, want));
  Diff diff;
  for (const auto& mon : left.mons) diff.add("monitor " + mon + " is not declared");
  for (const auto& [host, osds] : left.hosts)
    diff.add(fmt::format("{} OSDs are on {}, which is not declared", osds.size(), host));
  return diff.result();
}

std::vector<int64_t> ids_of(const std::vector<CephOsd>& osds) {
  std::vector<int64_t> out;
  for (const auto& osd : osds) out.push_back(osd.id);
  return out;
}

Status purge(StepContext& context, int64_t seconds, const std::string& host,
             const std::vector<CephOsd>& osds) {
  for (const auto& osd : osds)
    if (osd.up)
      return fail(
          Code::conflict,
          fmt::format("osd.{} of {} is running: drain the node, power it off, then remove it from the spec",
                      osd.id, host));
  const auto ids = ids_of(osds);
  TRY_(tell(context, "out", ids));
  TRY_(wait_for_storage(context, seconds, [&] { return ceph_objection(context, "safe-to-destroy", ids); }));
  for (const int64_t id : ids) {
    say(context, fmt::format("removing osd.{} of {}", id, host));
    TRY_(ceph_text(context, {"osd", "purge", std::to_string(id), "--yes-i-really-mean-it"}));
  }
  TRY_(ceph_text(context, {"osd", "crush", "rm", host}));
  return Ok{};
}

Status apply_left(StepContext& context, const Declared& want) {
  TRY(const Left left, left_behind(context, want));
  // Waits for the declared monitors first: with fewer voters, one more failure would stop everything.
  for (const auto& mon : names_of(want.mons))
    if (!left.mons.empty() && !left.quorum.count(mon))
      return fail(Code::conflict, "monitor " + mon + " is not in the quorum yet");
  for (const auto& mon : left.mons) TRY_(ceph_text(context, {"mon", "remove", mon}));
  for (const auto& [host, osds] : left.hosts) TRY_(purge(context, want.deadline_seconds, host, osds));
  return Ok{};
}

enum class OsdState { out, in };
constexpr Words<OsdState, 2> kOsdStates = {{{OsdState::out, "out"}, {OsdState::in, "in"}}};
MUSTER_WORDS(OsdState, kOsdStates)

struct WantedCephDrain {
  std::string node;
  OsdState state = OsdState::out;
  int64_t copies = 2, deadline_seconds = 86400;
};
MUSTER_PARAMETERS(WantedCephDrain, required(node, "node name"), required(state, "out | in"),
                  optional(copies, "number of copies in the file system"),
                  optional(deadline_seconds, "how long to wait for the data to move"))

struct CephVolume {
  std::vector<CephOsd> own, others;  // others: OSDs of other nodes that can take data
};

Result<CephVolume> volume(StepContext& context, const std::string& node) {
  TRY(const auto osds, ceph_osds(context));
  CephVolume out;
  for (const auto& osd : osds) {
    if (osd.host == node)
      out.own.push_back(osd);
    else if (osd.up && osd.in && !osd.host.empty())
      out.others.push_back(osd);
  }
  if (out.own.empty()) return fail(Code::not_found, "the monitors list no OSD of " + node);
  return out;
}

// Drained means: safe to destroy, and no replica is missing anywhere.
Result<std::string> not_drained(StepContext& context, const std::vector<int64_t>& ids) {
  TRY(const Json stat, ceph_json(context, {"pg", "stat"}));
  std::string states;
  for (const auto& state : stat.value("pg_summary", Json::object()).value("num_pg_by_state", Json::array())) {
    const std::string name = state.value("name", "");
    if (!name.starts_with("active+clean"))
      states += fmt::format("{}{} {}", states.empty() ? "" : ", ", state.value("num", 0), name);
  }
  if (!states.empty()) return "placement groups: " + states;
  return ceph_objection(context, "safe-to-destroy", ids);
}

Result<CheckResult> check_drain(StepContext& context, const WantedCephDrain& want) {
  const bool out = want.state == OsdState::out;
  TRY(const CephVolume now, volume(context, want.node));
  for (const auto& osd : now.own)
    if (osd.in == out || (!out && !osd.up))
      return differs(fmt::format("osd.{} is {}", osd.id, osd.in ? (osd.up ? "in" : "down") : "out"));
  if (!out) return holds();
  TRY(const std::string lacking, not_drained(context, ids_of(now.own)));
  return lacking.empty() ? holds() : differs(lacking);
}

// Checks, before any data moves, that there are enough other nodes with enough space.
Status may_drain(StepContext& context, int64_t copies, const CephVolume& now) {
  std::set<std::string> hosts;
  for (const auto& osd : now.others) hosts.insert(osd.host);
  if (static_cast<int64_t>(hosts.size()) < copies)
    return fail(Code::conflict,
                fmt::format("{} copies require as many other nodes, but only {} can store data", copies,
                            hosts.size()));
  TRY(const Json dump, ceph_json(context, {"osd", "dump"}));
  TRY(const Json df, ceph_json(context, {"osd", "df"}));
  const std::string lacking = ceph_lacks_room(dump, df, {now.own, now.others, copies});
  return lacking.empty() ? Status(Ok{}) : Status(fail(Code::conflict, lacking));
}

Status apply_drain(StepContext& context, const WantedCephDrain& want) {
  const bool out = want.state == OsdState::out;
  TRY(const CephVolume now, volume(context, want.node));
  // Not checked once all OSDs are out: data is already moving, and an error in a step that continues after a
  // restart would not stop it.
  const bool begins = std::any_of(now.own.begin(), now.own.end(), [](const CephOsd& osd) { return osd.in; });
  if (out && begins) TRY_(may_drain(context, want.copies, now));
  TRY_(tell(context, out ? "out" : "in", ids_of(now.own)));
  say(context, fmt::format("osd {}: {}", words(ids_of(now.own)), out ? "out" : "in"));
  return wait_for_storage(context, want.deadline_seconds, [&]() -> Result<std::string> {
    TRY(const CheckResult left, check_drain(context, want));
    return left.diff;
  });
}

}  // namespace

StepModule ceph_fs_module() {
  return step_module<WantedFs>({
      .name = "ceph_fs",
      .help = "Creates a CephFS with one pool for data and one for metadata, each with the given number of "
              "copies, and waits for an active metadata server.",
      .check = check_fs,
      .apply = apply_fs,
  });
}

StepModule ceph_members_module() {
  return step_module<WantedMembers>({
      .name = "ceph_members",
      .help = "Tests that every member's OSDs are `up` and `in` and are under the root of the CRUSH map, and "
              "that the cluster is healthy as far as these members are concerned. Changes nothing.",
      .check = check_ceph_members,
  });
}

StepModule ceph_left_module() {
  return step_module<Declared>({
      .name = "ceph_left",
      .help =
          "Removes monitors that are no longer declared from the cluster, and the OSDs of undeclared nodes "
          "once they are down and no data would be lost.",
      .check = check_left,
      .apply = apply_left,
  });
}

StepModule ceph_drain_module() {
  return step_module<WantedCephDrain>({
      .name = "ceph_drain",
      .help =
          "Drains a node's OSDs until every copy is on other nodes and the OSDs are safe to destroy, or puts "
          "them back into use. Fails before any data moves if the other nodes are too few or too full.",
      .check = check_drain,
      .apply = apply_drain,
  });
}

}  // namespace muster::steps
