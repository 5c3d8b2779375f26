// BootService: which node may netboot into the RAM system now, with which one-time token; and joining with that token.
//
// arm() makes the node's next netboot get the RAM system. Each fetch of the script mints a fresh token, valid for
// kTokenLife; the one before becomes worthless, so a machine that resets while booting can start again, and a token
// is never handed out twice. Only digests of tokens are stored. An unarmed or unknown MAC boots from its disk.
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
  };
  BootService(Reactor& reactor, Store& store, const Authority& authority, Hooks hooks);

  void arm(const std::string& node, std::function<void(Status)> done) override;
  void disarm(const std::string& node) override;
  bool armed(const std::string& node) const { return armed_.count(node) > 0; }
  // Machines nobody declared get a discovery-only RAM system while this is on.
  void discover_unknown(bool on) { discover_unknown_ = on; }
  const std::map<std::string, TimeMs>& unknown_macs() const { return unknown_macs_; }

  // Answers with the iPXE script for that MAC ("01:23:..." or with hyphens).
  void script_for(const std::string& mac, std::function<void(Result<std::string>)> answer);
  void join(const wire::JoinRequest& request, std::function<void(Result<wire::JoinReply>)> answer);
  // A token outside netboot (adopting a running host): returned once, stored as a digest.
  void mint(const std::string& node, const std::string& purpose, std::function<void(Result<std::string>)> answer);

 private:
  static constexpr DurationMs kTokenLife = 20 * kMinute;
  Result<wire::JoinReply> answer_known(const wire::JoinRequest& request, const TokenRow& token,
                                       const std::string& public_key) const;
  Status check(const wire::JoinRequest& request, const TokenRow& token) const;
  void first_use(const wire::JoinRequest& request, TokenRow token, const std::string& public_key,
                 std::function<void(Result<wire::JoinReply>)> answer);

  Reactor& reactor_;
  Store& store_;
  const Authority& authority_;
  Hooks hooks_;
  std::map<std::string, std::string> armed_;    // node -> digest of the token handed out last ("" none yet)
  std::set<std::string> in_flight_;             // tokens whose first use is being written
  std::map<std::string, TimeMs> unknown_macs_;  // seen at the boot port
  bool discover_unknown_ = false;
};

// "52-54-00-AA" or "52:54:00:aa" -> "52:54:00:aa"
std::string normal_mac(std::string mac);

}  // namespace muster
