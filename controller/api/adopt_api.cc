// Adopts running hosts as nodes without re-imaging them. The operator's command reaches them over SSH
// (cli/adopt_verb.cc); this is the controller's side: it makes one plan for all of them from their
// inventories, and, once that plan is approved, adds them to the spec and issues a join token for each.
// {"hosts": [{name, like?, host, port?, user?, host_key, address?, joined?, facts}], "digest"?}
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"
#include "base/unified_diff.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/boot/service/boot_service.h"
#include "controller/bringup/bringup.h"
#include "controller/executor/executor.h"
#include "controller/executor/node_changes.h"
#include "controller/image/service/image_service.h"
#include "controller/nodes/states.h"
#include "controller/spec/reader/add_node.h"
#include "controller/trust/authority.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

struct Adoption {
  NewNode node;
  Json facts_json;
  HardwareFacts facts;
  bool joined = false;  // the host already is this node, and its agent runs
};
struct Requested {
  std::vector<Adoption> hosts;
  std::string digest;  // of the approved plan; empty: only plan
};

Result<Adoption> adoption_from(const Json& json) {
  Adoption a;
  AdoptSpec& adopt = a.node.adopt;
  JsonReader r(json, "adopt");
  r.get("name", a.node.name);
  r.get_or("like", a.node.like, std::string());
  r.get("host", adopt.host);
  r.get_or("port", adopt.port, adopt.port);
  r.get_or("user", adopt.user, adopt.user);
  r.get("host_key", adopt.host_key);
  r.get_or("address", a.node.address, std::string());
  r.get_or("joined", a.joined, false);
  a.facts_json = r.raw("facts");
  TRY_(r.finish());
  TRY(a.facts, hardware_facts_from_json(a.facts_json));
  return a;
}

// Rejects one machine under two names: it would be configured as two different nodes.
Status are_different(const std::vector<Adoption>& hosts) {
  std::map<std::string, std::string> names, places;
  Machines machines;
  for (const auto& one : hosts) {
    const std::string& name = one.node.name;
    if (!names.emplace(name, name).second)
      return fail(Code::invalid, fmt::format("{} is listed twice", name));
    const std::string place = fmt::format("{}:{}", one.node.adopt.host, one.node.adopt.port);
    if (const auto [other, is_new] = places.emplace(place, name); !is_new)
      return fail(Code::invalid, fmt::format("{} and {} are the same host: {}", other->second, name, place));
    const std::string& uuid = one.facts.system.uuid;
    if (const std::string other = machines.node_of(uuid); !other.empty())
      return fail(Code::invalid, fmt::format("{} and {} are the same host: UUID {}", other, name, uuid));
    machines.bind(uuid, name);
  }
  return Ok{};
}

Result<Requested> adoptions_from(const std::string& body) {
  TRY(const auto json, parse_json(body));
  Requested requested;
  JsonReader r(json, "adopt");
  const Json hosts = r.raw("hosts");
  r.get_or("digest", requested.digest, std::string());
  TRY_(r.finish());
  if (!hosts.is_array() || hosts.empty()) return fail(Code::invalid, "adopt: hosts: expected a list");
  for (const Json& host : hosts) {
    TRY(requested.hosts.emplace_back(), adoption_from(host));
  }
  TRY_(are_different(requested.hosts));
  return requested;
}

// The spec in which the nodes are, or will be, declared.
struct Declared {
  Spec spec;
  int64_t revision = 0;
  std::string digest;  // of that revision's text
  std::string text;    // empty: all are already declared
  std::set<std::string> added = {};
  std::string before;  // text of the revision to which the nodes are added
  int64_t before_revision = 0;
};

Status same_host(const NodeSpec& node, const NewNode& requested) {
  const AdoptSpec &is = node.adopt, &wanted = requested.adopt;
  if (!is.declared())
    return fail(
        Code::invalid,
        fmt::format(
            "the spec declares {} as a node that muster installs (image '{}'), not as an adopted host",
            node.name, node.image));
  if (is.host_key != wanted.host_key)
    return fail(
        Code::denied,
        fmt::format("the spec pins the host key {} for {}, but {} presents {}: a different machine answered, "
                    "or the host was reinstalled; if that is intended, change 'adopt.host_key' in the spec",
                    is.host_key, node.name, wanted.host, wanted.host_key));
  const bool address = requested.address.empty() || requested.address == node.address;
  if (is.host == wanted.host && is.port == wanted.port && is.user == wanted.user && address) return Ok{};
  return fail(
      Code::invalid,
      fmt::format(
          "the spec declares {} as {}@{}:{} with the address {}: use these values, or change the spec",
          node.name, is.user, is.host, is.port, node.address));
}

