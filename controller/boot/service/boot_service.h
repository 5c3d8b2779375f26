// BootService: decides which node may netboot into the RAM system now and with which one-time token, and
// accepts joins with that token.
//
// arm() begins a power-on of the node: its next netboot gets the RAM system. Every request for the script of
// its MAC gets the same token, which is kept in memory and stored as a digest. It is valid until a machine
// joined with it or it expires, which is later than any netboot may take; a new one is made only when half
// its lifetime is over, and never more than kTokensPerPowerOn. An unarmed or unknown MAC boots from its disk,
// and a token that was not used before its node was disarmed is void. The store keeps only the tokens of a
// node's newest power-on, so that a restarted controller can see whether a machine joined during it. One
// machine joins per power-on. Its join revokes every older certificate of the node, in the same batch. The
// same key gets the same answer again until the token expires (a lost reply is harmless). A different key is
// a second machine: it is unclear which of the two is the node, so it is rejected, nothing is revoked, the
// certificates that the node has are marked as contested (requests with them are rejected), and the hook
// `contested` must stop the node. The next power-on settles it. Adoption is the same, with a token per
// mint(). While discovery is on, an unknown MAC gets the RAM system too, under the name "unknown-<MAC>",
// which no declared node can have and which is never in a plan. How many, and how often, is bounded; its
// token is void once discovery is off. The amount of data that unknown machines can cause to be written is
// bounded: tokens as above, events about rejected joins by kRefusedPerMinute. Thread: the reactor's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/event_kind.h"
#include "base/json.h"
#include "base/wire.h"
#include "controller/ports/run_ports.h"
#include "controller/ports/store.h"
#include "controller/trust/authority.h"
#include "sys/reactor.h"

namespace muster {

class BootService : public BootPort {
 public:
  struct Hooks {
    // Returns the node with that MAC in the current spec; "" if there is none.
    std::function<std::string(const std::string& mac)> node_of_mac;
    std::function<Result<std::string>(const std::string& node, const std::string& mac,
                                      const std::string& token)>
        script;
    // How long a run waits for a machine to boot over the network: the machine's token stays valid longer.
    std::function<DurationMs()> netboot_limit = [] { return DurationMs{0}; };
    // For the live log: "join" (action: joined, second, refused, revoked) and "boot" (action: script, unable,
    // often, again).
    std::function<void(const std::string& node, EventKind kind, const Json& data)> event = {};
    // Called when the node's older certificates have been revoked durably: an agent that still waits for an
    // order with one of them must not get it.
    std::function<void(const std::string& node)> joined = {};
    std::function<void(const std::string& node, const std::string& reason)> contested = {};
    // Returns the params of an order `kexec`, with which the node's own agent starts the RAM system.
    std::function<Result<Json>(const std::string& node, const std::string& token)> leave = {};
    // An armed node's machine requested its boot script.
    std::function<void(const std::string& node)> netboots = {};
    // Called when the node's certificate has become contested durably: as for `joined`.
    std::function<void(const std::string& node)> withdrawn = {};
    // Whether joins are accepted from every source port (network.join_from_any_port).
    std::function<bool()> any_port = [] { return false; };
  };
  BootService(Reactor& reactor, Store& store, const Authority& authority, Hooks hooks);

  void arm(const NodeName& node, std::function<void(Status)> done) override;
  void rearm(const NodeName& node, std::function<void(Status)> done) override;
  void leave_order(const NodeName& node, std::function<void(Result<Json>)> done) override;
  void disarm(const NodeName& node) override;
  bool armed(const std::string& node) const;
  // Undeclared machines get a discovery-only RAM system while this is on.
  void discover_unknown(bool on);
  const std::map<std::string, TimeMs>& unknown_macs() const { return unknown_macs_; }

  // `mac`: "01:23:..." or with hyphens. `remote`: the client, for the log.
  void script_for(const std::string& mac, std::function<void(Result<std::string>)> answer,
                  const std::string& remote = "");
  // `port`: that it was sent from. From a port of kFirstOpenPort or above, which is not only root's, it is
  // rejected before its token is looked at: any user of a node can read the script of an armed one.
  void join(const wire::JoinRequest& request, std::function<void(Result<wire::JoinReply>)> answer,
            const std::string& remote = "", uint16_t port = 0);
  // Records that a request was made with a revoked certificate of this node. Logged once per certificate.
  void saw_revoked(const std::string& node, const std::string& serial, const std::string& remote);
  // For the agent that showed this certificate. conflict: less than half of its lifetime has passed.
  // `other_cas`: the agent trusts other CAs than it is to, as it says. A certificate from before they were
  // last changed may then be renewed earlier, once: the same key gets the same answer again, as a reply may
  // be lost, another key gets none.
  void renew(const CertificateRow& shown, const std::string& csr_pem,
             std::function<void(Result<wire::JoinReply>)> answer, bool other_cas = false);
  // Makes a token for a join without netboot (adopting a running host, purpose "adopt"): returned once,
  // stored as a digest. A newer token for the same node makes it void unless it was used.
  void mint(const std::string& node, const std::string& purpose,
            std::function<void(Result<std::string>)> answer);

