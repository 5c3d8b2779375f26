// Secrets: values can be stored but never read back.
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/link/event_log.h"
#include "controller/power/service/power_service.h"
#include "controller/trust/vault.h"

namespace muster::api {
namespace {

bool refuse_reserved(const CallPtr& call, const std::string& name) {
  if (!is_reserved_secret(name)) return false;
  call->error(fail(Code::invalid,
                   "secret '" + name + "' is reserved: choose a name that does not begin with 'install-'"));
  return true;
}

}  // namespace

void list_secrets(const CallPtr& call) {
  const auto names = call->services.vault.list();
  if (!names.ok()) return call->error(names.error());
  Json list = Json::array();
  for (const auto& secret : *names) list.push_back({{"name", secret.name}, {"time", secret.time}});
  call->ok({{"secrets", list}});
}

void put_secret(const CallPtr& call) {
  const std::string name = call->arg("name");
  if (refuse_reserved(call, name)) return;
  if (call->request.body.empty()) return call->error(fail(Code::invalid, "a secret cannot be empty"));
  call->services.vault.put(name, call->request.body, [call, name](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->services.power.forget_refusals();  // a login that was rejected may succeed now
    call->services.events.add(0, "", "secret", {{"name", name}, {"action", "set"}});
    call->ok({{"name", name}});
  });
}

void delete_secret(const CallPtr& call) {
  const std::string name = call->arg("name");
  if (refuse_reserved(call, name)) return;
  call->services.vault.remove(name, [call, name](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->services.events.add(0, "", "secret", {{"name", name}, {"action", "removed"}});
    call->ok({{"name", name}});
  });
}

}  // namespace muster::api
