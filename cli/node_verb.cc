// muster node: lists, adds, adopts, quarantines and removes nodes.
#include <fmt/format.h>

#include "base/distribution.h"
#include "base/time.h"
#include "cli/adopt_verb.h"
#include "cli/carry_out.h"
#include "cli/machine_text.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "controller/spec/units.h"

namespace muster::cli {
namespace {

struct NodeFlags {
  std::string node, reason, report = "muster-report";
  std::string like, mac, machine, power_address, address;
  std::string state, duration = "1 h";
  std::string host, user, key, host_key;
  bool release = false;
  Approval approval;
};

void list_nodes(Context& context) {
  const auto nodes = Api(context).get("/v1/nodes");
  if (!nodes.ok()) return complain(context, nodes.error());
  show(context, *nodes, [&] { fmt::print("{}", render_nodes(*nodes)); });
}

void show_node(Context& context, const NodeFlags& flags) {
  const auto node = Api(context).get("/v1/nodes/" + url_encode(flags.node));
  if (!node.ok()) return complain(context, node.error());
  show(context, *node, [&] { fmt::print("{}", render_machine(*node)); });
}

void discover(Context& context, const NodeFlags& flags) {
  if (flags.state != "on" && flags.state != "off")
    return complain(context, fail(Code::invalid, "expected `on` or `off`"));
  const auto how_long = parse_duration(flags.duration);
  if (!how_long.ok()) return complain(context, how_long.error());
  const auto done =
      Api(context).post("/v1/nodes/discover", {{"on", flags.state == "on"}, {"for_ms", *how_long}});
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] {
    if (flags.state == "off") return fmt::print("discovery of undeclared machines is off\n");
    fmt::print(
        "discovery of undeclared machines is on until {}.\nBoot the machines from the network now; `muster "
        "node list` shows them.\n",
        to_iso8601(done->value("until", int64_t{0})));
  });
}

void quarantine(Context& context, const NodeFlags& flags) {
  Api api(context);
  const Json body = flags.release ? Json{{"release", true}} : Json{{"reason", flags.reason}};
  const auto done = api.post("/v1/nodes/" + url_encode(flags.node) + "/quarantine", body);
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] { fmt::print("{}: {}\n", flags.node, done->value("state", "")); });
}

void forget(Context& context, const NodeFlags& flags) {
  const auto done = Api(context).remove("/v1/nodes/" + url_encode(flags.node));
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] { fmt::print("{} removed\n", flags.node); });
}

// Returns the MAC given with --mac or in --machine unknown-<MAC>.
Result<std::string> wanted_mac(const NodeFlags& flags) {
  const std::string prefix = "unknown-";
  if (flags.machine.empty()) return flags.mac;
  if (!flags.mac.empty())
    return fail(Code::invalid, "--mac and --machine both name the machine: give only one of them");
  if (flags.machine.starts_with(prefix)) return flags.machine.substr(prefix.size());
  return fail(
      Code::invalid,
      fmt::format("--machine takes a name from `muster node list`, such as {}52:54:00:20:00:04, not '{}'",
                  prefix, flags.machine));
}

// Declares an undeclared machine as a node of the spec. False: this failed, and the error was printed.
bool declare(Context& context, const NodeFlags& flags) {
  const auto mac = wanted_mac(flags);
  if (!mac.ok()) return complain(context, mac.error()), false;
  Api api(context);
  const auto done = api.post("/v1/nodes/admit", {{"name", flags.node},
                                                 {"like", flags.like},
                                                 {"mac", *mac},
                                                 {"power_address", flags.power_address},
                                                 {"address", flags.address}});
  if (!done.ok()) {
    if (!context.json) fmt::print(stderr, "{}", render_refusals(api.details()));
    return complain(context, done.error(), api.details()), false;
  }
  if (context.json || done->value("unchanged", false)) return true;
  fmt::print("spec revision {}: {} is the machine with MAC {}, address {}, BMC {}\n{}\n",
             done->value("revision", 0), flags.node, done->value("mac", ""), done->value("address", ""),
             done->value("bmc", ""), done->value("diff", ""));
  fmt::print(
      "Your spec file does not contain this node yet: update it with `muster spec show > cluster.yaml`\n\n");
  return true;
}

