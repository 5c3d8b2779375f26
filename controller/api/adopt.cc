// A running host becomes a node without being re-imaged. The operator's command talks to the host over SSH
// (cli/adopt.cc); here is the controller's side: the plan from what was found there, and, once that plan is
// approved, the entry in the spec and the join token.
#include <fmt/format.h>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/reactor.h"
#include "controller/api/diff.h"
#include "controller/api/files.h"
#include "controller/api/handlers.h"
#include "controller/authority.h"
#include "controller/boot_port.h"
#include "controller/bringup.h"
#include "controller/event_log.h"
#include "controller/nodes/states.h"
#include "controller/services.h"
#include "controller/spec/add_node.h"

namespace muster::api {
namespace {

struct Adoption {
  NewNode node;
  Json facts_json;
  HardwareFacts facts;
  bool joined = false;  // the host is this node already, and its agent runs
  std::string digest;   // of the approved plan; empty: only plan
};

Result<Adoption> adoption_from(const std::string& body) {
  TRY(const auto json, parse_json(body));
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
  r.get_or("digest", a.digest, std::string());
  a.facts_json = r.raw("facts");
  TRY_(r.finish());
  TRY(a.facts, hardware_facts_from_json(a.facts_json));
  return a;
}

// The spec that the node is, or will be, declared in.
struct Declared {
  Spec spec;
  int64_t revision = 0;
  std::string text;    // empty: it is declared already
  std::string before;  // text of the revision it is added to
  int64_t before_revision = 0;
};

Status same_host(const NodeSpec& node, const NewNode& asked) {
  const AdoptSpec &is = node.adopt, &wanted = asked.adopt;
  if (!is.declared())
    return fail(
        Code::invalid,
        fmt::format("the spec declares {} as a node that muster installs (image '{}'), not as an adopted one",
                    node.name, node.image));
  if (is.host_key != wanted.host_key)
    return fail(
        Code::denied,
        fmt::format("the spec pins the host key {} for {}, and {} shows {}: another machine answers, or it "
                    "was installed anew; when that is so on purpose, change 'adopt.host_key' in the spec",
                    is.host_key, node.name, wanted.host, wanted.host_key));
  const bool address = asked.address.empty() || asked.address == node.address;
  if (is.host == wanted.host && is.port == wanted.port && is.user == wanted.user && address) return Ok{};
  return fail(
      Code::invalid,
      fmt::format("the spec declares {} as {}@{}:{} with the address {}: say the same, or change the spec",
                  node.name, is.user, is.host, is.port, node.address));
}

Result<Declared> declaration(Services& services, const NewNode& node) {
  TRY(const auto current, services.spec.get());
  Declared d;
  if (const NodeSpec* known = current->spec.node(node.name)) {
    TRY_(same_host(*known, node));
    d.spec = current->spec;
    d.revision = current->revision;
    return d;
  }
  if (node.like.empty())
    return fail(Code::invalid,
                fmt::format("{} is not in the spec: say with --like which declared node it is like, or "
                            "declare it there with 'adopt: {{ host: {}, host_key: \"{}\" }}'",
                            node.name, node.adopt.host, node.adopt.host_key));
  TRY(const SpecRow row, services.store.spec(0));
  TRY(AddedNode added, add_node(row.text, node));
  d.spec = std::move(added.spec);
  d.text = std::move(added.text);
  d.before = row.text;
  d.before_revision = row.revision;
  d.revision = services.bringup.coming_revision();
  return d;
}

// What is known of the node, with the host as it was found now.
NodeObservation observed(Services& services, const Adoption& a) {
  NodeObservation seen = services.bringup.observe(a.node.name);
  seen.facts = seen.machine = a.facts;
  seen.online = seen.online && a.joined;
  return seen;
}

Bringup::Request request_for(const std::string& name) {
  Bringup::Request request;
  request.kind = "adopt";
  request.nodes = {name};
  return request;
}

std::string agent_url(const Services& services, const Spec& spec) {
  const std::string address =
      services.options.listen.empty() ? controller_address(spec) : services.options.listen;
  return fmt::format("https://{}:{}", address, services.options.tls_port);
}

Json plan_answer(const Declared& d, const Bringup::Made& made, const NodeObservation& seen) {
  Json reply = planned_json(made.plan, made.digest);
  reply["online"] = seen.online;
  reply["declared"] = d.text.empty();
  reply["revision"] = d.revision;
  reply["diff"] = d.text.empty()
                      ? ""
                      : unified_diff(d.before, d.text, fmt::format("revision {}", d.before_revision),
                                     fmt::format("revision {}", d.revision));
  return reply;
}

void answer_with_token(const CallPtr& call, const std::string& node, const std::string& url) {
  call->services.boot.mint(node, "adopt", [call, url, node](Result<std::string> token) {
    if (!token.ok()) return call->error(token.error());
    call->services.events.add(0, node, "node", {{"action", "adopting"}});
    call->ok({{"token", *token}, {"url", url}, {"pin", call->services.authority.ca_fingerprint()}});
  });
}

// What the host showed becomes what is known of the node: the plan that was approved follows from it once
// more.
void remember(Services& services, const Adoption& a) {
  services.bringup.executor().set_node(a.node.name,
                                       [facts = dump_ascii(a.facts_json), now = services.reactor.now(),
                                        system = a.facts.system](NodeRow& row) {
                                         row.state = to_string(NodeState::discovered);
                                         row.reason.clear();
                                         row.facts = facts;
                                         row.facts_time = now;
                                         if (row.product_uuid.empty()) row.product_uuid = system.uuid;
                                         row.system_serial = system.serial;
                                       });
}

// After approval: first the spec, then the token, so that an agent that joins is always a declared node's.
void carry_out(const CallPtr& call, const Adoption& a, const Declared& d) {
  Services& services = call->services;
  const std::string url = agent_url(services, d.spec);
  remember(services, a);
  if (d.text.empty()) return answer_with_token(call, a.node.name, url);
  SpecRow row;
  row.revision = services.bringup.coming_revision(true);
  row.time = services.reactor.now();
  row.text = d.text;
  row.digest = sha256(row.text);
  row.note = fmt::format("{} adopted, like {}", a.node.name, a.node.like);
  services.store.write({row}, [call, name = a.node.name, url](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->services.spec.changed();
    answer_with_token(call, name, url);
  });
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

// Nothing is stored unless the plan that was approved is still the plan.
void adopt_host(const CallPtr& call) {
  Services& services = call->services;
  const auto adoption = adoption_from(call->request.body);
  if (!adoption.ok()) return call->error(adoption.error());
  const auto declared = declaration(services, adoption->node);
  if (!declared.ok()) return call->error(declared.error());
  const std::string& name = adoption->node.name;
  const NodeObservation seen = observed(services, *adoption);
  const auto made =
      services.bringup.plan_under(declared->spec, declared->revision, request_for(name), name, seen);
  if (!made.ok()) return call->error(made.error());
  if (!made->refusals.empty()) return call->json(403, refusals_json(made->refusals));
  if (adoption->digest.empty()) return call->ok(plan_answer(*declared, *made, seen));
  if (services.bringup.executor().active())
    return call->error(
        fail(Code::conflict,
             fmt::format("run {} is under way; a host can be adopted when it has ended (muster watch)",
                         services.bringup.executor().run_id())));
  if (adoption->digest != made->digest)
    return call->error(
        fail(Code::conflict, "the world changed since this was planned: nothing was done, look again"));
  carry_out(call, *adoption, *declared);
}

void get_agent(const CallPtr& call) { send_file(call, call->services.options.agent_binary); }

}  // namespace muster::api
