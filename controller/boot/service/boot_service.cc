#include "controller/boot/service/boot_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/mac.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"
#include "controller/boot/boot.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr size_t kUnknownMacsKept = 256;
constexpr int kUnknownScripts =
    1024;  // scripts sent while discovery is on, at most: the token of each is a row in the store
constexpr char kUnknown[] = "unknown-";

// Makes text from an unknown machine safe for messages: short, only characters of names.
std::string plain_word(const std::string& text) {
  constexpr size_t kLongest = 64;
  std::string out = text.substr(0, kLongest);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != ':') c = '?';
  return out;
}

}  // namespace

std::string unknown_name(const std::string& mac) { return kUnknown + normal_mac(mac); }

std::string mac_of_unknown(const std::string& name) {
  if (!name.starts_with(kUnknown)) return "";
  const std::string mac = name.substr(sizeof kUnknown - 1);
  return is_mac(mac) && name == unknown_name(mac) ? mac : "";
}

BootService::BootService(Reactor& reactor, Store& store, const Authority& authority, Hooks hooks)
    : reactor_(reactor), store_(store), authority_(authority), hooks_(std::move(hooks)) {}

BootService::PowerOn& BootService::begin(const std::string& node) {
  PowerOn next;
  next.id = ++power_on_ids_;
  next.armed = true;
  PowerOn& place = power_ons_[node];
  const auto waiting = std::exchange(place, std::move(next)).waiting;
  for (const auto& answer : waiting) answer(fail(Code::cancelled, "another power-on began"));
  return place;
}

void BootService::arm(const NodeName& node, std::function<void(Status)> done) {
  begin(node);
  store_.write({DeleteJoinTokens{node}}, std::move(done));
}

// After a crash no node is armed; the executor continues from its journal. A machine that joined before, but
// has not sent its hello, remains the node: a join with a token issued from now on is a second machine's.
void BootService::rearm(const NodeName& node, std::function<void(Status)> done) {
  const auto tokens = store_.join_tokens(node);
  if (!tokens.ok()) return reactor_.post([done = std::move(done), why = tokens.error()] { done(why); });
  PowerOn& power_on = begin(node);
  for (const TokenRow& token : *tokens) {
    power_on.digests.insert(token.digest);
    if (token.public_key.empty()) continue;
    const auto certificate = pki::read_certificate(token.certificate);
    power_on.joined = token.digest;
    power_on.serial = certificate.ok() ? certificate->serial : "";
    power_on.expires =
        reactor_.steady() + std::clamp<DurationMs>(token.expires - reactor_.now(), 0, join_token_life());
  }
  reactor_.post([done = std::move(done)] { done(Ok{}); });
}

// Each order has its own token, which becomes void after the power-on: if an order is repeated after a crash
// of the controller, the token of the first order is still valid.
void BootService::leave_order(const NodeName& node, std::function<void(Result<Json>)> done) {
  if (!armed(node))
    return reactor_.post([done = std::move(done), node] {
      done(fail(Code::unavailable, "no power-on of " + node + " is pending"));
    });
  const uint64_t id = power_ons_[node].id;
  mint(node, "join", [this, node, id, done = std::move(done)](Result<std::string> token) {
    if (!token.ok()) return done(std::move(token).error());
    if (const PowerOn& now = power_ons_[node]; now.id != id || !now.armed)
      return done(fail(Code::cancelled, "another power-on began"));
    done(hooks_.leave(node, *token));
  });
}

// Called once when the RAM system runs, and again when the machine leaves it.
void BootService::disarm(const NodeName& node) {
  const auto found = power_ons_.find(node);
  if (found == power_ons_.end()) return;
  if (!std::exchange(found->second.armed, false)) found->second.left = true;
}

bool BootService::armed(const std::string& node) const {
  const auto found = power_ons_.find(node);
  return found != power_ons_.end() && found->second.armed;
}