void admit(Context& context, const NodeFlags& flags) {
  const bool declared = flags.like.empty();
  if (declared && !(flags.mac + flags.machine + flags.power_address + flags.address).empty())
    return complain(context, fail(Code::invalid,
                                  "--like NODE is missing: name an existing node to copy the settings from"));
  const auto nodes = node_list(flags.node);
  if (!nodes.ok()) return complain(context, nodes.error());
  if (!declared && !declare(context, flags)) return;
  Goal goal;
  goal.nodes = *nodes;
  goal.approval = flags.approval;
  goal.report_dir = flags.report;
  reach(context, goal);
  if (!declared && !context.json && context.exit == kAccepted)
    fmt::print("The other nodes were not changed; `muster up` writes {} into their hosts files.\n",
               flags.node);
}

void adopt_named(Context& context, const NodeFlags& flags) {
  const auto nodes = node_list(flags.node), hosts = node_list(flags.host),
             addresses = node_list(flags.address);
  for (const auto* list_nodes : {&nodes, &hosts, &addresses})
    if (!list_nodes->ok()) return complain(context, list_nodes->error());
  if (nodes->size() != hosts->size() || nodes->empty())
    return complain(context, fail(Code::invalid, fmt::format("{} nodes but {} hosts: give one host per node",
                                                             nodes->size(), hosts->size())));
  if (!addresses->empty() && addresses->size() != nodes->size())
    return complain(context, fail(Code::invalid, fmt::format("--address has {} addresses for {} nodes",
                                                             addresses->size(), nodes->size())));
  adopt(context, {*nodes, *hosts, flags.like, *addresses, flags.user, flags.key, flags.host_key,
                  flags.approval, flags.report});
}

void add_or_explain(Context& context, const NodeFlags& flags) {
  if (!flags.host.empty()) return adopt_named(context, flags);
  complain(
      context,
      fail(Code::invalid,
           fmt::format("nodes are declared in the spec: add {} under 'nodes:' in cluster.yaml (name, "
                       "role, power, mac, disks), then run `muster up cluster.yaml`. For a machine that "
                       "boots from the network, run `muster node admit {} --like NODE` instead; for a "
                       "running host that keeps its system, `muster node add {} --adopt HOST --like NODE`",
                       flags.node, flags.node, flags.node)));
}

void add_admit(Verb& verb, const std::shared_ptr<NodeFlags>& flags, Context& context) {
  Verb& admit_verb =
      verb.add_verb("admit", "add one new node that the spec declares, or an undeclared machine");
  admit_verb.add_option("NODE", &flags->node, "name of the node").required();
  admit_verb.add_option("--like", &flags->like,
                        "existing node to copy the settings from, if NODE is not in the spec yet");
  admit_verb.add_option(
      "--mac", &flags->mac,
      "MAC of the port that the machine booted from; default: the MAC of the only undeclared machine");
  admit_verb.add_option("--machine", &flags->machine,
                        "name of the machine in `muster node list` (unknown-<MAC>), instead of --mac");
  admit_verb.add_option("--power-address", &flags->power_address, "address of the machine's BMC");
  admit_verb.add_option("--address", &flags->address,
                        "the node's address on the provisioning network; default: the next free one");
  add_approval(admit_verb, flags->approval, "approve the plans");
  admit_verb.add_option("--report", &flags->report, "folder for the report")
      .check(wrong_report_folder)
      .shows_default();
  admit_verb.example(
      "muster node admit gpu09 --like gpu08 --machine unknown-b8:ce:f6:00:00:09 --power-address 10.20.1.19");
  admit_verb.runs([flags, &context] { admit(context, *flags); });
}

