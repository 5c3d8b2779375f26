// The controller itself: version, metrics, backup, certificates; and secrets, which are stored but never
// returned.
#include "base/version.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/link/event_log.h"
#include "controller/link/link_hub.h"
#include "controller/metrics/exposition.h"
#include "controller/metrics/service/metrics_service.h"
#include "controller/power/service/power_service.h"
#include "controller/store/migrate.h"
#include "controller/trust/authority.h"
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

void get_version(const CallPtr& call) {
  call->ok({{"version", kProgramVersion},
            {"lab", call->services.options.lab},
            {"ca_fingerprint", call->services.authority.ca_fingerprint()}});
}

void get_metrics(const CallPtr& call) {
  call->text(200, call->services.metrics.text(), Exposition::kContentType);
}

// The path is on the controller host, written by musterd as root: only for clients of the Unix socket.
void make_backup(const CallPtr& call) {
  if (call->listener != Listener::local)
    return call->error(fail(
        Code::denied, "a backup can be made only on the controller host, through the controller's socket"));
  const auto body = parse_json(call->request.body);
  if (!body.ok()) return call->error(body.error());
  JsonReader r(*body, "request");
  std::string path;
  r.get("path", path);
  if (const auto read = r.finish(); !read.ok()) return call->error(read.error());
  if (path.empty() || path.front() != '/')
    return call->error(fail(Code::invalid, "the path must be absolute"));
  auto result = std::make_shared<Status>(fail(Code::failed, "no backup was made: see musterd's log"));
  const std::string state = call->services.options.state;
  call->services.reactor.offload(
      [state, path, result] { *result = backup_store(state + "/muster.db", path); },
      [call, path, result] {
        if (!result->ok()) return call->error(result->error());
        call->record("", "backup", {{"path", path}});
        call->ok({{"path", path}});
      });
}

// With all others that the node has: who holds it may have renewed it.
void revoke_certificate(const CallPtr& call) {
  const auto row = call->services.store.certificate(call->arg("serial"));
  if (!row.ok()) return call->error(row.error());
  const NodeName node = row->node;
  call->services.store.write({RevokeCertificates{node}}, [call, node](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->services.link.hang_up(node);
    call->record(node, "certificate", {{"action", "revoked"}, {"serial", call->arg("serial")}});
    call->ok({{"serial", call->arg("serial")}, {"node", node}});
  });
}

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
    call->record("", "secret", {{"name", name}, {"action", "set"}});
    call->ok({{"name", name}});
  });
}

void delete_secret(const CallPtr& call) {
  const std::string name = call->arg("name");
  if (refuse_reserved(call, name)) return;
  if (const auto known = call->services.store.secret(name); !known.ok()) return call->error(known.error());
  call->services.vault.remove(name, [call, name](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->record("", "secret", {{"name", name}, {"action", "removed"}});
    call->ok({{"name", name}});
  });
}

}  // namespace muster::api
