// TLS of the HTTP client: what it trusts, what it presents, and how OpenSSL uses its socket. Thread: a
// connection's; OpenSSL's error queue is the calling thread's. Internal to the client.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <memory>

#include "base/http.h"
#include "base/openssl.h"
#include "base/result.h"

namespace muster::http_client {

using ContextPtr = std::unique_ptr<SSL_CTX, tls::Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, tls::Freer<SSL_free>>;

// Writes to and reads from a socket that is closed elsewhere; without SIGPIPE, which OpenSSL's own would
// raise when the peer has gone.
BIO* make_bio(int fd);
// invalid for CAs, certificates and keys that cannot be read.
Result<ContextPtr> make_context(const HttpClientOptions& options);
// Whether the pin is the leaf's, or that of a CA in the sent chain that signed the leaf for a server.
bool pin_holds(SSL* ssl, X509* leaf, const HttpClientOptions& options);
// Whether that OpenSSL error means that the server does not accept our certificate: it processed no request.
bool refuses_our_certificate(unsigned long code);

}  // namespace muster::http_client
