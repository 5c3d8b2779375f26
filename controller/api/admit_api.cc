// Undeclared machines: discovery, and declaring one of them as a node of the spec.
#include <fmt/format.h>

#include <map>

#include "base/digest.h"
#include "base/mac.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"
#include "base/unified_diff.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/boot/service/boot_service.h"
#include "controller/boot/service/ram_decision.h"
#include "controller/bringup/bringup.h"
#include "controller/executor/executor.h"
#include "controller/executor/node_changes.h"
#include "controller/image/service/image_service.h"
#include "controller/link/discovery.h"
#include "controller/nodes/states.h"
#include "controller/spec/reader/add_node.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

constexpr DurationMs kLongestDiscovery = 7 * kDay;

struct Admission {
  NewNode node;
  bool mac_given = false;
};

Result<Admission> admission_from(const std::string& body) {
  TRY(const auto json, parse_json(body));
  Admission a;
  JsonReader r(json, "admit");
  r.get("name", a.node.name);
  r.get("like", a.node.like);
  r.get_or("mac", a.node.mac, std::string());
  r.get_or("power_address", a.node.power_address, std::string());
  r.get_or("address", a.node.address, std::string());
  TRY_(r.finish());
  a.mac_given = !a.node.mac.empty();
  if (!a.mac_given) return a;
  const std::string mac = normal_mac(a.node.mac);
  a.node.mac = mac_of_unknown(unknown_name(mac));
  if (!is_station_address(a.node.mac))
    return fail(Code::invalid, fmt::format("'{}' is not a MAC address (example: 52:54:00:20:00:04)", mac));
  return a;
}

std::string discovery_words(const Services& services) {
  return services.discovery.active()
             ? "discovery is on: boot the machine from the network, then look for it in `muster node list`"
             : "discovery is off: run `muster node discover on`, then boot the machine from the network";
}

Result<std::vector<NodeRow>> unknown_rows(Services& services) {
  TRY(const auto names, services.store.node_names());
  std::vector<NodeRow> rows;
  for (const auto& name : names) {
    if (mac_of_unknown(name).empty()) continue;
    TRY(rows.emplace_back(), services.store.node(NodeName(name)));
  }
  return rows;
}

// Returns the row of the machine that the request identifies, with its inventory.
Result<NodeRow> machine_for(Services& services, const Admission& a) {
  TRY(const auto rows, unknown_rows(services));
  std::vector<NodeRow> seen;
  std::string names;
  for (const auto& row : rows) {
    const std::string mac = mac_of_unknown(row.name);
    if (row.facts.empty() || (a.mac_given && mac != a.node.mac)) continue;
    seen.push_back(row);
    names += (names.empty() ? "" : ", ") + mac;
  }
  if (seen.size() == 1) return seen.front();
  if (seen.empty())
    return fail(Code::not_found,
                fmt::format("{} has reported its inventory; {}",
                            a.mac_given ? "no machine with the MAC " + a.node.mac : "no undeclared machine",
                            discovery_words(services)));
  return fail(
      Code::invalid,
      fmt::format("several machines have reported their inventory; choose one with --mac: {}", names));
}

// True if the same request was already carried out: it may be repeated, as the plan is approved separately.
Result<bool> done_before(const Spec& spec, const Admission& a) {
  const NodeSpec* node = spec.node(a.node.name);
  if (!node) return false;
  const bool mac = !a.mac_given || node->mac == a.node.mac;
  const bool power = a.node.power_address.empty() || node->power.address == a.node.power_address;
  if (mac && power && (a.mac_given || !a.node.power_address.empty())) return true;
  return fail(Code::invalid,
              fmt::format("the name '{}' is in use: the spec gives it to the machine with MAC {} and BMC {}",
                          node->name, node->mac, node->power.address));
}

NodeObservation observation_of(const HardwareFacts& facts) {
  NodeObservation seen;
  seen.facts = facts;
  seen.state = NodeState::discovered;
  seen.product_uuid = machine_of(facts.system.uuid);
  seen.mode = wire::Mode::ram;
  seen.online = false;  // the machine's current agent is not the node's
  return seen;
}

