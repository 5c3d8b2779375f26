// Authority: the controller's own keys. Creates them if the state folder is new, else reads them.
//
// STATE/pki/ca.{key,crt}, server.{key,crt}, report.{key,pub}, and STATE/operator-token; secret ones have mode
// 0600. Signs agents' certificates, and only for names that the caller chose. Thread: the reactor's, since
// token and CA can be replaced.
//
// A CA is replaced in two steps (docs/decisions/0058-replacing-the-ca.md). In between, the CA in
// STATE/pki/ca-next.{key,crt} signs agents' certificates, agents trust both, and the server's certificate is
// still the old CA's.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/os.h"
#include "sys/pki.h"

namespace muster {

// Keys that are created once and then read. A file is written completely or not at all. Any thread.
//
// Reads `path`; if it does not exist, writes what `make` returns to it and returns that.
Result<std::string> kept_text(const Files& files, const std::string& path, unsigned mode,
                              const std::function<Result<std::string>()>& make);

// Paths of a key pair. `secret` has mode 0600; `open` is written last: a `secret` without `open` is replaced.
struct PairPaths {
  std::string secret, open;
};
Result<pki::KeyPair> kept_pair(const Files& files, const PairPaths& paths,
                               const std::function<Result<pki::KeyPair>()>& make);
// As kept_pair, in a folder that several processes may use at the same time: one of them creates the pair,
// the others wait for it.
Result<pki::KeyPair> shared_pair(const std::string& folder, const PairPaths& paths,
                                 const std::function<Result<pki::KeyPair>()>& make);

class Authority {
 public:
  // `addresses`: subject alternative names of the server certificate, which is reissued when they change, and
  // when at most a third of its lifetime is left at `now`.
  static Result<Authority> open(const std::string& state, const std::vector<std::string>& addresses,
                                TimeMs now);

  // What agents are to trust: the CA, and behind it the next one while it is being replaced.
  const std::string& ca_pem() const { return ca_pem_; }
  // What agents report once they trust ca_pem() and have a certificate of its last CA.
  std::string trust() const { return sha256(ca_pem_); }
  // Of the CA of the server's certificate.
  const std::string& ca_fingerprint() const { return ca_fingerprint_; }
  // By which the markers on disks name this controller: the fingerprint of its first CA, whatever became of
  // that. It is no secret and proves nothing.
  const std::string& identity() const { return identity_; }
  // Changes with all that the TLS port shows or accepts.
  std::string tls_digest() const { return sha256(operator_token_ + server_.certificate_pem + ca_pem_); }
  // Chain: the server's certificate, then the CA's, because agents pin the CA.
  const pki::KeyPair& server() const { return server_; }
  const pki::KeyPair& report_key() const { return report_; }
  // Of the CA's certificate and the server's, by "ca" and "server".
  std::map<std::string, TimeMs> certificate_ends() const;
  const std::string& operator_token() const { return operator_token_; }

  // Durable when they return. A failure leaves the present token or CA in use; withdraw_ca() may have taken
  // effect all the same, and is complete after the next open().
  Status replace_token();
  bool replacing_ca() const { return !next_.key_pem.empty(); }
  // When trust() last changed; 0: never. An agent with a certificate from before may not have been sent what
  // it is to trust now; each later one came with it.
  TimeMs trust_changed() const { return trust_changed_; }
  // Makes the next CA; nothing if there is one.
  Status begin_ca(TimeMs now);
  // The next CA takes the place of the present one, whose key is gone; nothing without a next one.
  Status withdraw_ca(TimeMs now);

  // Subject organization of agents' certificates; distinguishes them from the server's and the operator's.
  static constexpr char kAgentOrganization[] = "muster-agent";
  // Validity of an agent's certificate, and the age from which it may be renewed.
  static constexpr int kAgentDays = 365, kAgentRenewDays = 182;
  struct AgentCertificate {
    std::string pem, serial, fingerprint;
  };
  Result<AgentCertificate> sign_agent(const std::string& node, const std::string& csr_pem) const;

 private:
  std::string state_;
  std::vector<std::string> addresses_;
  pki::KeyPair ca_, next_, server_, report_;  // next_: empty unless the CA is being replaced
  TimeMs trust_changed_ = 0;
  std::string ca_pem_, ca_fingerprint_, identity_, operator_token_;
};

}  // namespace muster
