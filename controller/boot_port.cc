#include "controller/boot_port.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/log.h"

namespace muster {
namespace {

constexpr char kBootFromDisk[] = "#!ipxe\nexit\n";
constexpr size_t kUnknownMacsKept = 256;
constexpr int kUnknownScripts = 1024;   // per time that discovery is on: each one is a row in the store
constexpr char kUnknown[] = "unknown-";

bool is_mac(const std::string& text) {
  if (text.size() != 17) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (i % 3 == 2 ? text[i] != ':' : !std::isxdigit(static_cast<unsigned char>(text[i]))) return false;
  return true;
}

}  // namespace

std::string normal_mac(std::string mac) {
  for (char& c : mac) c = c == '-' ? ':' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return mac;
}

std::string unknown_name(const std::string& mac) { return kUnknown + normal_mac(mac); }

std::string mac_of_unknown(const std::string& name) {
  if (name.rfind(kUnknown, 0) != 0) return "";
  const std::string mac = name.substr(sizeof kUnknown - 1);
  return is_mac(mac) && name == unknown_name(mac) ? mac : "";
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
  row.expires = reactor_.now() + (purpose == "join" ? std::max(kTokenLife, hooks_.netboot_limit() + kTokenSpare) : kTokenLife);
  if (purpose == "adopt") adopting_[node] = row.digest;
  store_.write({row}, [answer = std::move(answer), token](Status written) {
    if (!written.ok()) return answer(std::move(written).error());
    answer(token);
  });
}

void BootService::discover_unknown(bool on) {
  discover_unknown_ = on;
  unknown_tokens_.clear();
  unknown_scripts_ = 0;
  unknown_full_ = false;
}

// Bounded, because anybody on the network can ask under any MAC: the one that was quiet longest makes room.
void BootService::note_unknown(const std::string& mac) {
  if (!is_mac(mac)) return;
  unknown_macs_[mac] = reactor_.now();
  if (unknown_macs_.size() <= kUnknownMacsKept) return;
  const auto older = [](const auto& a, const auto& b) { return a.second < b.second; };
  unknown_macs_.erase(std::min_element(unknown_macs_.begin(), unknown_macs_.end(), older));
}

bool BootService::may_discover(const std::string& mac) {
  if (!discover_unknown_ || !is_mac(mac)) return false;
  const bool room = unknown_tokens_.count(unknown_name(mac)) || unknown_tokens_.size() < kUnknownMacsKept;
  if (room && unknown_scripts_ < kUnknownScripts) return ++unknown_scripts_ > 0;
  if (!std::exchange(unknown_full_, true)) log::warning("discovery has handed out all it may: switch it off and on again", {{"mac", mac}});
  return false;
}

void BootService::script_for(const std::string& any_mac, std::function<void(Result<std::string>)> answer) {
  const std::string mac = normal_mac(any_mac);
  const std::string node = hooks_.node_of_mac(mac);
  if (node.empty()) note_unknown(mac);
  const bool discover = node.empty() && may_discover(mac);
  if (!discover && !armed(node)) return answer(std::string(kBootFromDisk));
  const std::string name = discover ? unknown_name(mac) : node;
  mint(name, discover ? "discover" : "join", [this, name, mac, discover, answer](Result<std::string> token) {
    if (!token.ok()) return answer(std::move(token).error());
    script_of(name, mac, discover, *token, answer);
  });
}

void BootService::script_of(const std::string& name, const std::string& mac, bool discover, const std::string& token,
                            const std::function<void(Result<std::string>)>& answer) {
  auto script = hooks_.script(name, mac, token);
  if (!script.ok()) return answer(std::move(script).error());
  // Its right to boot may have ended while the token was written.
  if (discover ? !discover_unknown_ : !armed(name)) return answer(std::string(kBootFromDisk));
  (discover ? unknown_tokens_ : armed_)[name] = sha256(token);
  log::info("RAM system handed out", {{"node", name}, {"mac", mac}});
  answer(std::move(script));
}

Status BootService::check(const wire::JoinRequest& request, const TokenRow& token) const {
  if (token.node != request.node) return fail(Code::denied, "this token is for another node");
  if (token.expires <= reactor_.now()) return fail(Code::denied, "this token has expired");
  if (token.purpose == "join" && token.public_key.empty()) {
    const auto armed = armed_.find(token.node);
    if (armed == armed_.end()) return fail(Code::denied, "no power-on of this node is pending");
    if (!armed->second.empty() && armed->second != token.digest)
      return fail(Code::denied, "a newer token was handed out for this node");
  }
  if (token.purpose == "adopt") {
    if (request.mode != wire::Mode::adopted) return fail(Code::denied, "this token is for a running host that is adopted");
    const auto newest = adopting_.find(token.node);
    if (token.public_key.empty() && newest != adopting_.end() && newest->second != token.digest)
      return fail(Code::denied, "a newer token was made for this node");
  }
  if (token.purpose == "discover") {
    if (!discover_unknown_) return fail(Code::denied, "discovery is off");
    if (!hooks_.node_of_mac(mac_of_unknown(token.node)).empty()) return fail(Code::denied, "this machine is declared now");
    const auto newest = unknown_tokens_.find(token.node);
    if (newest == unknown_tokens_.end() || newest->second != token.digest)
      return fail(Code::denied, "a newer token was handed out for this machine");
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

CertificateRow BootService::row_of(const std::string& node, const Authority::AgentCertificate& made) const {
  CertificateRow row;
  row.serial = made.serial;
  row.node = node;
  row.fingerprint = made.fingerprint;
  row.issued = reactor_.now();
  return row;
}

void BootService::renew(const std::string& node, const std::string& csr_pem, TimeMs issued,
                        std::function<void(Result<wire::JoinReply>)> answer) {
  if (reactor_.now() - issued < Authority::kAgentRenewDays * kDay)
    return answer(fail(Code::conflict, "this certificate is not due for renewal"));
  const auto made = authority_.sign_agent(node, csr_pem);
  if (!made.ok()) return answer(made.error());
  const wire::JoinReply reply{node, made->pem, authority_.ca_pem()};
  store_.write({row_of(node, *made)}, [reply, answer = std::move(answer)](Status written) {
    if (!written.ok()) return answer(std::move(written).error());
    log::info("agent's certificate renewed", {{"node", reply.node}});
    answer(reply);
  });
}

void BootService::first_use(const wire::JoinRequest& request, TokenRow token, const std::string& public_key,
                            std::function<void(Result<wire::JoinReply>)> answer) {
  const auto made = authority_.sign_agent(request.node, request.csr_pem);
  if (!made.ok()) return answer(made.error());
  token.public_key = public_key;
  token.certificate = made->pem;
  const CertificateRow certificate = row_of(request.node, *made);
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