Result<Declared> declaration(Services& services, const std::vector<Adoption>& hosts) {
  TRY(const auto current, services.spec.get());
  const auto recipes = services.images.recipes();
  Declared d;
  d.spec = current->spec;
  d.revision = current->revision;
  d.digest = current->digest;
  for (const auto& [node, facts_json, facts, joined] : hosts) {
    if (const NodeSpec* known = current->spec.node(node.name)) {
      TRY_(same_host(*known, node));
      continue;
    }
    if (node.like.empty())
      return fail(Code::invalid,
                  fmt::format("{} is not in the spec: name a similar declared node with --like, or declare "
                              "the host in the spec with 'adopt: {{ host: {}, host_key: \"{}\" }}'",
                              node.name, node.adopt.host, node.adopt.host_key));
    if (d.text.empty()) {
      TRY(const SpecRow row, services.store.spec(0));
      d.text = d.before = row.text;
      d.before_revision = row.revision;
      d.revision = services.bringup.coming_revision();
    }
    TRY(AddedNode added, add_node(d.text, node, recipes));
    d.spec = std::move(added.spec);
    d.text = std::move(added.text);
    d.added.insert(node.name);
  }
  if (!d.text.empty()) d.digest = sha256(d.text);
  return d;
}

// The node's record with the host's current inventory.
NodeObservation observed(Services& services, const Adoption& a) {
  NodeObservation seen = services.bringup.observe(NodeName(a.node.name));
  seen.facts = seen.machine = a.facts;
  seen.online = seen.online && a.joined;
  return seen;
}

using Seen = std::map<std::string, NodeObservation>;

Seen observed(Services& services, const std::vector<Adoption>& hosts) {
  Seen seen;
  for (const auto& one : hosts) seen[one.node.name] = observed(services, one);
  return seen;
}

Bringup::Proposal planned_under(const Declared& d, const std::vector<Adoption>& hosts, const Seen& seen) {
  Bringup::Proposal under;
  under.spec = std::make_shared<const SpecRevision>(SpecRevision{d.revision, d.digest, d.spec});
  under.request.kind = RequestKind::adopt;
  for (const auto& one : hosts) under.request.nodes.push_back(one.node.name);
  under.seen = seen;
  return under;
}

std::string agent_url(const Services& services, const Spec& spec) {
  const std::string address =
      services.options.listen.empty() ? controller_address(spec) : services.options.listen;
  return fmt::format("https://{}:{}", address, services.options.tls_port);
}

std::string plan_answer(const Declared& d, const MadePlan& made, const Seen& seen) {
  Json reply = planned_json(*made.plan, made.digest);
  reply["online"] = Json::array();
  for (const auto& [name, observation] : seen)
    if (observation.online) reply["online"].push_back(name);
  reply["declared"] = d.text.empty();
  reply["revision"] = d.revision;
  reply["diff"] = d.text.empty()
                      ? ""
                      : unified_diff(d.before, d.text, fmt::format("revision {}", d.before_revision),
                                     fmt::format("revision {}", d.revision));
  return body_with_plan(reply, *made.plan);
}

// Makes the tokens one after the other: each is a row in the store.
void answer_with_tokens(const CallPtr& call, std::vector<std::string> left, const std::string& url,
                        Json tokens = Json::object()) {
  if (left.empty())
    return call->ok({{"tokens", tokens}, {"url", url}, {"pin", call->services.authority.ca_fingerprint()}});
  const std::string node = left.back();
  left.pop_back();
  call->services.boot.mint(node, "adopt", [call, url, node, left, tokens](Result<std::string> token) mutable {
    if (!token.ok()) return call->error(token.error());
    call->record(NodeName(node), "node", {{"action", "adopting"}});
    tokens[node] = *token;
    answer_with_tokens(call, std::move(left), url, std::move(tokens));
  });
}