// Copies the inventory to the node's record: the plan is made from it, and the BMC is compared with it.
void inherit(Executor& executor, const NodeName& name, const NodeRow& machine, const std::string& uuid) {
  executor.set_node(name, discovered({machine.facts, machine.facts_time, machine.last_seen, machine_of(uuid),
                                      machine.system_serial}));
}

Status check_remembered(const NodeRow& old, const std::string& uuid) {
  if (machine_of(old.product_uuid).empty() || old.product_uuid == uuid) return Ok{};
  return fail(
      Code::conflict,
      fmt::format(
          "'{1}' was the name of a different machine ({0}): remove its record with `muster node rm {2}`",
          old.product_uuid, old.name, old.name));
}

// Makes the input of the trial plan for the new node.
struct Tried {
  NewNode node;
  NodeRow machine;
  std::string uuid;
  SpecRow before;
  AddedNode added;
};

// Checks what may have changed while the trial plan was made, which takes a while.
Status nothing_changed(Services& services, const Tried& tried) {
  if (services.executor.active())
    return fail(
        Code::conflict,
        fmt::format("run {} is under way: change the spec after the run has ended (see `muster watch`)",
                    services.executor.run_id()));
  TRY(const auto newest, services.store.spec(0));
  if (newest.revision != tried.before.revision)
    return fail(
        Code::conflict,
        fmt::format("revision {} of the spec was stored meanwhile: nothing was done; run the command again",
                    newest.revision));
  const auto machine = services.store.node(tried.machine.name);
  if (!machine.ok() || !(machine->facts == tried.machine.facts))
    return fail(
        Code::conflict,
        "the machine reported a different inventory meanwhile: nothing was done; run the command again");
  return check_remembered(services.executor.node_row(NodeName(tried.node.name)), tried.uuid);
}

void store_admission(const CallPtr& call, const SpecRow& before, const AddedNode& added,
                     const NewNode& node) {
  Services& services = call->services;
  SpecRow row;
  row.revision = services.store.next_spec_revision();
  row.time = services.reactor.now();
  row.text = added.text;
  row.digest = sha256(row.text);
  row.note = fmt::format("{} admitted, like {}", node.name, node.like);
  row.caller = text_of(call->caller);
  const NodeSpec& made = *added.spec.node(node.name);
  Json reply = {{"name", node.name},
                {"unchanged", false},
                {"revision", row.revision},
                {"digest", row.digest},
                {"mac", made.mac},
                {"address", made.address},
                {"bmc", made.power.address},
                {"diff", unified_diff(before.text, row.text, fmt::format("revision {}", before.revision),
                                      fmt::format("revision {}", row.revision))}};
  services.store.write({row}, [call, reply](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->record(reply["name"].get<NodeName>(), "node",
                 {{"action", "admitted"}, {"revision", reply["revision"]}});
    call->services.spec.changed();
    call->ok(reply);
  });
}

}  // namespace

Json undeclared_machines(Services& services) {
  std::map<std::string, Json> machines;
  for (const auto& [mac, time] : services.boot.unknown_macs())
    machines[mac] = {
        {"name", unknown_name(mac)}, {"mac", mac}, {"time", time}, {"state", to_string(NodeState::unknown)}};
  if (const auto rows = unknown_rows(services); rows.ok())
    for (const auto& row : *rows) {
      const std::string mac = mac_of_unknown(row.name);
      const auto facts = parse_json(row.facts);
      if (!facts.ok()) continue;
      Json& machine = machines[mac];
      const TimeMs requested = machine.is_object() ? machine.value("time", TimeMs{0}) : 0;
      machine = {{"name", row.name},
                 {"mac", mac},
                 {"time", std::max(requested, row.last_seen)},
                 {"state", to_string(row.state)},
                 {"serial", row.system_serial},
                 {"facts_time", row.facts_time},
                 {"facts", *facts}};
    }
  if (const auto spec = services.spec.get(); spec.ok())
    for (const auto& node : (*spec)->spec.nodes) machines.erase(node.mac);
  Json list = Json::array();
  for (auto& [mac, machine] : machines) list.push_back(std::move(machine));
  return list;
}

