// Rollouts: approval, progress, and report.
#include "base/json_at.h"
#include "controller/api/from_archive.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/image/service/image_service.h"
#include "controller/ports/store.h"
#include "controller/rollout/service/rollout_report.h"
#include "controller/rollout/service/rollout_service.h"

namespace muster::api {
namespace {

RolloutService::Done answer_to(const CallPtr& call) {
  return [call](Result<Json> shown) {
    if (!shown.ok()) return call->error(shown.error());
    call->ok(*shown);
  };
}

// As answer_to(), for a request that changes the rollout. `node`: which it is about, if one.
RolloutService::Done recorded(const CallPtr& call, const char* action, const NodeName& node = {}) {
  return [call, action, node](Result<Json> shown) {
    if (!shown.ok()) return call->error(shown.error());
    if (shown->value("begun", true))
      call->record(node, "rollout", {{"action", action}, {"id", integer_at(*shown, "id")}});
    call->ok(*shown);
  };
}

std::vector<std::string> canaries_of(const Json& body) {
  std::vector<std::string> out;
  for (const Json& node : list_at(body, "canaries"))
    out.push_back(node.is_string() ? node.get<std::string>() : "");
  return out;
}

}  // namespace

void get_rollout(const CallPtr& call) { call->services.rollout.status(answer_to(call)); }

void plan_rollout(const CallPtr& call) {
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok()) return call->error(body.error());
  call->services.rollout.plan(answer_to(call), canaries_of(*body));
}

void approve_rollout(const CallPtr& call) {
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok()) return call->error(body.error());
  RolloutService::ToApprove what{text_at(*body, "digest"), requested_by(*call), canaries_of(*body)};
  if (what.digest.empty())
    return call->error(
        fail(Code::invalid, "`digest` is required: the digest of the approval, as shown by the plan"));
  call->services.rollout.approve(std::move(what), recorded(call, "approved"));
}

void start_rollout(const CallPtr& call) {
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok()) return call->error(body.error());
  call->services.rollout.start({integer_at(*body, "late_ms"), is_true_at(*body, "by_timer")},
                               recorded(call, "started"));
}

void skip_node(const CallPtr& call) {
  const auto body = parse_json(call->request.body);
  if (!body.ok()) return call->error(body.error());
  rollout::Skip skip{text_at(*body, "reason"), requested_by(*call)};
  skip.until = integer_at(*body, "until");
  const std::string node = text_at(*body, "node");
  call->services.rollout.skip(node, std::move(skip), recorded(call, "skipped", NodeName(node)));
}

void unskip_node(const CallPtr& call) {
  const auto body = parse_json(call->request.body);
  if (!body.ok()) return call->error(body.error());
  const std::string node = text_at(*body, "node");
  call->services.rollout.unskip(node, recorded(call, "unskipped", NodeName(node)));
}

void pause_rollout(const CallPtr& call) {
  call->services.rollout.pause(requested_by(*call), recorded(call, "paused"));
}

void resume_rollout(const CallPtr& call) { call->services.rollout.resume(recorded(call, "resumed")); }

void report_rollout(const CallPtr& call) {
  const auto row = call->services.store.rollout(std::strtoll(call->query("id", "0").c_str(), nullptr, 10));
  if (!row.ok()) return call->error(row.error());
  auto record = rollout::record_from_text(row->text);
  if (!record.ok()) return call->error(record.error());
  const auto packages = [state = call->services.options.state](const std::string& digest) {
    return packages_of_image(state, digest);
  };
  call->services.archive.answer(
      call, [record = std::move(record).value(), packages](RunArchive& archive) -> Result<HttpResponse> {
        TRY(const Json report, rollout_report(record, archive, packages));
        return HttpResponse::json(200, body_of(report));
      });
}

}  // namespace muster::api
