// OpenSSL's objects with owners, and the three helpers that base/pki.cc and the HTTP adapters share.
//
// Only those files include this. Thread: values and pure functions; OpenSSL's error queue is the calling
// thread's.
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

// Code::invalid with OpenSSL's last error; empties its error queue.
Error openssl_error(std::string_view doing);
// Every certificate of a PEM text, in order; Code::invalid when there is none.
Result<std::vector<CertificatePtr>> read_certificates(const std::string& pem);
Result<KeyPtr> read_key(const std::string& pem);
std::string fingerprint(X509* certificate);
// A field of the subject, e.g. NID_commonName; empty when absent.
std::string subject_field(X509* certificate, int nid);
std::string serial_hex(X509* certificate);

}  // namespace muster::tls