void add_add(Verb& verb, const std::shared_ptr<NodeFlags>& flags, Context& context) {
  Verb& add = verb.add_verb("add", "adopt running Linux hosts without re-imaging them");
  add.add_option("NODE", &flags->node, "name of the node, or one name per host: spare[01-16],login02")
      .required()
      .check(wrong_list);
  add.add_option("--adopt", &flags->host,
                 "HOST or HOST:PORT, or several (10.20.0.[31-46],10.20.0.9): connect over SSH, show what "
                 "would change, and change it after approval")
      .check(wrong_list);
  add.add_option("--like", &flags->like,
                 "existing node to copy the settings from, if NODE is not in the spec yet");
  add.add_option("--address", &flags->address,
                 "the node's address on the provisioning network, or one per host; default: HOST")
      .check(wrong_list);
  add.add_option("--user", &flags->user,
                 "user to log in as; any user but root needs passwordless sudo; default: root");
  add.add_option("--key", &flags->key,
                 "file with the private key (unencrypted), or with the public half of a key in the SSH "
                 "agent; default: all keys of the SSH agent, one after another");
  add.add_option("--host-key", &flags->host_key,
                 "SHA256:... of the key that the host must present, or a file with the keys of all hosts "
                 "(such as the output of ssh-keyscan); default: shown for confirmation");
  add_approval(add, flags->approval, "approve the changes");
  add.add_option("--report", &flags->report, "folder for the report")
      .check(wrong_report_folder)
      .shows_default();
  add.footer(
      "Needs systemd, util-linux and one of these systems on the host: " + supported_releases() +
      ". Nothing is written to the host before approval. Its OS disk is never partitioned or formatted; its "
      "data disks are, but only where the plan lists them.\nExit: 0 accepted or nothing to do, 1 failed, 2 "
      "invalid input, 3 quarantined, 4 refused or "
      "not approved, 5 degraded");
  add.example("muster node add login01 --adopt 10.20.0.31 --like login02 --user admin");
  add.example(
      "muster node add login01 --adopt 10.20.0.31 --like login02 --key ~/.ssh/id --host-key SHA256:... "
      "--yes");
  add.example("muster node add spare[01-16] --adopt 10.20.0.[31-46] --like node01 --host-key keys.pub");
  add.runs([flags, &context] { add_or_explain(context, *flags); });
}

}  // namespace

void add_node(Verb& app, Context& context) {
  Verb& verb = app.add_verb("node", "manage the nodes of the cluster");
  verb.needs_verb();
  verb.add_verb("list", "list every node and undeclared machine")
      .example("muster node list")
      .runs([&context] { list_nodes(context); });
  auto flags = std::make_shared<NodeFlags>();
  Verb& show_verb = verb.add_verb("show", "show one node or machine with its full inventory");
  show_verb.add_option("NODE", &flags->node, "a node, or unknown-<MAC> from `muster node list`").required();
  show_verb.example("muster node show gpu03");
  show_verb.runs([flags, &context] { show_node(context, *flags); });
  add_add(verb, flags, context);
  Verb& discover_verb = verb.add_verb("discover",
                                      "allow undeclared machines to boot the RAM system and "
                                      "report their inventory; nothing is written to them");
  discover_verb.add_option("STATE", &flags->state, "on or off").required();
  discover_verb
      .add_option("--for", &flags->duration,
                  "turn discovery off after this time; a restart of musterd also turns it off")
      .shows_default();
  discover_verb.example("muster node discover on --for '2 h'").example("muster node discover off");
  discover_verb.runs([flags, &context] { discover(context, *flags); });
  add_admit(verb, flags, context);
  Verb& quarantine_verb = verb.add_verb("quarantine", "keep a node out of every plan until it is released");
  quarantine_verb.add_option("NODE", &flags->node).required();
  quarantine_verb.add_option("--reason", &flags->reason,
                             "reason to show in `muster status`, `muster why` and reports");
  quarantine_verb.add_flag("--release", &flags->release, "include the node in plans again");
  quarantine_verb.example("muster node quarantine gpu03 --reason 'PSU on order'");
  quarantine_verb.example("muster node quarantine gpu03 --release");
  quarantine_verb.runs([flags, &context] { quarantine(context, *flags); });
  Verb& rm = verb.add_verb(
      "rm", "remove a node that the spec no longer declares; its agent's certificate is revoked");
  rm.add_option("NODE", &flags->node).required();
  rm.example("muster node rm gpu03");
  rm.runs([flags, &context] { forget(context, *flags); });
  verb.example("muster node list").example("muster node quarantine gpu03 --reason 'PSU on order'");
}

}  // namespace muster::cli
