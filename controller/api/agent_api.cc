// Calls of agents: joining with a one-time token, orders, events, files; and the files that machines fetch
// while they boot. Those over plain HTTP: only the one-time token in an armed node's script is secret, and
// clients check everything by digest (docs/threat-model.md).
#include <filesystem>
#include <set>
#include <sstream>
#include <vector>

#include "base/split.h"
#include "base/wire.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/boot/boot.h"
#include "controller/boot/service/boot_service.h"
#include "controller/image/service/image_service.h"
#include "controller/link/link_hub.h"
#include "controller/trust/authority.h"
#include "sys/log.h"

namespace muster::api {
namespace {

// True if the agent reports CAs, and they are not those that it is to trust now.
bool trusts_others(const Call& call) {
  if (!mac_of_unknown(call.agent).empty()) return false;  // it joins again soon
  const std::string reported = call.query(wire::kTrusts);
  return !reported.empty() && reported != call.services.authority.trust();
}

// Of a request that is never large: what cannot be one is not parsed.
Result<Json> small_json(const Call& call) {
  constexpr size_t kLargest = 64 << 10;
  if (call.request.body.size() > kLargest) return fail(Code::invalid, "the request is too large");
  return parse_json(call.request.body);
}

}  // namespace

void agent_join(const CallPtr& call) {
  const auto json = small_json(*call);
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
      call->request.remote, call->request.remote_port);
}

void agent_renew(const CallPtr& call) {
  if (!mac_of_unknown(call->agent).empty())
    return call->error(fail(Code::denied, "this machine is not declared"));
  const auto json = small_json(*call);
  if (!json.ok()) return call->error(json.error());
  std::string csr;
  JsonReader reader(*json, "renew");
  reader.get("csr_pem", csr);
  if (const auto read = reader.finish(); !read.ok()) return call->error(read.error());
  const auto row = call->services.store.certificate(call->request.peer_serial);
  if (!row.ok()) return call->error(row.error());
  call->services.boot.renew(
      *row, csr,
      [call](Result<wire::JoinReply> reply) {
        if (!reply.ok()) return call->error(reply.error());
        call->ok(wire::to_json(*reply));
      },
      trusts_others(*call));
}

void agent_orders(const CallPtr& call) {
  const auto ids = split(call->query("have"), ',');
  std::set<std::string> have(ids.begin(), ids.end());
  Presence present;
  present.boot_id = call->query("boot");
  present.image_digest = Digest(call->query("image"));
  present.storage = call->query("storage");
  present.slot = slot_of(call->query("slot"));
  present.trial = call->query("trial") == "1";
  present.trusts = call->query(wire::kTrusts);
  if (const auto mode = wire::mode_from_string(call->query("mode")); mode.ok()) present.mode = *mode;
  call->services.link.poll(
      NodeName(call->agent), std::move(have),
      [call](wire::PollReply reply) {
        reply.renew = trusts_others(*call);
        call->ok(wire::to_json(reply));
      },
      present);
}

void agent_events(const CallPtr& call) {
  const size_t received = call->request.body.size();
  HeldBack& held_back = call->services.link.held_back();
  // Received before the pause began.
  if (held_back.holds(call->agent, received))
    return call->error(fail(Code::unavailable, "too much was sent in vain; try again later"));
  const auto json = parse_json(call->request.body);
  auto batch = json.ok() ? wire::event_batch_from_json(*json) : json.error();
  if (!batch.ok()) {
    held_back.note_wasted(call->agent, received);
    return call->error(batch.error());
  }
  call->services.link.take(
      NodeName(call->agent), std::move(batch).value(),
      [call](Result<uint64_t> acknowledged) {
        if (!acknowledged.ok()) return call->error(acknowledged.error());
        call->ok({{"ack", *acknowledged}});
      },
      received);
}

// Only binaries that agents install, by name; all other files come from the boot port, checked by digest.
void agent_files(const CallPtr& call) {
  if (!mac_of_unknown(call->agent).empty())
    return call->error(fail(Code::denied, "this machine is not declared"));
  const std::string name = call->arg("path");
  if (name == "muster-agent") return send_file(call, call->services.options.agent_binary);
  if (name == "muster-accept") return send_file(call, call->services.options.accept_binary);
  send_below(call, call->services.options.state + "/files", name);
}

void boot_chain(const CallPtr& call) { call->text(200, kBootChain); }

void boot_script(const CallPtr& call) {
  const std::string name = call->arg("script");
  const std::string suffix = ".ipxe";
  if (name.size() <= suffix.size() || name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
    return call->error(fail(Code::not_found, "no such script"));
  call->services.boot.script_for(
      name.substr(0, name.size() - suffix.size()),
      [call](Result<std::string> script) {
        if (!script.ok()) return call->error(script.error());
        call->text(200, *script);
      },
      call->request.remote);
}

// /ram/IMAGE/vmlinuz and /ram/IMAGE/initrd
void boot_ram_file(const CallPtr& call) {
  const std::string path = call->arg("path");
  const auto slash = path.find('/');
  const std::string image = path.substr(0, slash),
                    file = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (file != "vmlinuz" && file != "initrd") return call->error(fail(Code::not_found, "no such file"));
  send_below(call, call->services.options.state + "/images", image + "/current/ram-" + file);
}

// /images/NAME/DIGEST/FILE
void boot_image_file(const CallPtr& call) {
  const std::string path = call->arg("path");
  std::vector<std::string> parts;
  std::istringstream in(path);
  for (std::string part; std::getline(in, part, '/');) parts.push_back(part);
  if (parts.size() != 3 || !call->services.images.publishes(parts[0], parts[1], parts[2]))
    return call->error(fail(Code::not_found, "no such file"));
  send_below(call, call->services.options.state + "/images", path);
}

// /programs/SHA256, in hexadecimal: programs for a system that is written while jobs run (wire::SlotJob)
void boot_program(const CallPtr& call) {
  const std::string path = call->services.images.programs().path_of(call->arg("digest"));
  if (path.empty()) return call->error(fail(Code::not_found, "no such program"));
  send_file(call, path);
}

namespace fs = std::filesystem;

void send_file(const CallPtr& call, const std::string& path) {
  std::error_code error;
  const auto real = fs::canonical(path, error);  // the server does not follow links itself
  if (path.empty() || error || !fs::is_regular_file(real, error))
    return call->error(fail(Code::not_found, "no such file"));
  HttpResponse response;
  response.file = real.string();
  response.headers["Content-Type"] = "application/octet-stream";
  call->responder->respond(std::move(response));
}

void send_below(const CallPtr& call, const std::string& folder, const std::string& name) {
  std::error_code error;
  const auto root = fs::canonical(folder, error);
  if (error) return call->error(fail(Code::not_found, "no such file"));
  const auto real = fs::canonical(root / fs::path(name).relative_path(), error);
  if (error) return call->error(fail(Code::not_found, "no such file"));
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  if (end != root.end()) return call->error(fail(Code::not_found, "no such file"));
  send_file(call, real.string());
}

}  // namespace muster::api
