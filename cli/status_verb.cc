// muster status, watch, why: the current state, and what each node waits for.
#include <fmt/format.h>

#include "base/json_dump.h"
#include "cli/attention.h"
#include "cli/follow.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct Which {
  std::string names, states, roles;
  bool all = false, until_idle = false;
  FailOn fail_on = {};
};

void show_status(Context& context, const Which& which) {
  const auto filter = node_filter(which.names, which.states, which.roles);
  if (!filter.ok()) return complain(context, filter.error());
  const auto fails_on = fail_words(Shown::status, which.fail_on);
  if (!fails_on.ok()) return complain(context, fails_on.error());
  auto whole = Api(context).get("/v1/status");
  if (!whole.ok()) return complain(context, whole.error());
  if (const auto fits = names_nodes(*filter, *whole); !fits.ok()) return complain(context, fits.error());
  const Json status = only(std::move(whole).value(), *filter);
  context.exit = exit_for_status(status, which.fail_on, *fails_on);
  Look look;
  look.width = terminal_width();
  const bool terminal = look.width > 0;
  look.fold = terminal && !which.all && filter->any();
  if (!which.all) look.nodes = shown_at_most(status.value("nodes", Json::array()).size(), *filter, terminal);
  show(context, status,
       [&] { fmt::print("{}{}", render_status(status, look), render_storage(status, look)); });
}

void watch_status(Context& context, const Which& which) {
  const auto filter = node_filter(which.names, which.states, which.roles);
  if (!filter.ok()) return complain(context, filter.error());
  if (const auto done = follow_status(context, which.until_idle, *filter); !done.ok())
    complain(context, done.error());
}

void which_nodes(Verb& verb, Which& which) {
  verb.add_option("--limit", &which.names, "only these nodes, e.g. gpu[01-04],gpu07").check(wrong_list);
  verb.add_option("--state", &which.states, "only nodes in these states, e.g. quarantined,silent")
      .check(wrong_list);
  verb.add_option("--role", &which.roles, "only nodes with these roles").check(wrong_list);
}

void show_why(Context& context, const std::string& node) {
  const auto why = Api(context).get("/v1/nodes/" + url_encode(node) + "/why");
  if (!why.ok()) return complain(context, why.error());
  show(context, *why, [&] { fmt::print("{}", clean_lines(why->value("text", dump_json(*why, 2) + "\n"))); });
}

}  // namespace

void add_status(Verb& app, Context& context) {
  auto which = std::make_shared<Which>();
  Verb& verb = app.add_verb("status", "show each node's phase and progress once");
  which_nodes(verb, *which);
  verb.add_flag(
      "--all", &which->all,
      "show every node; otherwise a terminal shows a cause in place of its nodes, and, with more than "
      "40 nodes, only those that need attention, and counts the rest, unless --limit, --state or "
      "--role is given");
  add_fail_on(verb, Shown::status, which->fail_on);
  verb.footer(
      "With --exit-code, by the causes of what is wrong, or --fail-on, by states: 1 the controller, an "
      "image or a receiver of notices, 3 nodes or the rollout, 5 degraded nodes.");
  verb.example("muster status").example("muster status --state quarantined,silent");
  verb.example("muster status --exit-code").example("muster status --json | jq .");
  verb.example("muster status --role gpu --fail-on silent,quarantined");
  verb.runs([which, &context] { show_status(context, *which); });
}

void add_watch(Verb& app, Context& context) {
  auto which = std::make_shared<Which>();
  Verb& verb = app.add_verb("watch", "show a live table of the nodes; leave with Ctrl-C");
  which_nodes(verb, *which);
  verb.add_flag("--until-idle", &which->until_idle, "exit when no run is active");
  verb.example("muster watch").example("muster watch --until-idle --limit gpu[01-04]");
  verb.runs([which, &context] { watch_status(context, *which); });
}

void add_why(Verb& app, Context& context) {
  auto node = std::make_shared<std::string>();
  Verb& verb = app.add_verb("why", "show what a node is waiting for, until when, and what happens then");
  verb.add_option("NODE", node.get()).required();
  verb.example("muster why gpu03");
  verb.runs([node, &context] { show_why(context, *node); });
}

}  // namespace muster::cli
