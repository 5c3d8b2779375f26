// Authority: the controller's own keys. Creates them if the state folder is new, else reads them.
//
// STATE/pki/ca.{key,crt}, server.{key,crt}, report.{key,pub}, and STATE/operator-token; secret ones have mode
// 0600. Signs agents' certificates, and only for names that the caller chose. Thread safety: immutable after
// open(), any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sys/pki.h"

namespace muster {

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