// Copies the host's inventory to the node's record, so that planning again gives the approved plan.
void remember(Services& services, const Adoption& a) {
  const auto& system = a.facts.system;
  Inventory inventory;
  inventory.facts = dump_ascii(a.facts_json);
  inventory.time = services.reactor.now();
  inventory.product_uuid = machine_of(system.uuid);
  if (names_one_thing(system.serial)) inventory.system_serial = system.serial;
  services.executor.set_node(NodeName(a.node.name), discovered(inventory));
}

// After approval: stores the spec first, then makes the tokens, so that an agent that joins always belongs to
// a declared node. A node that the plan leaves unchanged stays accepted.
void carry_out(const CallPtr& call, const std::vector<Adoption>& hosts, const Declared& d,
               const std::set<std::string>& unchanged) {
  Services& services = call->services;
  const std::string url = agent_url(services, d.spec);
  std::vector<std::string> names;
  for (const auto& one : hosts) {
    if (unchanged.count(one.node.name)) continue;
    remember(services, one);
    names.push_back(one.node.name);
  }
  if (d.text.empty()) return answer_with_tokens(call, names, url);
  SpecRow row;
  row.revision = services.bringup.coming_revision(true);
  row.time = services.reactor.now();
  row.text = d.text;
  row.digest = sha256(row.text);
  row.caller = text_of(call->caller);
  for (const auto& one : hosts)
    if (d.added.count(one.node.name))
      row.note +=
          fmt::format("{}{} adopted, like {}", row.note.empty() ? "" : "; ", one.node.name, one.node.like);
  services.store.write({row}, [call, names, url](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->services.spec.changed();
    answer_with_tokens(call, names, url);
  });
}

// Stores nothing unless planning again gives the approved plan: in the meantime a different host may have
// been adopted under the revision number for which this plan was made.
void approved(const CallPtr& call, const Requested& requested, const MadePlan& made) {
  Services& services = call->services;
  if (services.executor.active())
    return call->error(
        fail(Code::conflict,
             fmt::format("run {} is under way: adopt hosts after the run has ended (see `muster watch`)",
                         services.executor.run_id())));
  if (requested.digest != made.digest)
    return call->error(
        fail(Code::conflict,
             "the cluster changed since the plan was made: nothing was done; run the command again"));
  const auto declared = declaration(services, requested.hosts);
  if (!declared.ok()) return call->error(declared.error());
  const auto same = services.bringup.still_holds(
      made, planned_under(*declared, requested.hosts, observed(services, requested.hosts)));
  if (!same.ok()) return call->error(same.error());
  carry_out(call, requested.hosts, *declared, {made.plan->unchanged.begin(), made.plan->unchanged.end()});
}

}  // namespace

void adoption_of(const CallPtr& call) {
  const std::string name = call->arg("node");
  const auto spec = call->services.spec.get();
  if (!spec.ok()) return call->error(spec.error());
  const NodeSpec* node = (*spec)->spec.node(name);
  Json reply = {{"name", name},
                {"pin", call->services.authority.ca_fingerprint()},
                {"declared", node != nullptr},
                {"adopt", nullptr}};
  if (node && node->adopt.declared())
    reply["adopt"] = {{"host", node->adopt.host},
                      {"port", node->adopt.port},
                      {"user", node->adopt.user},
                      {"host_key", node->adopt.host_key},
                      {"address", node->address}};
  call->ok(reply);
}

void adopt_hosts(const CallPtr& call) {
  Services& services = call->services;
  auto requested = adoptions_from(call->request.body);
  if (!requested.ok()) return call->error(requested.error());
  auto declared = declaration(services, requested->hosts);
  if (!declared.ok()) return call->error(declared.error());
  const Seen seen = observed(services, requested->hosts);
  const Bringup::Proposal under = planned_under(*declared, requested->hosts, seen);
  PlanWorker::Render show;
  if (requested->digest.empty())
    show = [d = std::make_shared<const Declared>(std::move(declared).value()), seen](const MadePlan& made) {
      return plan_answer(*d, made, seen);
    };
  const auto kept = std::make_shared<const Requested>(std::move(requested).value());
  services.bringup.plan_proposal(under, show, [call, kept](Result<MadePlanPtr> made) {
    if (!made.ok()) return call->error(made.error());
    if (!(*made)->refusals.empty()) return call->json(403, refusals_json((*made)->refusals));
    if (kept->digest.empty()) return call->body(200, std::move((*made)->shown));
    approved(call, *kept, **made);
  });
}

void get_agent(const CallPtr& call) { send_file(call, call->services.options.agent_binary); }

}  // namespace muster::api
