// Plans and runs.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "controller/api/from_archive.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/conclude.h"
#include "controller/bringup/run_view.h"
#include "controller/executor/executor.h"
#include "controller/plan/shared_text.h"
#include "sys/http/http.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

Result<Bringup::Request> request_from(const std::string& body) {
  Bringup::Request request;
  if (body.empty()) return request;
  TRY(const auto json, parse_json(body));
  JsonReader r(json, "request");
  std::string kind;
  r.get_or("kind", kind, std::string("auto"));
  r.get_or("nodes", request.nodes, {});
  r.get_or("force", request.force, {});
  r.get_or("profile", request.profile, {});
  r.get_or("through_ram", request.through_ram, false);
  r.get_or("reimage", request.reimage, false);
  TRY_(r.finish());
  TRY(request.kind, request_kind_from_string(kind));
  return request;
}

Result<std::string> body_of_stored(RunArchive& archive, const std::string& digest) {
  TRY(auto row, archive.plan(digest));
  TRY(auto json, parse_json(row.json));
  std::string().swap(row.json);  // freed as soon as it is parsed, because it is large
  TRY(const auto plan, plan_from_json(json));
  json = nullptr;
  return body_with_plan(planned_json(plan, row.digest), plan);
}

// Reads the rows again if the run ended meanwhile: its end is stored together with the last rows.
Result<RunSources> read_whole(RunArchive& archive, const RunRow& row,
                              const std::shared_ptr<const Plan>& plan) {
  TRY(auto run, read_run(archive, row, RunRows::turns, plan));
  TRY(const auto now, archive.run(row.id));
  return now.state == row.state ? std::move(run) : read_run(archive, now, RunRows::turns, plan);
}

// Only the report shows that a node is degraded or was only looked at, and which floors count: its final
// verdicts are added.
Result<std::string> body_of_run(RunArchive& archive, const RunRow& row,
                                const std::shared_ptr<const Plan>& plan) {
  TRY(const auto run, read_whole(archive, row, plan));
  TRY(auto view, run_view(run));
  const auto text = signed_report(archive, row.id);
  if (!text.ok()) return body_of(view);
  const auto report = report_from_signed(*text);
  if (!report.ok()) return body_of(view);
  view["notes"] = report->notes;
  std::map<std::string, const NodeReport*> less;
  for (const auto& node : report->nodes)
    if (node.verdict == NodeVerdict::degraded || node.verdict == NodeVerdict::looked_at)
      less[node.name] = &node;
  for (Json& node : view["nodes"])
    if (const auto found = less.find(node["name"].get_ref<const std::string&>()); found != less.end()) {
      node["result"] = to_string(found->second->verdict);
      node["reason"] = found->second->reason;
    }
  return body_of(view);
}

// If the run ended while its view was made, the stored run is rendered instead.
Result<std::string> body_under_way(RunArchive& archive, RunViewer& viewer, const RunRow& row,
                                   const std::shared_ptr<const Plan>& plan) {
  TRY(auto text, viewer.view(archive, row, plan));
  TRY(const auto now, archive.run(row.id));
  if (now.state == row.state) return std::move(text += '\n');
  viewer.forget(row.id);
  return body_of_run(archive, now, plan);
}

int64_t run_of(const Call& call) { return std::strtoll(call.arg("run").c_str(), nullptr, 10); }

}  // namespace

Json planned_json(const Plan& plan, const std::string& digest) {
  return {{"digest", digest},
          {"kind", to_string(plan.kind)},
          {"empty", plan.empty()},
          {"nodes", plan.nodes},
          {"unchanged", plan.unchanged},
          {"left_out", plan.left_out},
          {"left_out_rules", plan.left_out_rules},
          {"notes", plan.notes},
          {"text", render_plan(plan, false)}};
}

std::string body_with_plan(const Json& others, const Plan& plan) {
  const TextAround around = text_around(others, "plan");
  return around.before + plan_text(plan) + around.after + "\n";
}

Json refusals_json(const std::vector<Refusal>& refusals) {
  Json list = Json::array();
  for (const auto& r : refusals) list.push_back({{"node", r.node}, {"rule", r.rule}, {"message", r.message}});
  return {{"code", "denied"},
          {"message", fmt::format("refused for safety (reasons: {}): nothing was done", refusals.size())},
          {"refusals", list}};
}

void make_plan(const CallPtr& call) {
  const auto request = request_from(call->request.body);
  if (!request.ok()) return call->error(request.error());
  // `brief`: the response lacks the plan itself, which grows with the square of the number of nodes.
  const bool brief = call->query("brief", "0") == "1";
  // Converting a large plan to JSON takes long, too, so a worker does it.
  const auto show = [brief](const MadePlan& made) {
    const Json others = planned_json(*made.plan, made.digest);
    return brief ? body_of(others) : body_with_plan(others, *made.plan);
  };
  call->services.bringup.plan_and_store(*request, show, [call](Result<MadePlanPtr> made) {
    if (!made.ok()) return call->error(made.error());
    if (!(*made)->refusals.empty()) return call->json(403, refusals_json((*made)->refusals));
    call->body(200, std::move((*made)->shown));
  });
}

void get_plan(const CallPtr& call) {
  call->services.archive.answer(call,
                                [digest = call->arg("digest")](RunArchive& archive) -> Result<HttpResponse> {
                                  TRY(auto body, body_of_stored(archive, digest));
                                  return HttpResponse::json(200, std::move(body));
                                });
}

std::string requested_by(const Call& call) {
  const auto body = parse_json(call.request.body.empty() ? "{}" : call.request.body);
  return text_of(call.caller, body.ok() && body->is_object() ? body->value("by", "") : "");
}

void approve_plan(const CallPtr& call) {
  call->services.bringup.approve(call->arg("digest"), requested_by(*call), [call](Result<int64_t> run) {
    if (!run.ok()) return call->error(run.error());
    call->ok({{"run", *run}});
  });
}

void list_runs(const CallPtr& call) {
  const auto runs = call->services.store.runs();
  if (!runs.ok()) return call->error(runs.error());
  Json list = Json::array();
  for (auto it = runs->rbegin(); it != runs->rend(); ++it) list.push_back(run_row_json(*it));
  call->ok({{"runs", list}});
}

void get_run(const CallPtr& call) {
  const Executor& executor = call->services.executor;
  const auto row = call->services.store.run(run_of(*call));
  if (!row.ok()) return call->error(row.error());
  const auto plan = executor.run_id() == row->id ? executor.shared_plan() : nullptr;
  const auto viewer = call->services.archive.viewer();
  const bool goes_on = plan && row->state == RunState::running;
  call->services.archive.answer(
      call, [row = *row, plan, viewer, goes_on](RunArchive& archive) -> Result<HttpResponse> {
        if (!goes_on) viewer->forget(row.id);
        auto body = goes_on ? body_under_way(archive, *viewer, row, plan) : body_of_run(archive, row, plan);
        if (!body.ok()) return body.error();
        return HttpResponse::json(200, std::move(body).value());
      });
}

void cancel_run(const CallPtr& call) {
  Executor& executor = call->services.executor;
  if (!executor.active() || executor.run_id() != run_of(*call)) {
    const auto held = call->services.problems.find("run");  // controller/bringup/held_run.h
    return call->error(fail(Code::conflict, held == call->services.problems.end()
                                                ? "this run is not active"
                                                : "this run is not active: " + held->second));
  }
  executor.cancel("cancelled by " + text_of(call->caller));
  call->ok({{"run", executor.run_id()}});
}

}  // namespace muster::api
