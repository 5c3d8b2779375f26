// muster rollout: new images for running nodes, in batches (docs/rollout.md).
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/json_at.h"
#include "base/time.h"
#include "cli/attention.h"
#include "cli/carry_out.h"
#include "cli/cli_context.h"
#include "cli/interrupt_note.h"
#include "cli/local_time.h"
#include "cli/rollout_wait.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "controller/spec/units.h"
#include "sys/clock.h"

namespace muster::cli {
namespace {

Json list_of(const Json& json, const char* key) { return json.value(key, Json::array()); }

std::string joined(const Json& names) {
  std::string out;
  for (const Json& name : names) out += (out.empty() ? "" : ", ") + name.get<std::string>();
  return out;
}

std::string with_group(const Json& node, const char* key) {
  const std::string group = text_at(node, "group");
  return clean_at(node, key) + (group.empty() ? "" : " (" + group + ")");
}

void print_approval(const Json& approval) {
  for (const Json& line : list_of(approval, "effects")) fmt::print("  {}\n", line.get<std::string>());
}

void print_approver(const Json& approval) {
  if (const std::string by = clean_at(approval, "by"); !by.empty())
    fmt::print("  approved by {} at {}\n", by, local_time(integer_at(approval, "time")));
}

void print_skips(const Json& skips) {
  for (const Json& skip : skips) {
    const TimeMs until = skip.value("until", TimeMs{0});
    fmt::print("  {:<10} {:<16} {} (by {}, until {})\n", "skipped", text_at(skip, "node"),
               clean_at(skip, "reason"), clean_at(skip, "by"),
               until == 0 ? "`muster rollout unskip`" : local_time(until));
  }
}

void print_plan_of(const Json& plan) {
  fmt::print("{:<16} {:<13} {:<13} {:<12} {:>5}  {}\n", "NODE", "CURRENT", "TARGET", "METHOD", "BATCH",
             "LIMITED BY / REASON");
  for (const Json& node : list_of(plan, "nodes")) {
    const bool current = node.value("current", false);
    const int batch = node.value("batch", 0);
    const std::string why = current     ? "up to date"
                            : batch > 0 ? with_group(node, "bound")
                                        : with_group(node, "reason");
    fmt::print("{:<16} {:<13} {:<13} {:<12} {:>5}  {}{}\n", text_at(node, "node"),
               digest_or_dash(text_at(node, "now")), digest_or_dash(text_at(node, "wanted")),
               current ? "-" : text_at(node, "way"), batch > 0 ? std::to_string(batch) : "-", why,
               text_at(node, "way_reason").empty() ? "" : ": " + clean_at(node, "way_reason"));
  }
  const Json record = plan.value("record", Json());
  if (record.is_object()) print_skips(list_of(record, "skips"));
  fmt::print("\none approval covers the following (spec revision {}):\n",
             plan["approval"].value("spec_revision", int64_t{0}));
  print_approval(plan["approval"]);
  for (const Json& note : list_of(plan, "notes")) fmt::print("note: {}\n", clean(note.get<std::string>()));
  if (plan.value("approved", false))
    fmt::print("\napproved: run `muster rollout start`\n");
  else
    fmt::print("\nnot approved: {}; run `muster rollout approve`\n", text_at(plan, "not_approved"));
}

void plan(Context& context) {
  Api api(context);
  const auto planned = api.post("/v1/rollout/plan", Json::object());
  if (!planned.ok()) return complain(context, planned.error(), api.details());
  show(context, *planned, [&] { print_plan_of(*planned); });
}

void approve_rollout(Context& context, const Approval& approval, const std::vector<std::string>& canaries) {
  Api api(context);
  const auto planned = api.post("/v1/rollout/plan", {{"canaries", canaries}});
  if (!planned.ok()) return complain(context, planned.error(), api.details());
  const Json& shown = (*planned)["approval"];
  if (!context.json) print_plan_of(*planned);
  if (const Status fine = approve(context, approval, shown, "Approve the rollout of these images?");
      !fine.ok())
    return complain(context, fine.error());
  const auto done = api.post(
      "/v1/rollout/approve",
      {{"digest", text_at(shown, "digest")}, {"by", "muster rollout approve"}, {"canaries", canaries}});
  if (!done.ok()) return complain(context, done.error(), api.details());
  show(context, *done, [&] {
    fmt::print(
        "rollout {} is approved: run `muster rollout start`, or `systemctl enable --now "
        "muster-rollout.timer`\n",
        done->value("id", int64_t{0}));
  });
}

void print_nodes(const char* title, const Json& nodes) {
  for (const Json& node : nodes)
    fmt::print("  {:<10} {:<16} {}\n", title, text_at(node, "node"), clean_at(node, "reason"));
}

// Of a window that has not begun with its batches yet.
void print_builds(const Json& s) {
  if (!s.value("preparing", false)) return;
  for (const Json& build : list_of(s, "builds")) {
    const TimeMs began = build.value("began", TimeMs{0}), ended = build.value("ended", TimeMs{0});
    const std::string error = clean_at(build, "error");
    const std::string state = ended != 0   ? (error.empty() ? "built" : "not built")
                              : began == 0 ? "to be built"
                                           : fmt::format("being built since {} (try {})", local_time(began),
                                                         build.value("tries", int64_t{0}));
    fmt::print("  {:<10} {:<16} {}{}{}\n", "image", text_at(build, "image"), state, error.empty() ? "" : ": ",
               error);
  }
}

// "night 4, until 2026-11-21 06:00 CET: nothing (nodes), 4 nights in a row: 3 unavailable (n0), 1 held (n3)"
void print_last_window(const Json& night) {
  if (!night.is_object()) return;
  const std::string why = text_at(night, "why"), detail = clean_at(night, "detail");
  const int64_t idle = night.value("idle_windows", int64_t{0});
  fmt::print("  last window: night {}, over at {}: {}{}, {} nodes updated{}{}\n",
             night.value("night", int64_t{0}), local_time(night.value("ended", TimeMs{0})),
             text_at(night, "outcome"), why.empty() ? "" : " (" + why + ")",
             night.value("updated", int64_t{0}),
             idle > 1 ? fmt::format(", {} nights in a row without an update", idle) : "",
             detail.empty() ? "" : ": " + detail);
  if (const DurationMs building = night.value("building_ms", DurationMs{0}); building > 0)
    fmt::print("  its images were built in {}\n", to_human(building));
  const Json unbuilt = night.value("unbuilt", Json::object());
  for (const auto& [image, reason] : unbuilt.items())
    if (why != "images")
      fmt::print("  {:<10} {:<16} {}\n", "not built", image, clean_at(unbuilt, image.c_str()));
}

void print_window(const Json& s) {
  if (s.value("window_open", false))
    fmt::print("  window open until {}\n", local_time(s.value("window_until", TimeMs{0})));
  const DurationMs set = s.value("clock_set_ms", DurationMs{0});
  if (set != 0)
    fmt::print("  the clock was set {} by {} since the window was opened\n", set > 0 ? "forward" : "back",
               to_human(std::abs(set)));
  print_builds(s);
  print_last_window(s.value("last_window", Json()));
}

void print_status(const Json& s) {
  const std::string state = text_at(s, "state");
  if (state == "none") return fmt::print("no rollout is approved: see `muster rollout plan`\n");
  fmt::print("rollout {}: {}{}\n", s.value("id", int64_t{0}), state,
             text_at(s, "stop").empty() ? "" : " (" + text_at(s, "stop") + ")");
  print_approver(s.value("approval", Json()));
  for (const char* key : {"why_paused", "spent", "not_covered", "trouble"})
    if (const std::string text = clean_at(s, key); !text.empty()) fmt::print("  {}\n", text);
  print_window(s);
  if (const Json batch = s.value("batch", Json()); batch.is_object())
    fmt::print("  batch {}{}: {} (run {})\n", batch.value("number", 0),
               batch.value("canary", false) ? ", canary" : "", joined(list_of(batch, "nodes")),
               batch.value("run", int64_t{0}));
  if (const std::string waits = text_at(s, "waits_for"); !waits.empty())
    fmt::print("  waiting for: {}\n", waits);
  fmt::print("  nodes accepted on the new image: {}\n", list_of(s, "done").size());
  for (const Json& image : list_of(s, "held"))
    fmt::print("  {:<10} {:<16} canary {} failed in run {}: {}\n", "held", text_at(image, "image"),
               text_at(image, "node"), image.value("run", int64_t{0}), clean_at(image, "reason"));
  print_nodes("failed", list_of(s, "failed"));
  print_nodes("postponed", list_of(s, "postponed"));
  print_skips(list_of(s, "skips"));
  for (const Json& node : list_of(s, "left"))
    if (text_at(node, "reason") != "skipped")
      fmt::print("  {:<10} {:<16} {}{}{}\n", "waiting", text_at(node, "node"), with_group(node, "reason"),
                 text_at(node, "why").empty() ? "" : ": ", clean_at(node, "why"));
}

void status(Context& context, const FailOn& flags) {
  const auto fails_on = fail_words(Shown::rollout, flags);
  if (!fails_on.ok()) return complain(context, fails_on.error());
  const auto s = Api(context).get("/v1/rollout");
  if (!s.ok()) return complain(context, s.error());
  context.exit = exit_for_words(Shown::rollout, words_of_rollout(*s), *fails_on);
  show(context, *s, [&] { print_status(*s); });
}

void add_status_of_rollout(Verb& rollout, Context& context) {
  auto flags = std::make_shared<FailOn>();
  Verb& verb = rollout.add_verb("status", "show the progress, and which nodes wait and why");
  add_fail_on(verb, Shown::rollout, *flags);
  verb.example("muster rollout status").example("muster rollout status --exit-code");
  verb.runs([flags, &context] { status(context, *flags); });
}

struct Start {
  bool wait = false;
  std::string timeout = "23 h";
};

void start_and_wait(Context& context, Api& api, const WaitTimes& times,
                    const std::function<Result<Json>(DurationMs)>& start) {
  std::string said;
  const InterruptNote note(
      "the window stays open; `muster rollout status` shows it, `muster rollout pause` starts no further "
      "batch");
  const auto sleep = [&](DurationMs span, const std::string& why) {
    if (!why.empty() && why != said) fmt::print(stderr, "muster: will be retried: {}\n", clean_lines(why));
    said = why;
    std::this_thread::sleep_for(std::chrono::milliseconds(span));
  };
  const auto night =
      wait_for_window({start, [&] { return api.get("/v1/rollout"); }, steady_now, sleep}, times);
  if (!night.ok()) return complain(context, night.error(), api.details());
  context.exit = night->exit;
  show(context, night->status, [&] { print_status(night->status); });
}

void start(Context& context, const Start& flags) {
  Api api(context);
  WaitTimes times;
  const auto limit = parse_duration(flags.timeout);
  if (!limit.ok()) return complain(context, limit.error());
  times.limit = *limit;
  const char* elapsed = std::getenv("TRIGGER_TIMER_MONOTONIC_USEC");  // set by systemd
  times.late = since_timer(elapsed, monotonic_ms());
  const auto open = [&](DurationMs late) {
    return api.post("/v1/rollout/start",
                    {{"by", "muster rollout start"}, {"late_ms", late}, {"by_timer", elapsed != nullptr}});
  };
  if (flags.wait) return start_and_wait(context, api, times, open);
  const auto s = open(times.late);
  if (!s.ok()) return complain(context, s.error(), api.details());
  show(context, *s, [&] {
    const std::string until = local_time(s->value("window_until", TimeMs{0}));
    if (s->value("begun", false) && s->value("preparing", false))
      fmt::print(
          "window opened: its images are built first, and no batch will start after {}; see `muster rollout "
          "status`\n",
          until);
    else if (s->value("begun", false))
      fmt::print("rollout started: no batch will start after {}; see `muster rollout status`\n", until);
    else
      fmt::print("a window is already open, until {}\n", until);
  });
}

struct SkipFlags {
  std::string node, until, reason;
};

void skip(Context& context, const SkipFlags& flags) {
  TimeMs until = 0;
  if (!flags.until.empty()) {
    const auto read = parse_local_time(flags.until);
    if (!read.ok()) return complain(context, read.error());
    until = *read;
  }
  Api api(context);
  const auto done = api.post(
      "/v1/rollout/skip",
      {{"node", flags.node}, {"reason", flags.reason}, {"until", until}, {"by", "muster rollout skip"}});
  if (!done.ok()) return complain(context, done.error(), api.details());
  show(context, *done, [&] {
    fmt::print("{} is left out of rollouts{}\n", flags.node,
               until == 0 ? ": `muster rollout unskip` ends that" : " until " + local_time(until));
  });
}

void unskip(Context& context, const std::string& node) {
  Api api(context);
  const auto done = api.post("/v1/rollout/unskip", {{"node", node}, {"by", "muster rollout unskip"}});
  if (!done.ok()) return complain(context, done.error(), api.details());
  show(context, *done, [&] { fmt::print("{} takes part in rollouts again\n", node); });
}

void change(Context& context, const std::string& what, const char* said) {
  Api api(context);
  const auto done = api.post("/v1/rollout/" + what, {{"by", "muster rollout " + what}});
  if (!done.ok()) return complain(context, done.error(), api.details());
  show(context, *done, [&] { fmt::print("{}", said); });
}

void print_packages(const Json& packages) {
  if (!packages.is_object()) return fmt::print("  no package list recorded for at least one of the images\n");
  for (const auto& [name, change] : packages["changed"].items())
    fmt::print("  {} {} -> {}\n", name, text_at(change, "from"), text_at(change, "to"));
  for (const auto& [name, version] : packages["added"].items())
    fmt::print("  + {} {}\n", name, version.get<std::string>());
  for (const auto& [name, version] : packages["removed"].items())
    fmt::print("  - {} {}\n", name, version.get<std::string>());
}

void print_report(const Json& r) {
  Json status = r;
  status.erase("left");  // in a report, this is {node: reason}, and is printed below
  print_status(status);
  for (const Json& image : list_of(r, "images")) {
    fmt::print("\n{} -> {}: {}\n", digest_or_dash(text_at(image, "from")),
               digest_or_dash(text_at(image, "to")), joined(list_of(image, "nodes")));
    print_packages(image.value("packages", Json()));
  }
  fmt::print("\n");
  for (const Json& node : list_of(r, "nodes")) {
    fmt::print("{:<16} batch {} (run {}): {}{}\n", text_at(node, "node"), node.value("batch", 0),
               node.value("run", int64_t{0}), text_at(node, "result"),
               text_at(node, "reason").empty() ? "" : ": " + clean_at(node, "reason"));
    for (const Json& phase : list_of(node, "phases")) {
      const Json before = phase.value("before_ms", Json());
      fmt::print("    {:<12} {:<10} {}\n", text_at(phase, "phase"), to_human(phase.value("ms", int64_t{0})),
                 before.is_number() ? "before: " + to_human(before.get<int64_t>()) : "");
    }
  }
  const Json left = r.value("left", Json::object());
  for (const auto& [node, reason] : left.items())
    fmt::print("{:<16} left out: {}\n", node, clean(reason.get<std::string>()));
}

void report(Context& context, int64_t id) {
  const auto r = Api(context).get(fmt::format("/v1/rollout/report?id={}", id));
  if (!r.ok()) return complain(context, r.error());
  show(context, *r, [&] { print_report(*r); });
}

void add_skips(Verb& verb, Context& context) {
  auto flags = std::make_shared<SkipFlags>();
  Verb& skipping = verb.add_verb("skip", "leave a node out of all rollouts although it is in service");
  skipping.add_option("NODE", &flags->node).required();
  skipping.add_option("--until", &flags->until,
                      "date, or date and time, from which it takes part again; default: `unskip`");
  skipping.add_option("--reason", &flags->reason, "shown by `status`, `plan` and `report`").required();
  skipping.example("muster rollout skip gpu03 --until 2026-12-24 --reason 'demo of a customer'");
  skipping.runs([flags, &context] { skip(context, *flags); });
  auto node = std::make_shared<std::string>();
  Verb& unskipping = verb.add_verb("unskip", "end a skip");
  unskipping.add_option("NODE", node.get()).required();
  unskipping.example("muster rollout unskip gpu03");
  unskipping.runs([node, &context] { unskip(context, *node); });
}

}  // namespace

void add_rollout(Verb& app, Context& context) {
  Verb& verb = app.add_verb("rollout", "roll out new images to running nodes in batches");
  verb.needs_verb();
  verb.add_verb("plan", "show each node's current and target image, method, batch and limit; changes nothing")
      .example("muster rollout plan")
      .runs([&context] { plan(context); });
  auto approval = std::make_shared<Approval>();
  Verb& approving =
      verb.add_verb("approve", "approve the rollout of the planned images; one approval covers all batches");
  add_approval(approving, *approval, "approve without confirmation");
  auto canaries = std::make_shared<std::vector<std::string>>();
  approving.add_option("--canary", canaries.get(),
                       "node to be the canary of its image, also if it failed before (repeatable)");
  approving.example("muster rollout approve --yes");
  approving.runs([approval, canaries, &context] { approve_rollout(context, *approval, *canaries); });
  auto flags = std::make_shared<Start>();
  Verb& starting =
      verb.add_verb("start", "open a window of length `rollout.window` in which batches may start");
  starting.add_flag("--wait", &flags->wait,
                    "wait until nothing more will happen in this window, and retry what passes, such as a "
                    "controller that restarts; the exit code gives the result");
  starting.add_option("--timeout", &flags->timeout, "give up waiting after this long, e.g. 12h")
      .shows_default();
  starting.example("muster rollout start --wait");
  starting.runs([flags, &context] { start(context, *flags); });
  add_status_of_rollout(verb, context);
  verb.add_verb("pause", "start no batch after the current one")
      .example("muster rollout pause")
      .runs([&context] {
        change(
            context, "pause",
            "paused: the current batch will finish, but no other will start; continue with `muster rollout "
            "resume`\n");
      });
  verb.add_verb("resume", "end a pause").example("muster rollout resume").runs([&context] {
    change(context, "resume",
           "resumed; outside a window, the rollout continues at the next `muster rollout start`\n");
  });
  add_skips(verb, context);
  auto id = std::make_shared<int64_t>(0);
  Verb& reporting = verb.add_verb("report", "show changes, durations, and which nodes were left out and why");
  reporting.add_option("--id", id.get(), "rollout id (default: the newest)").positive();
  reporting.example("muster rollout report");
  reporting.runs([id, &context] { report(context, *id); });
  verb.footer(
      "The unit muster-rollout.timer starts it every night: `systemctl enable --now muster-rollout.timer`.");
  verb.example("muster rollout plan").example("muster rollout approve --yes");
}

}  // namespace muster::cli
