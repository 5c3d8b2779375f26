#include "sys/http/http_streams.h"

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace muster::http_server {
namespace {

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}
  Socket& socket() override { return socket_; }
  SSL* tls() override { return nullptr; }
  void handshake(Done done) override { done({}, 0); }
  void read(asio::mutable_buffer into, Done done) override { socket_.async_read_some(into, std::move(done)); }
  void write(std::array<asio::const_buffer, 2> pieces, Done done) override {
    asio::async_write(socket_, pieces, std::move(done));
  }

 private:
  Socket socket_;
};

class TlsStream : public ByteStream {
 public:
  TlsStream(Socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}
  Socket& socket() override { return stream_.next_layer(); }
  SSL* tls() override { return stream_.native_handle(); }
  void handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](error_code error) { done(error, 0); });
  }
  void read(asio::mutable_buffer into, Done done) override { stream_.async_read_some(into, std::move(done)); }
  void write(std::array<asio::const_buffer, 2> pieces, Done done) override {
    asio::async_write(stream_, pieces, std::move(done));
  }

 private:
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<ByteStream> plain_stream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}
std::unique_ptr<ByteStream> tls_stream(Socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

}  // namespace muster::http_server
