// Calls of agents: joining with a one-time token, orders, events, files.
#include <fmt/format.h>

#include <set>
#include <sstream>

#include "base/wire.h"
#include "controller/api/files.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/boot/service/boot_service.h"
#include "controller/link/discovery.h"
#include "controller/link/link_hub.h"
#include "sys/log.h"

namespace muster::api {
namespace {

// Rejects an undeclared machine while discovery is off. After ten minutes of rejections its RAM system
// reboots from disk.
bool refuse_undeclared(const CallPtr& call) {
  if (mac_of_unknown(call->agent).empty() || call->services.discovery.active()) return false;
  call->error(fail(Code::denied, "this machine is not declared, and discovery is off"));
  return true;
}

}  // namespace

void agent_join(const CallPtr& call) {
  const auto json = parse_json(call->request.body);
  if (!json.ok()) return call->error(json.error());
  const auto request = wire::join_request_from_json(*json);
  if (!request.ok()) return call->error(request.error());
  call->services.boot.join(
      *request,
      [call](Result<wire::JoinReply> reply) {
        if (reply.ok()) return call->ok(wire::to_json(*reply));
        log::warning("join refused", {{"remote", call->request.remote}, {"why", reply.error().message}});
        call->error(reply.error());
      },
      call->request.remote);
}

void agent_renew(const CallPtr& call) {
  if (!mac_of_unknown(call->agent).empty())
    return call->error(fail(Code::denied, "this machine is not declared"));
  const auto json = parse_json(call->request.body);
  if (!json.ok()) return call->error(json.error());
  std::string csr;
  JsonReader reader(*json, "renew");
  reader.get("csr_pem", csr);
  if (const auto read = reader.finish(); !read.ok()) return call->error(read.error());
  const auto row = call->services.store.certificate(call->request.peer_serial);
  if (!row.ok()) return call->error(row.error());
  call->services.boot.renew(call->agent, csr, row->issued, [call](Result<wire::JoinReply> reply) {
    if (!reply.ok()) return call->error(reply.error());
    call->ok(wire::to_json(*reply));
  });
}

void agent_orders(const CallPtr& call) {
  if (refuse_undeclared(call)) return;
  std::set<std::string> have;
  std::istringstream ids(call->query("have"));
  for (std::string id; std::getline(ids, id, ',');)
    if (!id.empty()) have.insert(id);
  Presence present;
  present.boot_id = call->query("boot");
  present.image_digest = Digest(call->query("image"));
  present.storage = call->query("storage");
  present.slot = slot_of(call->query("slot"));
  present.trial = call->query("trial") == "1";
  if (const auto mode = wire::mode_from_string(call->query("mode")); mode.ok()) present.mode = *mode;
  call->services.link.poll(
      NodeName(call->agent), std::move(have),
      [call](const wire::PollReply& reply) { call->ok(wire::to_json(reply)); }, present);
}

void agent_events(const CallPtr& call) {
  if (refuse_undeclared(call)) return;
  const auto json = parse_json(call->request.body);
  if (!json.ok()) return call->error(json.error());
  auto batch = wire::event_batch_from_json(*json);
  if (!batch.ok()) return call->error(batch.error());
  call->services.link.take(NodeName(call->agent), std::move(batch).value(),
                           [call](Result<uint64_t> acknowledged) {
                             if (!acknowledged.ok()) return call->error(acknowledged.error());
                             call->ok({{"ack", *acknowledged}});
                           });
}

// Sends the binaries that agents install on nodes, by name; agents fetch all other files from the boot port
// and check their digests.
void agent_files(const CallPtr& call) {
  if (!mac_of_unknown(call->agent).empty())
    return call->error(fail(Code::denied, "this machine is not declared"));
  const std::string name = call->arg("path");
  if (name == "muster-agent") return send_file(call, call->services.options.agent_binary);
  if (name == "muster-accept") return send_file(call, call->services.options.accept_binary);
  send_below(call, call->services.options.state + "/files", name);
}

}  // namespace muster::api
