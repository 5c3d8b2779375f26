// BootService: which node may netboot into the RAM system now, with which one-time token; and joining with that token.
//
// arm() makes the node's next netboot get the RAM system. Each fetch of the script mints a fresh token, valid for
// kTokenLife, and longer than any netboot may take; the one before becomes worthless, so a machine that resets while booting can
// start again, and a token is never handed out twice. Only digests of tokens are stored. An unarmed or unknown MAC boots from its disk, and a token that
// was not used before its node was disarmed is worthless.
// While discovery is on, an unknown MAC gets the RAM system too, under the name "unknown-<MAC>", which no declared node can have
// and which is never in a plan. How many, and how often, is bounded; its token is worthless once discovery is off.
// A token opens exactly one thing: a certificate for its own node, for the first public key that shows it; the same
// key gets the same answer again until the token expires (a lost reply is harmless), any other key is refused.
// Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/reactor.h"
#include "base/wire.h"
#include "controller/authority.h"
#include "controller/run/ports.h"
#include "controller/store/store.h"

namespace muster {

class BootService : public BootPort {
 public:
  struct Hooks {
    // Node with that MAC in the current spec; "" when there is none.
    std::function<std::string(const std::string& mac)> node_of_mac;
    // The script that boots the RAM system of `node` with `token`.
    std::function<Result<std::string>(const std::string& node, const std::string& mac, const std::string& token)> script;
    // How long a run waits for a machine to boot over the network: its token must not end before.
    std::function<DurationMs()> netboot_limit = [] { return DurationMs{0}; };
  };
  BootService(Reactor& reactor, Store& store, const Authority& authority, Hooks hooks);

  void arm(const std::string& node, std::function<void(Status)> done) override;
  void disarm(const std::string& node) override;
  bool armed(const std::string& node) const { return armed_.count(node) > 0; }
  // Machines nobody declared get a discovery-only RAM system while this is on.
  void discover_unknown(bool on);
  bool discovers_unknown() const { return discover_unknown_; }
  const std::map<std::string, TimeMs>& unknown_macs() const { return unknown_macs_; }

  // Answers with the iPXE script for that MAC ("01:23:..." or with hyphens).
  void script_for(const std::string& mac, std::function<void(Result<std::string>)> answer);
  void join(const wire::JoinRequest& request, std::function<void(Result<wire::JoinReply>)> answer);
  // Another certificate for an agent that has one: `issued` is when that was made. conflict: its life is not half over.
  void renew(const std::string& node, const std::string& csr_pem, TimeMs issued,
             std::function<void(Result<wire::JoinReply>)> answer);
  // A token outside netboot (adopting a running host, purpose "adopt"): returned once, stored as a digest. A newer one for the same
  // node makes it worthless unless it was used.
  void mint(const std::string& node, const std::string& purpose, std::function<void(Result<std::string>)> answer);

 private:
  static constexpr DurationMs kTokenLife = 20 * kMinute, kTokenSpare = 10 * kMinute;
  void note_unknown(const std::string& mac);
  bool may_discover(const std::string& mac);
  void script_of(const std::string& node, const std::string& mac, bool discover, const std::string& token,
                 const std::function<void(Result<std::string>)>& answer);
  Result<wire::JoinReply> answer_known(const wire::JoinRequest& request, const TokenRow& token,
                                       const std::string& public_key) const;
  Status check(const wire::JoinRequest& request, const TokenRow& token) const;
  CertificateRow row_of(const std::string& node, const Authority::AgentCertificate& made) const;
  void first_use(const wire::JoinRequest& request, TokenRow token, const std::string& public_key,
                 std::function<void(Result<wire::JoinReply>)> answer);

  Reactor& reactor_;
  Store& store_;
  const Authority& authority_;
  Hooks hooks_;
  std::map<std::string, std::string> armed_;    // node -> digest of the token handed out last ("" none yet)
  std::map<std::string, std::string> adopting_; // node -> digest of the token minted last
  std::set<std::string> in_flight_;             // tokens whose first use is being written
  std::map<std::string, TimeMs> unknown_macs_;  // seen at the boot port
  bool discover_unknown_ = false;
  std::map<std::string, std::string> unknown_tokens_;  // name -> digest of the token handed out last
  int unknown_scripts_ = 0;                            // handed out since discovery was switched on
  bool unknown_full_ = false;                          // that more were asked for was logged
};

// "52-54-00-AA" or "52:54:00:aa" -> "52:54:00:aa"
std::string normal_mac(std::string mac);
// Name of a machine nobody declared, by the MAC it boots from. The colons make it no host name: no spec can declare it.
std::string unknown_name(const std::string& mac);
// MAC of such a name; "" when it is another name.
std::string mac_of_unknown(const std::string& name);

}  // namespace muster