DurationMs BootService::join_token_life() const {
  return std::max(kTokenLife, hooks_.netboot_limit() + kTokenSpare);
}

void BootService::mint(const std::string& node, const std::string& purpose,
                       std::function<void(Result<std::string>)> answer) {
  const std::string token = random_hex(24);
  TokenRow row;
  row.digest = sha256(token);
  row.node = NodeName(node);
  row.purpose = purpose;
  const DurationMs life = purpose == "join" ? join_token_life() : kTokenLife;
  row.expires = reactor_.now() + life;
  const SteadyMs now = reactor_.steady();
  std::erase_if(fresh_, [now](const auto& old) { return old.second + kDay <= now; });
  fresh_[row.digest] = now + life;
  if (purpose == "adopt") adopting_[node] = row.digest;
  if (const auto armed = power_ons_.find(node); purpose == "join" && armed != power_ons_.end())
    armed->second.digests.insert(row.digest);
  store_.write({PurgeTokens{reactor_.now() - kDay}, row},
               [answer = std::move(answer), token](Status written) {
                 if (!written.ok()) return answer(std::move(written).error());
                 answer(token);
               });
}

void BootService::publish(const std::string& node, EventKind kind, const Json& data) const {
  if (hooks_.event) hooks_.event(node, kind, data);
}

// Limited per minute, since unknown machines could cause any number; then one notice is logged.
void BootService::publish_refused(const std::string& text, const std::string& remote) {
  const SteadyMs now = reactor_.steady();
  if (now - refused_since_ >= kMinute) {
    refused_since_ = now;
    refused_ = 0;
  }
  if (++refused_ <= kRefusedPerMinute)
    return publish("", "join", {{"action", "refused"}, {"text", text}, {"remote", remote}});
  if (refused_ == kRefusedPerMinute + 1)
    publish(
        "", "join",
        {{"action", "flood"},
         {"text", "too many joins are being rejected: further rejections in this minute are not logged"}});
}

void BootService::discover_unknown(bool on) {
  discover_unknown_ = on;
  unknown_tokens_.clear();
  unknown_scripts_ = 0;
  unknown_full_ = false;
}

// Bounded, as any machine on the network can use any MAC: the entry with the oldest request is dropped.
void BootService::note_unknown(const std::string& mac) {
  if (!is_station_address(mac)) return;
  unknown_macs_[mac] = reactor_.now();
  if (unknown_macs_.size() <= kUnknownMacsKept) return;
  const auto older = [](const auto& a, const auto& b) { return a.second < b.second; };
  unknown_macs_.erase(std::min_element(unknown_macs_.begin(), unknown_macs_.end(), older));
}

bool BootService::may_discover(const std::string& mac) {
  if (!discover_unknown_ || !is_station_address(mac)) return false;
  const bool room = unknown_tokens_.count(unknown_name(mac)) || unknown_tokens_.size() < kUnknownMacsKept;
  if (room && unknown_scripts_ < kUnknownScripts) return ++unknown_scripts_ > 0;
  if (!std::exchange(unknown_full_, true))
    log::warning("discovery has issued the maximum number of tokens: turn discovery off and on again",
                 {{"mac", mac}});
  return false;
}

void BootService::script_for(const std::string& any_mac, Script answer, const std::string& remote) {
  const std::string mac = normal_mac(any_mac);
  const std::string node = hooks_.node_of_mac(mac);
  if (!node.empty()) return node_script(node, mac, answer, remote);
  note_unknown(mac);
  discovery_script(mac, answer);
}

// Each undeclared machine has its own token, so a second machine cannot interfere.
void BootService::discovery_script(const std::string& mac, const Script& answer) {
  if (!may_discover(mac)) return answer(std::string(kBootFromDisk));
  const std::string name = unknown_name(mac);
  mint(name, "discover", [this, name, mac, answer](Result<std::string> token) {
    if (!token.ok()) return answer(std::move(token).error());
    auto script = hooks_.script(name, mac, *token);
    if (!script.ok()) return answer(std::move(script).error());
    // Discovery may have ended while the token was written.
    if (!discover_unknown_) return answer(std::string(kBootFromDisk));
    unknown_tokens_[name] = sha256(*token);
    log::info("boot script of the RAM system sent", {{"node", name}, {"mac", mac}});
    answer(std::move(script));
  });
}

