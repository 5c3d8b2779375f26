// Authority: the controller's own keys. Creates them when the state folder is new, reads them from then on.
//
// STATE/pki/ca.{key,crt}, server.{key,crt}, report.{key,pub}, and STATE/operator-token; secret ones have mode
// 0600. Signs agents' certificates; never signs anything for a name that the caller did not choose. Thread:
// immutable after open(); any thread.
#pragma once

#include <string>
#include <vector>

#include "base/pki.h"
#include "base/result.h"

namespace muster {

class Authority {
 public:
  // `addresses`: subject alternative names of the server certificate; it is reissued when they change, and
  // when a third of its life or less is left at `now`.
  static Result<Authority> open(const std::string& state, const std::vector<std::string>& addresses,
                                TimeMs now);

  const std::string& ca_pem() const { return ca_.certificate_pem; }
  const std::string& ca_fingerprint() const { return ca_fingerprint_; }
  // Chain: the server's certificate, then the CA's, because agents pin the CA.
  const pki::KeyPair& server() const { return server_; }
  const pki::KeyPair& report_key() const { return report_; }
  const std::string& operator_token() const { return operator_token_; }

  // Subject organization of every agent's certificate: distinguishes it from the server's and the operator's.
  static constexpr char kAgentOrganization[] = "muster-agent";
  // How long an agent's certificate is valid, and when it may be renewed.
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
