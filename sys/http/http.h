// HTTP/1.1 for all of muster: one server, one client, both plain, over TLS, or over a Unix socket.
//
// Server: handlers run on the server's own threads (a fixed pool) and answer through a Responder, at once or
// later (long poll, event stream), from any thread. Requests with Transfer-Encoding, duplicate Content-Length
// or a body over the limit are rejected before they reach the handler: from the header alone, before a byte
// of the body is read. A client certificate, when one was given and verified, is in HttpRequest::peer. A
// connection is unauthenticated until `trust` accepts one of its requests; a client certificate alone is not
// enough, since it may be revoked. For unauthenticated clients, bodies, connections per address and
// connections in total have limits of their own, so that they cannot crowd out the others; all bodies that
// are being received share one budget. Client: blocking, one request per call, under a deadline; for worker
// threads, never for the reactor's thread. Error codes of the client: `unavailable` = the request was not
// sent (connect or TLS failed); `timeout` = it was sent and the answer was not complete (outcome unknown);
// `denied` = the peer's certificate is not the pinned one or not of our CA, or the peer rejected ours (the
// request was not processed). Addresses are numeric: no name is ever resolved, so that the client works in a
// static binary. A caller with a name resolves it (sys/http/by_name.h), and has it checked with `host_name`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace muster {

struct HeaderLess {  // header names compare without regard to case
  bool operator()(const std::string& a, const std::string& b) const;
};
using Headers = std::map<std::string, std::string, HeaderLess>;

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  // path with query as sent
  Headers headers = {};
  std::string body = {};

  // Filled by the server:
  std::string path = {};  // decoded, without the query
  std::map<std::string, std::string> query = {};
  std::string peer = {};         // certificate's subject common name when mutual TLS succeeded, else empty
  std::string peer_serial = {};  // that certificate's serial number, lower-case hex
  std::string peer_organization = {};  // that certificate's organization: "muster-agent", "muster-operator"
  std::string remote = {};             // "10.20.0.11" or "unix"
  // User of the process that connected to the Unix socket, as it was then; none for other clients.
  std::optional<uint32_t> peer_uid = {};
  uint16_t remote_port = 0;  // from which it was sent; 0 for a Unix socket
};

// Fills path and query from target. Code::invalid for a bad escape, a ".." segment or a control character:
// such a request is answered 400 before a handler sees it.
Status parse_target(HttpRequest& request);
std::string url_encode(std::string_view text);

// One range of a "Range: bytes=..." header over a body of `size` bytes; none when the header is to be ignored
// (absent, malformed, several ranges). length 0: not satisfiable (416).
struct ByteRange {
  uint64_t first = 0;
  uint64_t length = 0;
};
std::optional<ByteRange> parse_range(std::string_view header, uint64_t size);

struct HttpResponse {
  int status = 200;
  Headers headers = {};
  std::string body = {};
  std::string file = {};  // when set: this file's content is the body, streamed from disk; Range is honoured
  bool close = false;     // the connection is closed after this response

  static HttpResponse json(int status, std::string body);
  static HttpResponse text(int status, std::string body);
};

// Answers one request, at once or later. Exactly one of respond() and start_stream() may be called; a
// Responder that is destroyed without an answer sends status 500.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void respond(HttpResponse response) = 0;
  // Starts a response of unknown length (text/event-stream). write() never blocks; it returns false once the
  // client is gone, or was disconnected because it was 4 MiB behind.
  virtual void start_stream(HttpResponse head) = 0;
  virtual bool write(std::string chunk) = 0;
  virtual void end_stream() = 0;
};
using ResponderPtr = std::shared_ptr<Responder>;
using HttpHandler = std::function<void(HttpRequest, ResponderPtr)>;

struct TlsServerOptions {
  std::string certificate_pem;  // chain
  std::string key_pem;
  std::string client_ca_pem;  // empty: no client certificates requested
  bool require_client_certificate = false;
};