// The token is handed out even after a machine has joined with it, which made it void: if a second machine
// uses it, its join is rejected, and the machine is thereby detected.
void BootService::node_script(const std::string& node, const std::string& mac, const Script& answer,
                              const std::string& remote) {
  const auto found = power_ons_.find(node);
  if (found == power_ons_.end()) return answer(std::string(kBootFromDisk));
  PowerOn& power_on = found->second;
  const Asker asker{node, mac, remote, answer};
  note_script(asker, power_on);
  if (power_on.armed && hooks_.netboots) hooks_.netboots(node);
  if (!power_on.armed) return answer(std::string(kBootFromDisk));
  const bool fresh = !power_on.token.empty() && power_on.expires - reactor_.steady() > join_token_life() / 2;
  const bool enough =
      static_cast<int>(power_on.digests.size()) >= kTokensPerPowerOn && !power_on.token.empty();
  const bool worthless = !power_on.joined.empty() && !power_on.token.empty();
  if (fresh || enough || worthless) return hand_out(asker, power_on.token);
  renew_token(asker, power_on);
}

void BootService::say(const Asker& asker, const char* action, const std::string& text) const {
  log::info(text, {{"node", asker.node}, {"mac", asker.mac}, {"remote", asker.remote}});
  publish(asker.node, "boot",
          {{"action", action}, {"text", text}, {"mac", asker.mac}, {"remote", asker.remote}});
}

void BootService::note_script(const Asker& asker, PowerOn& power_on) const {
  constexpr int kOften = 16;
  if (power_on.armed && ++power_on.scripts == kOften)
    return say(asker, "often", "the boot script is being requested repeatedly");
  const bool recent = reactor_.steady() < power_on.expires;
  if (!power_on.armed && !power_on.left && !power_on.joined.empty() && recent &&
      !std::exchange(power_on.requested_again, true))
    say(asker, "again",
        "boot script requested while the node's RAM system is running: the machine was reset, or a different "
        "machine joined in its place");
}

// Logged: without the script the machine does not boot the RAM system, and the run waits until its limit.
void BootService::hand_out(const Asker& asker, const std::string& token) {
  auto script = hooks_.script(asker.node, asker.mac, token);
  PowerOn& power_on = power_ons_[asker.node];
  if (!script.ok()) {
    if (!std::exchange(power_on.unable, true))
      say(asker, "unable",
          "no boot script, so the machine does not boot the RAM system: " + script.error().message);
  } else if (!std::exchange(power_on.handed_out, true)) {
    say(asker, "script", "boot script of the RAM system sent");
  }
  asker.answer(std::move(script));
}

void BootService::renew_token(const Asker& asker, PowerOn& power_on) {
  power_on.waiting.push_back([this, asker](Result<std::string> token) {
    if (token.ok()) return hand_out(asker, *token);
    if (token.error().code == Code::cancelled) return asker.answer(std::string(kBootFromDisk));
    asker.answer(std::move(token).error());
  });
  if (power_on.waiting.size() > 1) return;
  mint(asker.node, "join", [this, node = asker.node, id = power_on.id](Result<std::string> token) {
    PowerOn& now = power_ons_[node];
    if (now.id != id) return;  // a newer power-on has answered these requests
    const auto waiting = std::exchange(now.waiting, {});
    if (token.ok() && (now.joined.empty() || now.token.empty())) now.token = *token;
    if (token.ok() && now.joined.empty()) now.expires = reactor_.steady() + join_token_life();
    for (const auto& one : waiting) one(token);
  });
}

