// muster node: members of the cluster.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/time.h"
#include "cli/bringup.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string node, reason, report = "muster-report", approve;
  bool release = false, yes = false, off = false;
};

void list(Context& context) {
  const auto nodes = Api(context).get("/v1/nodes");
  if (!nodes.ok()) return complain(context, nodes.error());
  show(context, *nodes, [&] {
    fmt::print("{:<14} {:<8} {:<12} {:<16} {:<18} {}\n", "NODE", "ROLE", "STATE", "ADDRESS", "MAC", "LAST SEEN");
    for (const Json& n : nodes->value("nodes", Json::array())) {
      const auto seen = n.value("last_seen", int64_t{0});
      fmt::print("{:<14} {:<8} {:<12} {:<16} {:<18} {}\n", n.value("name", ""), n.value("role", ""), n.value("state", ""),
                 n.value("address", ""), n.value("mac", ""), seen ? to_iso8601(seen) : "never");
    }
    for (const Json& m : nodes->value("unknown_machines", Json::array()))
      fmt::print("{:<14} {:<8} {:<12} {:<16} {:<18} {}\n", "(undeclared)", "", "", "", m.value("mac", ""),
                 to_iso8601(m.value("time", int64_t{0})));
  });
}

void quarantine(Context& context, const Flags& flags) {
  Api api(context);
  const Json body = flags.release ? Json{{"release", true}} : Json{{"reason", flags.reason}};
  const auto done = api.post("/v1/nodes/" + url_encode(flags.node) + "/quarantine", body);
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] { fmt::print("{}: {}\n", flags.node, done->value("state", "")); });
}

void forget(Context& context, const Flags& flags) {
  const auto done = Api(context).remove("/v1/nodes/" + url_encode(flags.node));
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] { fmt::print("{} forgotten\n", flags.node); });
}

// Without a name: look for machines nobody declared. With one: bring a declared, new node in.
void admit(Context& context, const Flags& flags) {
  if (flags.node.empty()) {
    const auto done = Api(context).post("/v1/nodes/admit", {{"discover", !flags.off}});
    if (!done.ok()) return complain(context, done.error());
    return show(context, *done, [&] {
      fmt::print("discovery of undeclared machines is {}; boot them from the network, then: muster node list\n",
                 flags.off ? "off" : "on");
    });
  }
  const auto nodes = node_list(flags.node);
  if (!nodes.ok()) return complain(context, nodes.error());
  Goal goal;
  goal.nodes = *nodes;
  goal.approval = {flags.yes, flags.approve};
  goal.report_dir = flags.report;
  reach(context, goal);
}

void explain_add(Context& context, const Flags& flags) {
  complain(context, fail(Code::invalid, fmt::format("nodes are declared in the spec: add {} under 'nodes:' in cluster.yaml "
                                                    "(name, role, power, mac, disks), then: muster up cluster.yaml",
                                                    flags.node)));
}

}  // namespace

void add_node(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("node", "members of the cluster");
  verb->require_subcommand(1);
  verb->add_subcommand("list", "every node and when it was last seen")->callback([&context] { list(context); });
  auto flags = std::make_shared<Flags>();
  CLI::App* add = verb->add_subcommand("add", "how to declare a new node");
  add->add_option("NODE", flags->node)->required();
  add->callback([flags, &context] { explain_add(context, *flags); });
  CLI::App* admit_verb = verb->add_subcommand("admit", "bring in a node that was added to the spec, or list who asks to boot");
  admit_verb->add_option("NODE", flags->node, "declared in the spec; without it: discovery of undeclared machines is switched on");
  admit_verb->add_flag("--off", flags->off, "end the discovery of unknown machines");
  admit_verb->add_flag("--yes,-y", flags->yes, "approve the plans");
  admit_verb->add_option("--approve", flags->approve, "approve exactly this plan");
  admit_verb->callback([flags, &context] { admit(context, *flags); });
  CLI::App* quarantine_verb = verb->add_subcommand("quarantine", "take a node out of every plan until it is released");
  quarantine_verb->add_option("NODE", flags->node)->required();
  quarantine_verb->add_option("--reason", flags->reason, "for whoever asks later");
  quarantine_verb->add_flag("--release", flags->release, "plan it again");
  quarantine_verb->callback([flags, &context] { quarantine(context, *flags); });
  CLI::App* rm = verb->add_subcommand("rm", "forget a node that the spec no longer names; its agent is locked out");
  rm->add_option("NODE", flags->node)->required();
  rm->callback([flags, &context] { forget(context, *flags); });
  verb->footer("Examples:\n  muster node list\n  muster node quarantine gpu03 --reason 'PSU on order'\n"
               "  muster node admit gpu09 --yes");
}

}  // namespace muster::cli