 private:
  static constexpr DurationMs kTokenLife = 20 * kMinute, kTokenSpare = 10 * kMinute;
  static constexpr int kTokensPerPowerOn = 8;
  static constexpr int kRefusedPerMinute = 60;
  static constexpr uint16_t kFirstOpenPort = 1024;
  using Script = std::function<void(Result<std::string>)>;

  // The newest power-on of a node in this process; kept after the node was disarmed.
  struct PowerOn {
    uint64_t id = 0;
    bool armed = false;
    bool left = false;  // the machine has left the RAM system
    std::string token;  // the newest, in clear text; "" if made before a restart
    SteadyMs expires = {};
    std::set<std::string> digests;  // of all its tokens
    std::vector<Script> waiting;    // until the token is written
    int scripts = 0;
    bool handed_out = false, unable = false;  // logged: the script was sent; it could not be made
    std::string joined, serial;               // digest of the token that was used; serial of the certificate
                                              // issued for it
    bool requested_again = false;
  };
  // What was sent for a certificate that was renewed early, and to which key.
  struct EarlyRenewal {
    std::string public_key;
    wire::JoinReply reply;  // empty until it is written
  };
  PowerOn& begin(const std::string& node);
  DurationMs join_token_life() const;
  void note_unknown(const std::string& mac);
  bool may_discover(const std::string& mac);
  void discovery_script(const std::string& mac, const Script& answer);
  struct Asker {  // an armed node's machine that requested its boot script
    std::string node, mac, remote;
    Script answer;
  };
  void node_script(const std::string& node, const std::string& mac, const Script& answer,
                   const std::string& remote);
  void say(const Asker& asker, const char* action, const std::string& text) const;
  void note_script(const Asker& asker, PowerOn& power_on) const;
  void hand_out(const Asker& asker, const std::string& token);
  void renew_token(const Asker& asker, PowerOn& power_on);
  Result<wire::JoinReply> answer_known(const wire::JoinRequest& request, const TokenRow& token) const;
  Status check(const wire::JoinRequest& request, const TokenRow& token) const;
  Status check_machine(const wire::JoinRequest& request) const;
  Status check_port(uint16_t port) const;
  CertificateRow row_of(const NodeName& node, const Authority::AgentCertificate& made) const;
  void consider(const wire::JoinRequest& request, std::function<void(Result<wire::JoinReply>)> answer,
                const std::string& remote);
  Result<const EarlyRenewal*> early_renewal(const CertificateRow& shown, const std::string& public_key);
  void first_use(const wire::JoinRequest& request, TokenRow token, const std::string& public_key,
                 std::function<void(Result<wire::JoinReply>)> answer, const std::string& remote);
  void second_join(const std::string& node, const std::string& serial, const std::string& remote,
                   const std::function<void(Result<wire::JoinReply>)>& answer);
  void publish(const std::string& node, EventKind kind, const Json& data) const;
  void publish_refused(const std::string& text, const std::string& remote);

  Reactor& reactor_;
  Store& store_;
  const Authority& authority_;
  Hooks hooks_;
  std::map<std::string, PowerOn> power_ons_;
  uint64_t power_on_ids_ = 0;
  std::map<std::string, SteadyMs> fresh_;        // digest -> expiry of tokens that this process made
  std::map<std::string, std::string> adopting_;  // node -> digest of the token minted last
  std::set<std::string> in_flight_;              // tokens whose first use is being written
  std::map<std::string, TimeMs> unknown_macs_;   // seen at the boot port
  bool discover_unknown_ = false;
  std::map<std::string, std::string> unknown_tokens_;  // name -> digest of the token issued last
  int unknown_scripts_ = 0;                            // issued since discovery was switched on
  bool unknown_full_ = false;                          // already logged that the limit was reached
  std::set<std::string> revoked_seen_;                 // serials
  std::map<std::string, EarlyRenewal> renewed_early_;  // by serial number
  std::string renewed_for_;                            // the trust of all of these
  SteadyMs refused_since_ = {};                        // start of the minute whose events refused_ counts
  int refused_ = 0;
};

// An undeclared machine's name: contains its boot MAC, whose colons no host name in a spec can have.
std::string unknown_name(const std::string& mac);
// Returns the MAC in such a name; "" if the name is not one of an undeclared machine.
std::string mac_of_unknown(const std::string& name);

}  // namespace muster