Status BootService::check(const wire::JoinRequest& request, const TokenRow& token) const {
  if (token.node != request.node) return fail(Code::denied, "this token is for another node");
  // The expiry of a token made by an earlier process can only be checked with the wall clock.
  const auto fresh = fresh_.find(token.digest);
  const bool expired =
      fresh == fresh_.end() ? token.expires <= reactor_.now() : fresh->second <= reactor_.steady();
  if (expired) return fail(Code::denied, "this token has expired");
  if (token.purpose == "join" && token.public_key.empty()) {
    const auto found = power_ons_.find(token.node);
    if (found == power_ons_.end() || !found->second.armed)
      return fail(Code::denied, "no power-on of this node is pending");
    if (!found->second.digests.count(token.digest))
      return fail(Code::denied, "this token was issued for an earlier power-on");
  }
  if (token.purpose == "adopt") {
    if (request.mode != wire::Mode::adopted)
      return fail(Code::denied, "this token is for the adoption of a running host");
    const auto newest = adopting_.find(token.node);
    if (token.public_key.empty() && newest != adopting_.end() && newest->second != token.digest)
      return fail(Code::denied, "a newer token was issued for this node");
  }
  if (token.purpose == "discover") {
    if (!discover_unknown_) return fail(Code::denied, "discovery is off");
    if (!hooks_.node_of_mac(mac_of_unknown(token.node)).empty())
      return fail(Code::denied, "this machine is now declared");
    const auto newest = unknown_tokens_.find(token.node);
    if (newest == unknown_tokens_.end() || newest->second != token.digest)
      return fail(Code::denied, "a newer token was issued for this machine");
  }
  return check_machine(request);
}

Status BootService::check_machine(const wire::JoinRequest& request) const {
  const auto row = store_.node(NodeName(request.node));
  if (!row.ok() && row.error().code != Code::not_found) return row.error();
  const std::string bound = row.ok() ? machine_of(row->product_uuid) : "";
  if (bound.empty() || bound == request.product_uuid) return Ok{};
  const std::string shows = request.product_uuid.empty() ? "that reports no product UUID"
                                                         : "(" + plain_word(request.product_uuid) + ")";
  return fail(Code::denied, fmt::format("a different machine {} tried to join as {}, which is bound to {}",
                                        shows, request.node, bound));
}

void BootService::join(const wire::JoinRequest& request, std::function<void(Result<wire::JoinReply>)> answer,
                       const std::string& remote, uint16_t port) {
  auto logged = [this, node = plain_word(request.node), remote,
                 answer = std::move(answer)](Result<wire::JoinReply> reply) {
    if (!reply.ok() && reply.error().code == Code::denied)
      publish_refused("join as " + node + " refused: " + reply.error().message, remote);
    answer(std::move(reply));
  };
  if (const auto allowed = check_port(port); !allowed.ok()) return logged(allowed.error());
  consider(request, std::move(logged), remote);
}

Status BootService::check_port(uint16_t port) const {
  if (port < kFirstOpenPort || hooks_.any_port()) return Ok{};
  return fail(Code::denied,
              fmt::format("it came from source port {}, which every user of a machine may use; joins are "
                          "accepted from ports below {}: run the agent as root, or, if an address "
                          "translation changes the port, set network.join_from_any_port in the spec",
                          port, kFirstOpenPort));
}