void set_discovery(const CallPtr& call) {
  const auto json = parse_json(call->request.body);
  if (!json.ok()) return call->error(json.error());
  bool on = false;
  DurationMs how_long = 0;
  JsonReader r(*json, "discover");
  r.get("on", on);
  r.get_or("for_ms", how_long, 60 * kMinute);
  if (const auto read = r.finish(); !read.ok()) return call->error(read.error());
  Discovery& discovery = call->services.discovery;
  const auto answer = [call, on] {
    call->record("", "discovery", {{"on", on}});
    call->ok({{"on", call->services.discovery.active()}, {"until", call->services.discovery.until()}});
  };
  if (!on) {
    discovery.off();
    return answer();
  }
  if (how_long <= 0 || how_long > kLongestDiscovery)
    return call->error(fail(Code::invalid, "discovery can stay on for at most seven days"));
  const auto spec = call->services.spec.get();
  if (!spec.ok()) return call->error(spec.error());
  const std::string image = discovery_image((*spec)->spec);
  if (!call->services.images.built((*spec)->spec).count(image))
    return call->error(fail(Code::invalid, fmt::format("image '{}', whose RAM system undeclared machines "
                                                       "boot, is not built: run `muster image build {}`",
                                                       image, image)));
  call->services.images.prepare_ram({image}, [call, how_long, answer](Status ready) {
    if (!ready.ok()) return call->error(std::move(ready).error().with("the RAM system"));
    call->services.discovery.on(how_long);
    answer();
  });
}

// Stores nothing unless the new node can be planned: otherwise the spec would block all other nodes.
void admit_machine(const CallPtr& call) {
  Services& services = call->services;
  auto admission = admission_from(call->request.body);
  if (!admission.ok()) return call->error(admission.error());
  const auto current = services.spec.get();
  const auto row = services.store.spec(0);
  if (!current.ok() || !row.ok()) return call->error(current.ok() ? row.error() : current.error());
  const auto before = done_before((*current)->spec, *admission);
  if (!before.ok()) return call->error(before.error());
  if (*before)
    return call->ok({{"name", admission->node.name}, {"unchanged", true}, {"revision", row->revision}});
  Executor& executor = services.executor;
  if (executor.active())
    return call->error(
        fail(Code::conflict,
             fmt::format("run {} is under way: change the spec after the run has ended (see `muster watch`)",
                         executor.run_id())));
  const auto machine = machine_for(services, *admission);
  if (!machine.ok()) return call->error(machine.error());
  admission->node.mac = mac_of_unknown(machine->name);
  const auto facts = machine->facts.facts();
  if (!facts)
    return call->error(fail(Code::invalid, "the machine's inventory cannot be read: boot the machine again"));
  const auto added = add_node(row->text, admission->node, services.images.recipes());
  if (!added.ok()) return call->error(added.error());
  const std::string& name = admission->node.name;
  if (const auto same = check_remembered(executor.node_row(NodeName(name)), facts->system.uuid); !same.ok())
    return call->error(same.error());
  const auto tried =
      std::make_shared<const Tried>(Tried{admission->node, *machine, facts->system.uuid, *row, *added});
  const auto admit = [call, tried](Result<MadePlanPtr> possible) {
    if (!possible.ok()) return call->error(possible.error());
    if (!(*possible)->refusals.empty()) return call->json(403, refusals_json((*possible)->refusals));
    if (const auto same = nothing_changed(call->services, *tried); !same.ok())
      return call->error(same.error());
    inherit(call->services.executor, NodeName(tried->node.name), tried->machine, tried->uuid);
    store_admission(call, tried->before, tried->added, tried->node);
  };
  services.bringup.trial(added->spec, NodeName(name), observation_of(*facts), admit);
}

}  // namespace muster::api
