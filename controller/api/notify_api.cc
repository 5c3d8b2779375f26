// Notices: open causes, receivers, and what operators do about them.
#include "base/json_at.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/link/event_log.h"
#include "controller/notices/service/notice_service.h"

namespace muster::api {

void get_notices(const CallPtr& call) { call->ok(call->services.notices.shown()); }

void test_notices(const CallPtr& call) {
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok()) return call->error(body.error());
  call->services.notices.test(text_at(*body, "receiver"), [call](Result<Json> sent) {
    if (!sent.ok()) return call->error(sent.error());
    call->ok(*sent);
  });
}

void acknowledge_cause(const CallPtr& call) {
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok()) return call->error(body.error());
  const notices::Acknowledged ack{requested_by(*call), text_at(*body, "reason")};
  call->services.notices.acknowledge(call->arg("cause"), ack, [call, ack](Result<Json> cause) {
    if (!cause.ok()) return call->error(cause.error());
    call->record(NodeName(), "cause",
                 {{"action", "acknowledged"},
                  {"name", text_at(*cause, "cause")},
                  {"message", text_at(*cause, "what")},
                  {"reason", ack.reason}});
    call->ok(*cause);
  });
}

}  // namespace muster::api
