#include "cli/carry_out.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/command_line.h"
#include "base/digest.h"
#include "base/json_dump.h"
#include "base/time.h"
#include "cli/follow.h"
#include "cli/interrupt_note.h"
#include "cli/terminal.h"
#include "sys/os.h"
#include "sys/path_kind.h"

namespace muster::cli {
namespace {

constexpr int kMostPlans = 6;  // wake, discover, install, and further plans
// How often a plan may change between planning and approval before muster gives up.
constexpr int kMostConflicts = 10;
constexpr size_t kShortDigest = 8;

std::string hex_part(const std::string& digest) {
  const auto colon = digest.find(':');
  return colon == std::string::npos ? digest : digest.substr(colon + 1);
}

// Handles one line of an image job's stream: {"what", "fraction"}, {"error"} or {"digest", "reused"}. Prints
// nothing about an unchanged image unless it was requested by name.
Status show_build_line(const Context& context, const std::string& name, bool explicitly,
                       const std::string& line, std::string& last) {
  const auto json = parse_json(line);
  if (!json.ok() || !json->is_object()) return Ok{};
  if (json->contains("error")) {
    const Json& error = (*json)["error"];
    return fail(code_from_string(error.value("code", "failed")), clean(error.value("message", "it failed")));
  }
  if (context.json) return Ok{};
  const double fraction = json->value("fraction", -1.0);
  const std::string what = clean(json->value("what", ""));
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* fresh_line = terminal ? "\r\x1b[K" : "";
  if (json->contains("digest")) {
    const bool reused = json->value("reused", false);
    if (!reused || explicitly)
      fmt::print("{}image {}: {}{}\n", fresh_line, name, reused ? "unchanged, " : "",
                 json->value("digest", ""));
  } else if (fraction <= 0)
    fmt::print("{}image {}: {}\n", fresh_line, name, what);
  else if (terminal)
    fmt::print("\r\x1b[Kimage {}: {} {:>3.0f} %  {}", name, bar(fraction, 24, true), fraction * 100, what);
  else if (what != last)
    fmt::print("image {}: {}\n", name, what);
  last = what;
  std::fflush(stdout);
  return Ok{};
}

Status build_one(Context& context, const ImageOrder& order, bool explicitly) {
  Json body = {{"name", order.name}, {"rebuild", order.rebuild}};
  if (!order.bake.empty()) body["bake"] = order.bake;
  if (!order.recipe.empty()) body["recipe"] = order.recipe;
  return image_job(context, "build", order.name, body, explicitly);
}

bool leaves_out(const Json& planned) { return !planned.value("left_out", Json::array()).empty(); }

int exit_of(const Context& context, const Json& run) {
  const int code = exit_for_run(run);
  if (code != kFailed || run.value("kind", "") != "accept") return code;
  const auto json =
      Api(context).get(fmt::format("/v1/report?run={}&format=json", run.value("id", int64_t{0})));
  const auto report = json.ok() ? report_from_json(*json) : Result<Report>(json.error());
  return report.ok() ? exit_for_run(run, *report) : code;
}

// `missing`: a requested node was not found or is left out.
void finish(Context& context, const Goal& goal, const Json& run, bool missing) {
  context.exit = exit_of(context, run);
  if (missing && (context.exit == kAccepted || context.exit == kDegraded)) context.exit = kPartial;
  const auto folder = goal.report_dir.empty()
                          ? Result<std::string>(fail(Code::not_found, "not requested"))
                          : write_report(context, run.value("id", int64_t{0}), goal.report_dir);
  Json out = run;
  out["exit"] = context.exit;
  if (folder.ok()) out["report"] = *folder;
  show(context, out, [&] {
    fmt::print("\n{}", render_summary(run, terminal_width()));
    const std::string good = goal.kind == "drain" ? "drained" : "accepted";
    std::map<std::string, size_t> results;
    for (const Json& node : run.value("nodes", Json::array())) ++results[node.value("result", "")];
    fmt::print("\n{} of {} nodes {}{}\n", results[good], run.value("nodes", Json::array()).size(), good,
               results["degraded"] ? fmt::format(", {} degraded", results["degraded"]) : "");
    if (results["looked_at"])
      fmt::print("nodes looked at, not measured: {} (no load ran on them)\n", results["looked_at"]);
    if (results["returned"])
      fmt::print("nodes back in the previous system: {} (for the reason, see `muster why NODE`)\n",
                 results["returned"]);
    if (results["degraded"])  // a note reports a floor that all of them miss
      for (const Json& note : run.value("notes", Json::array()))
        fmt::print("note: {}\n", note.get<std::string>());
    if (folder.ok())
      fmt::print("report: {}/report.html\n", *folder);
    else if (!goal.report_dir.empty())
      fmt::print(stderr, "muster: the report could not be written: {}\n", folder.error().message);
  });
}

// True while a run is active: a plan would then be stored, but could not be started.
bool a_run_is_under_way(Context& context) {
  const auto status = Api(context).get("/v1/status");
  if (!status.ok() || !status->is_object()) return false;
  const Json run = status->value("run", Json());
  return run.is_object() && run.value("state", "") == "running";
}

// Unused fields are left out: a controller of an older version rejects unknown ones.
Json request_of(const Goal& goal, const std::string& kind) {
  Json out = {{"kind", kind}, {"nodes", goal.nodes}, {"force", goal.force}, {"profile", goal.profile}};
  if (goal.through_ram) out["through_ram"] = true;
  if (goal.reimage) out["reimage"] = true;
  return out;
}

}  // namespace

const char* plan_route(const Context& context) { return context.json ? "/v1/plan" : "/v1/plan?brief=1"; }

bool confirm_prompt(const std::string& question) {
  if (::isatty(STDIN_FILENO) != 1) return false;
  fmt::print("{} [y/N] ", question);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Status confirmed(const Context& context, bool yes, const std::string& question) {
  if (yes) return Ok{};
  if (context.json || ::isatty(STDIN_FILENO) != 1)
    return fail(Code::invalid, "nothing was done: without a terminal, and with --json, pass --yes");
  if (confirm_prompt(question)) return Ok{};
  return fail(Code::denied, "not confirmed: nothing was done");
}

void add_approval(Verb& verb, Approval& approval, const std::string& what) {
  verb.add_flag("--yes,-y", &approval.yes, what);
  verb.add_option("--approve", &approval.digest, "approve exactly the plan with this digest");
}

bool names_digest(const Approval& approval, const std::string& digest) {
  const std::string given = hex_part(approval.digest), whole = hex_part(digest);
  return given.size() >= kShortDigest && whole.compare(0, given.size(), given) == 0;
}

Status approve(const Context& context, const Approval& approval, const Json& planned,
               const std::string& question) {
  const std::string digest = planned.value("digest", "");
  if (approval.yes || names_digest(approval, digest)) return Ok{};
  if (!approval.digest.empty())
    return fail(Code::denied, fmt::format("the plan is now {}, not the approved {}: nothing was done", digest,
                                          approval.digest));
  if (!context.json && confirm_prompt(question)) return Ok{};
  return fail(Code::denied, fmt::format("not approved, nothing was done: pass --yes, or --approve {}",
                                        short_digest(digest)));
}

void nothing_to_do(Context& context, const Json& planned, bool missing) {
  context.exit = missing ? kPartial : kAccepted;
  show(context, {{"result", "unchanged"}, {"plan", planned}, {"exit", context.exit}}, [&] {
    const auto count = planned.value("unchanged", Json::array()).size();
    if (count == 0 && missing)
      fmt::print("nothing was done: every node is left out\n");
    else
      fmt::print("already accepted, nothing changed ({} node{})\n", count, count == 1 ? "" : "s");
    // In the response of an older controller, the notes are part of the plan.
    const Json notes = planned.value("plan", Json::object()).value("notes", Json::array());
    for (const Json& note : planned.value("notes", notes)) fmt::print("note: {}\n", note.get<std::string>());
  });
}

void print_plan(const Json& planned) {
  fmt::print("{}", planned.value("text", dump_json(planned, 2) + "\n"));
}

Status image_job(Context& context, const std::string& verb, const std::string& name, const Json& body,
                 bool explicitly) {
  std::string last;
  Status shown = Ok{};
  bool finished = false;
  const InterruptNote note(
      fmt::format("the controller goes on with image {}; `muster image list` shows when it "
                  "is there",
                  name));
  TRY_(Api(context).lines("POST", "/v1/images/" + verb, dump_json(body), [&](const std::string& line) {
    shown = show_build_line(context, name, explicitly, line, last);
    finished = finished || line.find("\"digest\"") != std::string::npos;
    return shown.ok();
  }));
  TRY_(std::move(shown));
  if (!finished) return fail(Code::failed, fmt::format("image {} {}: ended without a result", verb, name));
  return Ok{};
}

Status build_images(Context& context, const ImageOrder& order) {
  if (!order.name.empty()) return build_one(context, order, true);
  TRY(const auto listed, Api(context).get("/v1/images"));
  for (const Json& image : listed.value("images", Json::array()))
    if (image.value("needed", false))
      TRY_(build_one(context, {image.value("name", ""), order.rebuild}, false));
  return Ok{};
}

std::string wrong_report_folder(const std::string& given) {
  return wrong_path(given, {PathKind::folder, PathKind::nothing});
}

Result<std::string> write_report(Context& context, int64_t run, const std::string& folder) {
  const Files files;
  const std::string absolute = std::filesystem::absolute(folder).lexically_normal().string();
  const std::pair<const char*, const char*> forms[] = {
      {"html", "/report.html"}, {"json", "/report.json"}, {"junit", "/junit.xml"}, {"flat", "/nodes.jsonl"}};
  for (const auto& [format, name] : forms) {
    TRY(const auto content, Api(context).text(fmt::format("/v1/report?run={}&format={}", run, format)));
    TRY_(files.write(absolute + name, content));
  }
  return absolute;
}

void reach(Context& context, const Goal& goal) {
  std::string kind = goal.kind;
  bool missing = false, woke = false;
  Json last_run;
  Error last = fail(Code::failed, "discovery found nothing more to plan");
  std::string agreed = goal.agreed;  // if planning again gives the same plan, there is no second prompt
  for (int runs = 0, conflicts = 0; runs < kMostPlans && conflicts < kMostConflicts;) {
    Api api(context);
    const Json request = request_of(goal, kind);
    const auto planned = api.post(plan_route(context), request);
    if (!planned.ok()) {
      if (!context.json) fmt::print(stderr, "{}", render_refusals(api.details()));
      return complain(context, planned.error(), api.details());
    }
    missing = missing || leaves_out(*planned);
    if (planned->value("empty", false)) return nothing_to_do(context, *planned, missing);
    const bool wakes = planned->value("kind", "") == "wake";
    if (wakes && woke)
      return finish(context, goal, last_run, true);  // the woken nodes have had time to start
    const std::string digest = planned->value("digest", "");
    if (!context.json && digest != agreed) print_plan(*planned);
    if (digest != agreed)
      if (const auto approved = approve(context, goal.approval, *planned); !approved.ok())
        return complain(context, approved.error(), *planned);
    agreed = digest;
    const auto started = api.post("/v1/plans/" + digest + "/approve", {{"by", "muster up"}});
    if (!started.ok() && started.error().code == Code::conflict && goal.approval.digest.empty()) {
      last = started.error();
      if (a_run_is_under_way(context)) break;
      if (++conflicts < kMostConflicts && !context.json)
        fmt::print(stderr, "not started: {}\n", clean(last.message));
      continue;
    }
    if (!started.ok()) return complain(context, started.error(), api.details());
    ++runs;
    const auto run = follow_run(context, started->value("run", int64_t{0}));
    if (!run.ok()) return complain(context, run.error());
    // After a discovery the discovered nodes are next; after silent nodes were woken, all that report.
    woke = woke || wakes;
    last_run = *run;
    const bool goes_on =
        wakes || (planned->value("kind", "") == "discover" && run->value("state", "") != "failed");
    if (!goes_on) return finish(context, goal, *run, missing);
    missing = missing || run->value("state", "") != "done";
  }
  complain(context, std::move(last).with("no plan could be started"));
}

}  // namespace muster::cli
