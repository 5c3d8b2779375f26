// One connected socket of the HTTP server, plain or TLS, as a byte stream, so that there is one Connection
// class, and Beast's and Asio's algorithms are instantiated once.
//
// Thread: the strand of its connection. Buffers must stay valid until the call's `done` has run. Internal to
// the server.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <functional>
#include <memory>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>

namespace muster::http_server {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Done = std::function<void(error_code, size_t)>;

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual Socket& socket() = 0;
  virtual SSL* tls() = 0;  // null for a plain stream
  virtual void handshake(Done done) = 0;
  virtual void read(asio::mutable_buffer into, Done done) = 0;
  virtual void write(std::array<asio::const_buffer, 2> pieces, Done done) = 0;
};

std::unique_ptr<ByteStream> plain_stream(Socket socket);
// The context must outlive the stream.
std::unique_ptr<ByteStream> tls_stream(Socket socket, asio::ssl::context& context);

}  // namespace muster::http_server
