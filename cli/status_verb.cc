// muster status, watch, why, logs: the current state, and what each node waits for.
#include <fmt/format.h>
#include <unistd.h>

#include "base/json_dump.h"
#include "base/time.h"
#include "cli/follow.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct Which {
  std::string names, states, roles;
  bool all = false, until_idle = false;
};

void show_status(Context& context, const Which& which) {
  const auto filter = node_filter(which.names, which.states, which.roles);
  if (!filter.ok()) return complain(context, filter.error());
  auto whole = Api(context).get("/v1/status");
  if (!whole.ok()) return complain(context, whole.error());
  if (const auto fits = names_nodes(*filter, *whole); !fits.ok()) return complain(context, fits.error());
  const Json status = only(std::move(whole).value(), *filter);
  Look look;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  look.fold = terminal && !which.all && filter->any();
  if (!which.all) look.nodes = shown_at_most(status.value("nodes", Json::array()).size(), *filter, terminal);
  show(context, status, [&] { fmt::print("{}{}", render_status(status, look), render_storage(status, {})); });
}

void watch_status(Context& context, const Which& which) {
  const auto filter = node_filter(which.names, which.states, which.roles);
  if (!filter.ok()) return complain(context, filter.error());
  if (const auto done = follow_status(context, which.until_idle, *filter); !done.ok())
    complain(context, done.error());
}

void which_nodes(Verb& verb, Which& which) {
  verb.add_option("--limit", &which.names, "only these nodes, e.g. gpu[01-04],gpu07");
  verb.add_option("--state", &which.states,
                  "only nodes in these states: quarantined,degraded,silent,returned,...");
  verb.add_option("--role", &which.roles, "only nodes with these roles");
}

void show_why(Context& context, const std::string& node) {
  const auto why = Api(context).get("/v1/nodes/" + url_encode(node) + "/why");
  if (!why.ok()) return complain(context, why.error());
  show(context, *why, [&] { fmt::print("{}", clean_lines(why->value("text", dump_json(*why, 2) + "\n"))); });
}

struct LogFlags {
  std::string node;
  bool follow = false;
  int64_t after = 0;
};

void print_event(const Context& context, const Json& event) {
  if (context.json) return fmt::print("{}\n", dump_json(event));
  const Json data = event.value("data", Json::object());
  std::string words;
  if (data.is_object())
    for (const char* key :
         {"text", "name", "title", "action", "status", "state", "message", "reason", "order"})
      if (data.contains(key) && data[key].is_string() && !data[key].get<std::string>().empty())
        words += (words.empty() ? "" : "  ") + clean(data[key].get<std::string>());
  fmt::print("{}  {:<10} {:<10} {}\n", to_iso8601(event.value("time", int64_t{0})), event.value("node", ""),
             clean(event.value("kind", "")), words);
}

void show_logs(Context& context, const LogFlags& flags) {
  Api api(context);
  const std::string path =
      flags.node.empty() ? "/v1/events/list" : "/v1/nodes/" + url_encode(flags.node) + "/logs";
  int64_t after = flags.after;
  for (;;) {
    const auto page = api.get(fmt::format("{}?after={}&limit=1000", path, after));
    if (!page.ok()) return complain(context, page.error());
    const Json events = page->value("events", Json::array());
    if (events.empty()) break;
    for (const Json& event : events) {
      print_event(context, event);
      after = event.value("seq", after);
    }
  }
  if (!flags.follow) return;
  const std::string query = fmt::format("/v1/events?after={}&node={}", after, url_encode(flags.node));
  const auto ended = api.lines("GET", query, "", [&](const std::string& line) {
    if (line.starts_with("data: "))
      if (const auto event = parse_json(line.substr(6)); event.ok()) print_event(context, *event);
    std::fflush(stdout);
    return true;
  });
  if (!ended.ok()) complain(context, ended.error());
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
  verb.footer(
      "Examples:\n  muster status\n  muster status --state quarantined,silent\n  muster status --json | jq "
      ".");
  verb.runs([which, &context] { show_status(context, *which); });
}

void add_watch(Verb& app, Context& context) {
  auto which = std::make_shared<Which>();
  Verb& verb = app.add_verb("watch", "show a live table of the nodes; leave with Ctrl-C");
  which_nodes(verb, *which);
  verb.add_flag("--until-idle", &which->until_idle, "exit when no run is active");
  verb.runs([which, &context] { watch_status(context, *which); });
}

void add_why(Verb& app, Context& context) {
  auto node = std::make_shared<std::string>();
  Verb& verb = app.add_verb("why", "show what a node is waiting for, until when, and what happens then");
  verb.add_option("NODE", node.get()).required();
  verb.footer("Example:\n  muster why gpu03");
  verb.runs([node, &context] { show_why(context, *node); });
}

void add_logs(Verb& app, Context& context) {
  auto flags = std::make_shared<LogFlags>();
  Verb& verb = app.add_verb("logs", "print events from the controller and the nodes");
  verb.add_option("NODE", &flags->node, "print only events of this node; default: all nodes");
  verb.add_flag("-f,--follow", &flags->follow, "keep printing new events");
  verb.add_option("--after", &flags->after, "print only events with a higher sequence number");
  verb.footer("Examples:\n  muster logs gpu03\n  muster logs -f --json | jq .");
  verb.runs([flags, &context] { show_logs(context, *flags); });
}

}  // namespace muster::cli
