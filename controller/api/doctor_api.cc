// What would stop a first bring-up: of the spec in the request, which is not stored, or of the newest one.
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/current/current_spec.h"
#include "controller/doctor/service/doctor_service.h"
#include "controller/spec/reader/parse_spec.h"

namespace muster::api {
namespace {

using SpecPtr = std::shared_ptr<const Spec>;

// Null: there is none.
Result<SpecPtr> spec_to_examine(const Call& call) {
  if (!call.request.body.empty()) {
    ParsedSpec parsed = parse_spec(call.request.body, call.services.bringup.names());
    if (!parsed.errors.empty())
      return fail(Code::invalid, to_string(parsed.errors, call.query("file", "cluster.yaml")));
    return SpecPtr(std::make_shared<Spec>(std::move(parsed.spec)));
  }
  const auto current = call.services.spec.get();
  if (current.ok()) return SpecPtr(*current, &(*current)->spec);
  if (current.error().code == Code::not_found) return SpecPtr();
  return current.error();
}

}  // namespace

void run_doctor(const CallPtr& call) {
  auto spec = spec_to_examine(*call);
  if (!spec.ok()) return call->error(spec.error());
  call->services.doctor.run(std::move(spec).value(), [call](Result<Json> found) {
    if (!found.ok()) return call->error(found.error());
    call->ok(*found);
  });
}

}  // namespace muster::api