void BootService::consider(const wire::JoinRequest& request,
                           std::function<void(Result<wire::JoinReply>)> answer, const std::string& remote) {
  const std::string digest = sha256(request.token);
  auto token = store_.token(digest);
  if (!token.ok()) {
    const bool unknown = token.error().code == Code::not_found;
    return answer(unknown ? fail(Code::denied, "unknown token") : token.error());
  }
  if (const auto allowed = check(request, *token); !allowed.ok()) return answer(allowed.error());
  const auto public_key = pki::public_key_fingerprint(request.csr_pem);
  if (!public_key.ok()) return answer(fail(Code::invalid, "the certificate request cannot be read"));
  if (in_flight_.count(digest)) return answer(fail(Code::unavailable, "this token is in use, try again"));
  if (token->public_key == *public_key) return answer(answer_known(request, *token));
  if (!token->public_key.empty() && token->purpose == "discover")
    return answer(fail(Code::denied, "this token was used with a different key"));
  if (!token->public_key.empty()) {
    const auto first = pki::read_certificate(token->certificate);
    return second_join(token->node, first.ok() ? first->serial : "", remote, answer);
  }
  const auto power_on = power_ons_.find(token->node);
  if (token->purpose == "join" && power_on != power_ons_.end() && !power_on->second.joined.empty())
    return second_join(token->node, power_on->second.serial, remote, answer);
  first_use(request, std::move(token).value(), *public_key, std::move(answer), remote);
}

Result<wire::JoinReply> BootService::answer_known(const wire::JoinRequest& request,
                                                  const TokenRow& token) const {
  return wire::JoinReply{request.node, token.certificate, authority_.ca_pem()};
}

// `serial`: that of the first machine's certificate, which is ignored if a later power-on has revoked it.
void BootService::second_join(const std::string& node, const std::string& serial, const std::string& remote,
                              const std::function<void(Result<wire::JoinReply>)>& answer) {
  const Error refused = fail(Code::denied, "another machine already joined as " + node + " in this power-on");
  auto row = store_.certificate(serial);
  if (!row.ok() || row->revoked || row->contested) return answer(refused);
  // Once the installed system has reported, its power-on is over and the node's identity is settled: a
  // machine with the used token must not be able to stop a working node.
  const auto on = power_ons_.find(node);
  const auto known = store_.node(NodeName(node));
  if ((on == power_ons_.end() || !on->second.armed) && known.ok() &&
      known->mode != wire::to_string(wire::Mode::ram) && !known->mode.empty()) {
    publish(node, "join",
            {{"action", "late"},
             {"text", "another machine presented a token from a power-on that has ended"},
             {"remote", remote}});
    return answer(refused);
  }
  store_.write({ContestCertificates{NodeName(node)}}, [this, node, refused, answer](Status written) {
    if (!written.ok())
      log::error("the node's certificates could not be marked as contested",
                 {{"node", node}, {"error", written.error().message}});
    if (hooks_.withdrawn) hooks_.withdrawn(node);
    answer(refused);
  });
  const std::string text = fmt::format(
      "a second machine tried to join as {}, from {}: it is unclear which of the two is the node, and "
      "neither gets any more orders; look for an unknown machine on the provisioning network before you "
      "power the node on again",
      node, remote.empty() ? "an unknown address" : remote);
  log::error(text, {{"node", node}, {"serial", serial}});
  publish(node, "join", {{"action", "second"}, {"text", text}, {"serial", serial}, {"remote", remote}});
  if (hooks_.contested) hooks_.contested(node, text);
}

void BootService::saw_revoked(const std::string& node, const std::string& serial, const std::string& remote) {
  constexpr size_t kSerialsKept = 4096;
  if (revoked_seen_.size() >= kSerialsKept || !revoked_seen_.insert(serial).second) return;
  publish(node, "join",
          {{"action", "revoked"},
           {"text", "a machine connected as " + node + " with a revoked certificate"},
           {"serial", serial},
           {"remote", remote}});
}

CertificateRow BootService::row_of(const NodeName& node, const Authority::AgentCertificate& made) const {
  CertificateRow row;
  row.serial = made.serial;
  row.node = node;
  row.fingerprint = made.fingerprint;
  row.issued = reactor_.now();
  return row;
}

