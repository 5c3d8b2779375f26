// muster logs: events of the controller and the nodes.
#include <fmt/format.h>

#include "base/json_dump.h"
#include "base/time.h"
#include "cli/cli_context.h"
#include "cli/event_words.h"
#include "cli/local_time.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "sys/clock.h"

namespace muster::cli {
namespace {

constexpr int kMostTail = 5000;  // that one answer has

struct LogFlags {
  std::string node, since;
  bool follow = false;
  int64_t after = 0, run = 0, tail = 0;
};

void print_event(const Context& context, const Json& event) {
  if (context.json) return fmt::print("{}\n", dump_json(event));
  fmt::print("{}  {:<10} {:<10} {}\n", to_iso8601(event.value("time", int64_t{0})),
             clean(event.value("node", "")), clean(event.value("kind", "")), event_words(event));
}

// Prints the events that there are, and sets `after` to the last one.
Status print_past(Context& context, const LogFlags& flags, TimeMs since, int64_t& after) {
  Api api(context);
  const std::string path =
      flags.node.empty() ? "/v1/events/list" : "/v1/nodes/" + url_encode(flags.node) + "/logs";
  for (bool more = true; more;) {
    TRY(const Json page,
        api.get(fmt::format("{}?after={}&limit={}&since={}&run={}&newest={}", path, after,
                            flags.tail > 0 ? flags.tail : 1000, since, flags.run, flags.tail > 0 ? 1 : 0)));
    const Json events = page.value("events", Json::array());
    for (const Json& event : events) {
      print_event(context, event);
      after = event.value("seq", after);
    }
    more = !events.empty() && flags.tail == 0;
  }
  return Ok{};
}

void show_logs(Context& context, const LogFlags& flags) {
  TimeMs since = 0;
  if (!flags.since.empty()) {
    const auto read = parse_since(flags.since, wall_clock());
    if (!read.ok()) return complain(context, read.error());
    since = *read;
  }
  int64_t after = flags.after;
  if (const Status printed = print_past(context, flags, since, after); !printed.ok())
    return complain(context, printed.error());
  if (!flags.follow) return;
  std::fflush(stdout);
  const std::string query = fmt::format("/v1/events?after={}&node={}", after, url_encode(flags.node));
  const auto ended = Api(context).lines("GET", query, "", [&](const std::string& line) {
    if (line.starts_with("data: "))
      if (const auto event = parse_json(line.substr(6)); event.ok())
        if ((flags.run == 0 || event->value("run", int64_t{0}) == flags.run) &&
            event->value("time", TimeMs{0}) >= since)
          print_event(context, *event);
    std::fflush(stdout);
    return true;
  });
  if (!ended.ok()) complain(context, ended.error());
}

}  // namespace

void add_logs(Verb& app, Context& context) {
  auto flags = std::make_shared<LogFlags>();
  Verb& verb = app.add_verb("logs", "print events from the controller and the nodes");
  verb.add_option("NODE", &flags->node, "print only events of this node; default: all nodes");
  verb.add_flag("-f,--follow", &flags->follow, "keep printing new events");
  verb.add_option("--since", &flags->since,
                  "print only events since a time ('2026-12-24 22:00', 22:00), or of the last '2 h', 30m");
  verb.add_option("--run", &flags->run, "print only events of this run").positive();
  verb.add_option("--tail", &flags->tail, fmt::format("print only the last ones, at most {}", kMostTail))
      .between(1, kMostTail);
  verb.add_option("--after", &flags->after, "print only events with a higher sequence number");
  verb.footer(
      "Times are printed in UTC; those of --since are in the zone of this machine, or end with "
      "Z.");
  verb.example("muster logs gpu03 --tail 50").example("muster logs --since '8 h'");
  verb.example("muster logs --run 12 gpu03").example("muster logs -f --json | jq .");
  verb.runs([flags, &context] { show_logs(context, *flags); });
}

}  // namespace muster::cli
