#include "sys/http/http_client_tls.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace muster::http_client {
namespace {

int bio_fd(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t n = ::send(bio_fd(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t n = ::recv(bio_fd(bio), data, static_cast<size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(n);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

}  // namespace

BIO* make_bio(int fd) {
  static BIO_METHOD* method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

Result<ContextPtr> make_context(const HttpClientOptions& options) {
  ContextPtr context(SSL_CTX_new(TLS_client_method()));
  if (!context) return tls::openssl_error("preparing TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.ca_pem.empty()) {
    // Old BMCs use weak certificates and handshakes; the pin authenticates them regardless.
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_options(context.get(), SSL_OP_LEGACY_SERVER_CONNECT);
  } else {
    TRY(auto roots, tls::read_certificates(options.ca_pem));
    for (const auto& root : roots)
      if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root.get()) != 1)
        return tls::openssl_error("trusting a CA");
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (options.ignore_certificate_times)
      X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.get()), X509_V_FLAG_NO_CHECK_TIME);
  }
  if (options.certificate_pem.empty()) return context;
  TRY(auto chain, tls::read_certificates(options.certificate_pem));
  TRY(auto key, tls::read_key(options.key_pem));
  bool ok = SSL_CTX_use_certificate(context.get(), chain[0].get()) == 1 &&
            SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1 &&
            SSL_CTX_check_private_key(context.get()) == 1;
  for (size_t i = 1; ok && i < chain.size(); ++i)
    ok = SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) == 1;
  if (!ok) return tls::openssl_error("using the client's certificate");
  return context;
}

bool pin_holds(SSL* ssl, X509* leaf, const HttpClientOptions& options) {
  if (tls::fingerprint(leaf) == options.pin_sha256) return true;
  STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 1; i < sk_X509_num(chain); ++i) {
    X509* candidate = sk_X509_value(chain, i);
    if (tls::fingerprint(candidate) != options.pin_sha256) continue;
    tls::StorePtr store(X509_STORE_new());
    X509_STORE_add_cert(store.get(), candidate);
    std::unique_ptr<X509_STORE_CTX, tls::Freer<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
    if (X509_STORE_CTX_init(context.get(), store.get(), leaf, chain) != 1) return false;
    // A client certificate issued by the CA must not be accepted from a server.
    if (X509_STORE_CTX_set_default(context.get(), "ssl_server") != 1) return false;
    if (options.ignore_certificate_times) X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
    bool good = X509_verify_cert(context.get()) == 1;
    ERR_clear_error();
    return good;
  }
  return false;
}

bool refuses_our_certificate(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  int alert = ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET;
  static constexpr std::array kAlerts = {SSL_AD_BAD_CERTIFICATE,     SSL_AD_UNSUPPORTED_CERTIFICATE,
                                         SSL_AD_CERTIFICATE_REVOKED, SSL_AD_CERTIFICATE_EXPIRED,
                                         SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
                                         SSL_AD_ACCESS_DENIED,       SSL_AD_CERTIFICATE_REQUIRED};
  return std::find(kAlerts.begin(), kAlerts.end(), alert) != kAlerts.end();
}

}  // namespace muster::http_client
