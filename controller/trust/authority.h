// Authority: the controller's own keys. Creates them if the state folder is new, else reads them.
//
// STATE/pki/ca.{key,crt}, server.{key,crt}, report.{key,pub}, and STATE/operator-token; secret ones have mode
// 0600. Signs agents' certificates, and only for names that the caller chose. Thread safety: immutable after
// open(), any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

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

  const std::string& ca_pem() const { return ca_.certificate_pem; }
  const std::string& ca_fingerprint() const { return ca_fingerprint_; }
  // Chain: the server's certificate, then the CA's, because agents pin the CA.
  const pki::KeyPair& server() const { return server_; }
  const pki::KeyPair& report_key() const { return report_; }
  // Of the CA's certificate and the server's, by "ca" and "server".
  std::map<std::string, TimeMs> certificate_ends() const;
  const std::string& operator_token() const { return operator_token_; }

  // Subject organization of agents' certificates; distinguishes them from the server's and the operator's.
  static constexpr char kAgentOrganization[] = "muster-agent";
  // Validity of an agent's certificate, and the age from which it may be renewed.
  static constexpr int kAgentDays = 365, kAgentRenewDays = 182;
  struct AgentCertificate {
    std::string pem, serial, fingerprint;
  };
  Result<AgentCertificate> sign_agent(const std::string& node, const std::string& csr_pem) const;

 private:
  pki::KeyPair ca_, server_, report_;
  std::string ca_fingerprint_, operator_token_;
};

}  // namespace muster
