// What would stop a first bring-up: of the spec in the request, which is not stored, or of the newest one.
#include <memory>
#include <utility>

#include "controller/api/handlers.h"
#include "controller/api/offered_spec.h"
#include "controller/api/services.h"
#include "controller/bringup/whole_spec.h"
#include "controller/current/current_spec.h"
#include "controller/doctor/service/doctor_service.h"

namespace muster::api {

void run_doctor(const CallPtr& call) {
  std::shared_ptr<const Spec> spec;  // null: there is none
  Json warnings = Json::array();     // of an offered one
  if (!call->request.body.empty()) {
    const std::string file = call->query("file", "cluster.yaml");
    auto offered = offered_spec(call, call->request.body, file);
    if (!offered) return;
    warnings = findings_json(offered->warnings, file);
    spec = std::make_shared<const Spec>(std::move(offered->spec));
  } else if (const auto current = call->services.spec.get(); current.ok()) {
    spec = std::shared_ptr<const Spec>(*current, &(*current)->spec);
  } else if (current.error().code != Code::not_found) {
    return call->error(current.error());
  }
  call->services.doctor.run(spec, [call, warnings](Result<Json> found) {
    if (!found.ok()) return call->error(found.error());
    (*found)["warnings"] = warnings;
    call->ok(*found);
  });
}

}  // namespace muster::api
