// Owning pointers for OpenSSL's objects, and helpers; for sys/pki.cc and the HTTP adapters only. Thread
// safety: plain value types and stateless functions; OpenSSL's error queue is per thread.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::tls {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;
using CsrPtr = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;

// Returns Code::invalid with OpenSSL's last error, and empties the thread's error queue.
Error openssl_error(std::string_view doing);
// Returns all certificates in a PEM text, in order; Code::invalid if there is none.
Result<std::vector<CertificatePtr>> read_certificates(const std::string& pem);
Result<KeyPtr> read_key(const std::string& pem);
std::string fingerprint(X509* certificate);
// A field of the subject, e.g. NID_commonName; empty when absent.
std::string subject_field(X509* certificate, int nid);
std::string serial_hex(X509* certificate);

}  // namespace muster::tls