// Null: it was not renewed yet for the CAs of today. What an agent says of its CAs is its own claim: it alone
// would get root of a node any number of certificates, for any keys.
Result<const BootService::EarlyRenewal*> BootService::early_renewal(const CertificateRow& shown,
                                                                    const std::string& public_key) {
  if (!authority_.trust_changed() || shown.issued > authority_.trust_changed())
    return fail(Code::conflict, "this certificate is not due for renewal");
  if (renewed_for_ != authority_.trust()) {
    renewed_early_.clear();
    renewed_for_ = authority_.trust();
  }
  const auto found = renewed_early_.find(shown.serial);
  if (found == renewed_early_.end()) return nullptr;
  if (found->second.public_key != public_key)
    return fail(Code::conflict, "this certificate was renewed for another key");
  if (found->second.reply.certificate_pem.empty())
    return fail(Code::unavailable, "this certificate is being renewed, try again");
  return &found->second;
}

void BootService::renew(const CertificateRow& shown, const std::string& csr_pem,
                        std::function<void(Result<wire::JoinReply>)> answer, bool other_cas) {
  const auto public_key = pki::public_key_fingerprint(csr_pem);
  if (!public_key.ok()) return answer(fail(Code::invalid, "the certificate request cannot be read"));
  const bool due = reactor_.now() - shown.issued >= Authority::kAgentRenewDays * kDay;
  if (!due && !other_cas) return answer(fail(Code::conflict, "this certificate is not due for renewal"));
  if (!due) {
    const auto before = early_renewal(shown, *public_key);
    if (!before.ok()) return answer(before.error());
    if (*before) return answer((*before)->reply);
  }
  const auto made = authority_.sign_agent(shown.node, csr_pem);
  if (!made.ok()) return answer(made.error());
  const wire::JoinReply reply{shown.node, made->pem, authority_.ca_pem()};
  if (!due) renewed_early_[shown.serial] = {*public_key, {}};
  store_.write({row_of(shown.node, *made)},
               [this, reply, serial = shown.serial, answer = std::move(answer)](Status written) {
                 const auto early = renewed_early_.find(serial);
                 if (early != renewed_early_.end() && written.ok()) early->second.reply = reply;
                 if (!written.ok()) renewed_early_.erase(serial);
                 if (!written.ok()) return answer(std::move(written).error());
                 log::info("agent's certificate renewed", {{"node", reply.node}});
                 answer(reply);
               });
}

// Undeclared machines' certificates are not revoked: they give no access.
void BootService::first_use(const wire::JoinRequest& request, TokenRow token, const std::string& public_key,
                            std::function<void(Result<wire::JoinReply>)> answer, const std::string& remote) {
  const auto made = authority_.sign_agent(request.node, request.csr_pem);
  if (!made.ok()) return answer(made.error());
  token.public_key = public_key;
  token.certificate = made->pem;
  const CertificateRow certificate = row_of(NodeName(request.node), *made);
  const std::string digest = token.digest;
  const bool supersedes = token.purpose != "discover";
  uint64_t power_on = 0;
  if (const auto found = power_ons_.find(token.node); token.purpose == "join" && found != power_ons_.end()) {
    power_on = found->second.id;
    found->second.joined = digest;
    found->second.serial = certificate.serial;
  }
  in_flight_.insert(digest);
  std::vector<Write> rows;
  if (supersedes) rows.push_back(RevokeCertificates{NodeName(request.node)});
  rows.insert(rows.end(), {token, certificate});
  const wire::JoinReply reply{request.node, made->pem, authority_.ca_pem()};
  store_.write(rows, [this, digest, reply, supersedes, power_on, serial = certificate.serial, remote,
                      answer = std::move(answer)](Status written) {
    in_flight_.erase(digest);
    PowerOn* const found = power_on ? &power_ons_[reply.node] : nullptr;
    if (!written.ok()) {
      if (found && found->id == power_on) found->joined.clear();
      return answer(std::move(written).error());
    }
    log::info("agent joined", {{"node", reply.node}, {"remote", remote}});
    if (supersedes && hooks_.joined) hooks_.joined(reply.node);
    publish(reply.node, "join",
            {{"action", "joined"}, {"text", "joined"}, {"serial", serial}, {"remote", remote}});
    answer(reply);
  });
}

}  // namespace muster
