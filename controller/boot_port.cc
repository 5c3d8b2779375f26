#include "controller/boot_port.h"

#include "base/digest.h"
#include "base/log.h"

namespace muster {
namespace {

constexpr char kBootFromDisk[] = "#!ipxe\nexit\n";
constexpr size_t kUnknownMacsKept = 256;

}  // namespace

std::string normal_mac(std::string mac) {
  for (char& c : mac) c = c == '-' ? ':' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return mac;
}

BootService::BootService(Reactor& reactor, Store& store, const Authority& authority, Hooks hooks)
    : reactor_(reactor), store_(store), authority_(authority), hooks_(std::move(hooks)) {}

// Nothing to write: after a crash no node is armed, and the executor arms again what its journal says.
void BootService::arm(const std::string& node, std::function<void(Status)> done) {
  armed_[node] = "";
  reactor_.post([done = std::move(done)] { done(Ok{}); });
}

void BootService::disarm(const std::string& node) { armed_.erase(node); }

void BootService::mint(const std::string& node, const std::string& purpose,
                       std::function<void(Result<std::string>)> answer) {
  const std::string token = random_hex(24);
  TokenRow row;
  row.digest = sha256(token);
  row.node = node;
  row.purpose = purpose;
  row.expires = reactor_.now() + kTokenLife;
  store_.write({row}, [answer = std::move(answer), token](Status written) {
    if (!written.ok()) return answer(std::move(written).error());
    answer(token);
  });
}

void BootService::script_for(const std::string& any_mac, std::function<void(Result<std::string>)> answer) {
  const std::string mac = normal_mac(any_mac);
  const std::string node = hooks_.node_of_mac(mac);
  if (node.empty() && unknown_macs_.size() < kUnknownMacsKept) unknown_macs_[mac] = reactor_.now();
  const bool discover = node.empty() && discover_unknown_;
  if (!discover && !armed(node)) return answer(std::string(kBootFromDisk));
  const std::string name = discover ? "unknown-" + mac : node;
  mint(name, discover ? "discover" : "join", [this, name, mac, discover, answer](Result<std::string> token) {
    if (!token.ok()) return answer(std::move(token).error());
    auto script = hooks_.script(name, mac, *token);
    if (!script.ok()) return answer(std::move(script).error());
    if (!discover) {
      const auto still = armed_.find(name);
      if (still == armed_.end()) return answer(std::string(kBootFromDisk));
      still->second = sha256(*token);
    }
    log::info("RAM system handed out", {{"node", name}, {"mac", mac}});
    answer(std::move(script));
  });
}

Status BootService::check(const wire::JoinRequest& request, const TokenRow& token) const {
  if (token.node != request.node) return fail(Code::denied, "this token is for another node");
  if (token.expires <= reactor_.now()) return fail(Code::denied, "this token has expired");
  if (token.purpose == "join" && token.public_key.empty()) {
    const auto armed = armed_.find(token.node);
    if (armed != armed_.end() && !armed->second.empty() && armed->second != token.digest)
      return fail(Code::denied, "a newer token was handed out for this node");
  }
  const auto row = store_.node(token.node);
  const bool bound = row.ok() && !row->product_uuid.empty() && !request.product_uuid.empty();
  if (bound && row->product_uuid != request.product_uuid)
    return fail(Code::denied, "another machine (" + request.product_uuid + ") answers as " + token.node +
                                  ", which is bound to " + row->product_uuid);
  return Ok{};
}

void BootService::join(const wire::JoinRequest& request, std::function<void(Result<wire::JoinReply>)> answer) {
  const std::string digest = sha256(request.token);
  auto token = store_.token(digest);
  if (!token.ok()) {
    const bool unknown = token.error().code == Code::not_found;
    return answer(unknown ? fail(Code::denied, "unknown token") : token.error());
  }
  if (const auto allowed = check(request, *token); !allowed.ok()) return answer(allowed.error());
  const auto public_key = pki::public_key_fingerprint(request.csr_pem);
  if (!public_key.ok()) return answer(fail(Code::invalid, "the request for a certificate cannot be read"));
  if (in_flight_.count(digest)) return answer(fail(Code::unavailable, "this token is being used, ask again"));
  if (!token->public_key.empty()) return answer(answer_known(request, *token, *public_key));
  first_use(request, std::move(token).value(), *public_key, std::move(answer));
}

Result<wire::JoinReply> BootService::answer_known(const wire::JoinRequest& request, const TokenRow& token,
                                                  const std::string& public_key) const {
  if (token.public_key != public_key) return fail(Code::denied, "this token was used with another key");
  return wire::JoinReply{request.node, token.certificate, authority_.ca_pem()};
}

void BootService::first_use(const wire::JoinRequest& request, TokenRow token, const std::string& public_key,
                            std::function<void(Result<wire::JoinReply>)> answer) {
  const auto made = authority_.sign_agent(request.node, request.csr_pem);
  if (!made.ok()) return answer(made.error());
  token.public_key = public_key;
  token.certificate = made->pem;
  CertificateRow certificate;
  certificate.serial = made->serial;
  certificate.node = request.node;
  certificate.fingerprint = made->fingerprint;
  certificate.issued = reactor_.now();
  const std::string digest = token.digest;
  in_flight_.insert(digest);
  const wire::JoinReply reply{request.node, made->pem, authority_.ca_pem()};
  store_.write({token, certificate}, [this, digest, reply, answer = std::move(answer)](Status written) {
    in_flight_.erase(digest);
    if (!written.ok()) return answer(std::move(written).error());
    log::info("agent joined", {{"node", reply.node}});
    answer(reply);
  });
}

}  // namespace muster
