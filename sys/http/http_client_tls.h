// TLS of the HTTP client: trusted certificates, its own certificate, and OpenSSL's access to the socket.
// Thread: that of the connection (OpenSSL's error queue is per thread). Internal to the client.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <memory>

#include "base/result.h"
#include "sys/http/http.h"
#include "sys/openssl.h"

namespace muster::http_client {

using ContextPtr = std::unique_ptr<SSL_CTX, tls::Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, tls::Freer<SSL_free>>;

// Returns a BIO for a socket that is closed elsewhere. Unlike OpenSSL's own, it raises no SIGPIPE when the
// peer has closed the connection.
BIO* make_bio(int fd);
// invalid: a CA, certificate or key cannot be read.
Result<ContextPtr> make_context(const HttpClientOptions& options);
// True if the pin is that of the leaf, or of a CA in the sent chain that signed the leaf as that of a server.
bool pin_holds(SSL* ssl, X509* leaf, const HttpClientOptions& options);
// True if this OpenSSL error means that the server rejects our certificate: it processed no request.
bool refuses_our_certificate(unsigned long code);

}  // namespace muster::http_client