enum class Trust {
  unknown,
  guest,  // unauthenticated, but may send bodies as large as authenticated clients
  known,
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // numeric
  uint16_t port = 0;                  // 0: any free one
  std::string unix_path = {};         // if set, listens on this Unix socket (mode 0660) instead
  bool tls = false;
  TlsServerOptions tls_options = {};
  int threads = 2;
  size_t max_body = 8 << 20;
  size_t max_unknown_body = 64 << 10;
  size_t max_bodies =
      256 << 20;  // limit, in bytes, for all bodies being received; beyond it: 503. Unauthenticated clients
                  // may use a quarter of it
  size_t max_unknown_per_address = 64;
  size_t max_unknown_clients = 4096;
  // Returns how far the sender is trusted, from the header (no body yet) and the certificate. Runs on the
  // server's threads. Null: no client is authenticated, except that those on a Unix socket always are.
  std::function<Trust(const HttpRequest&)> trust = {};
  // True if a body of this length is not to be read from that client now: 429, from the header alone. Runs on
  // the server's threads. Null: none is held back.
  std::function<bool(const HttpRequest& head, size_t length)> holds_back = {};
  DurationMs idle_timeout = 60 * kSecond;
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;  // joins the threads: never from a handler. Responders may outlive it.
  virtual uint16_t port() const = 0;
  virtual void stop() = 0;
};
// `unavailable` when the address is in use, `invalid` for bad TLS material.
Result<std::unique_ptr<HttpServer>> start_http_server(HttpServerOptions options, HttpHandler handler);

struct HttpClientOptions {
  std::string base;         // "http://10.0.0.1:80", "https://[fd00::1]:7443", "unix:/run/muster/musterd.sock"
  std::string ca_pem = {};  // trust exactly these roots (https); names are checked with host_name only
  // With ca_pem: the name that the certificate must be for, also used for SNI and Host.
  std::string host_name = {};
  // Instead of ca_pem, or in addition: "sha256:<hex>" of the leaf certificate, or of a CA certificate that
  // the server sends in its chain and that signed the leaf.
  std::string pin_sha256 = {};
  // "http://10.0.0.1:3128": an HTTP proxy, which then makes the connection (CONNECT for https), so that
  // `base` may have a name in place of an address. The proxy sees neither content nor headers of https.
  std::string proxy = {};
  // In addition: the organization in the leaf's subject, "" for any. A CA that signs for other purposes as
  // well does not identify the server.
  std::string peer_organization = {};
  bool ignore_certificate_times = false;  // for a machine whose clock is not set yet
  bool insecure_first_use = false;  // accept any certificate (to learn its fingerprint); never for real calls
  std::string certificate_pem = {};
  std::string key_pem = {};
  std::string basic_user = {};  // HTTP basic authentication
  std::string basic_password = {};
  DurationMs connect_timeout = 10 * kSecond;  // TCP and TLS together
  // From a source port below 1024, which only root has, if this process may use one; else from any.
  bool reserved_port = false;
  bool keep_alive = true;         // false: "Connection: close" on every request (BMCs mishandle keep-alive)
  bool head_only = false;         // an answer counts once its header was read, whatever becomes of its body
  size_t max_answer = 256 << 20;  // a larger body, also of an error response, is not read in full: `failed`
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Thread: one call at a time. Redirects are not followed. Any status is a response, not an Error.
  virtual Result<HttpResponse> request(HttpRequest request, DurationMs deadline) = 0;
  // Calls `on_chunk` with pieces of the body as they arrive, until it returns false, the peer closes the
  // connection, or the deadline passes. A truncated body of declared length is Code::timeout; one of unknown
  // length (events) just ends.
  virtual Result<HttpResponse> stream(HttpRequest request, DurationMs deadline,
                                      std::function<bool(std::string_view)> on_chunk) = 0;
  // Fingerprint of the peer's leaf certificate of the last connection: "sha256:<hex>"; empty for plain HTTP.
  virtual std::string peer_fingerprint() const = 0;
};
Result<std::unique_ptr<HttpClient>> make_http_client(HttpClientOptions options);

}  // namespace muster
