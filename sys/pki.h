// The cluster's own small certificate authority: P-256 keys, X.509 v3.
//
// The controller creates one CA with its state, and signs with it: its own server certificate, one client
// certificate per agent (subject CN = node name, O = "muster-agent"), and operators' client certificates (O =
// "muster-operator"). Certificates are valid from one day before they were made, for slow clocks. Thread
// safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster {

// Subject organizations, which distinguish the kinds of certificates of the CA.
inline constexpr char kControllerOrganization[] = "muster-controller";

}  // namespace muster

namespace muster::pki {

struct KeyPair {
  std::string key_pem;          // PKCS#8, secret
  std::string certificate_pem;  // empty for a bare key
};

Result<KeyPair> make_ca(const std::string& common_name, int days);
Result<std::string> make_key();  // PEM, P-256
Result<std::string> make_csr(const std::string& key_pem, const std::string& common_name);

struct Leaf {
  std::string common_name;
  std::string organization;
  std::vector<std::string> addresses = {};  // IP or DNS subject alternative names
  bool server = false;
  int days = 365;
};
// Signs the CSR's public key under `leaf` (the CSR's own subject is ignored). Code::invalid when the CSR's
// signature is bad.
Result<std::string> sign_csr(const KeyPair& ca, const std::string& csr_pem, const Leaf& leaf);
// With a new key.
Result<KeyPair> issue(const KeyPair& ca, const Leaf& leaf);

// Checks that `ca_pem` signed `certificate_pem` and that it is valid at `now`; else Code::denied and why.
Status verify_certificate(const std::string& ca_pem, const std::string& certificate_pem, TimeMs now);

struct CertificateInfo {
  std::string common_name;
  std::string organization;
  std::string serial;  // lower-case hex, as in HttpRequest::peer_serial
  TimeMs not_before = 0;
  TimeMs not_after = 0;
};
Result<CertificateInfo> read_certificate(const std::string& certificate_pem);

// "sha256:<hex>" over the DER form; of the first certificate in the text.
Result<std::string> certificate_fingerprint(const std::string& certificate_pem);
// Of all in the text, in order.
Result<std::vector<std::string>> certificate_fingerprints(const std::string& certificates_pem);
// "sha256:<hex>" of the public key in a CSR or certificate: equal for the same key.
Result<std::string> public_key_fingerprint(const std::string& pem);

// Ed25519 signatures for reports and manifests.
Result<KeyPair> make_signing_key();  // certificate_pem holds the public key PEM
Result<std::string> sign(const std::string& key_pem, const std::string& message);  // base64
Result<bool> verify(const std::string& public_pem, const std::string& message, const std::string& signature);

}  // namespace muster::pki
