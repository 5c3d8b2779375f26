// The client half of sys/http/http.h: requests written by hand over a blocking socket (sys/http/http_line.h),
// Beast for parsing answers. One call is one exchange; the call's deadline bounds every wait in it.
#include <fmt/format.h>

#include <array>
#include <optional>

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>

#include "base/digest.h"
#include "base/version.h"
#include "sys/http/http.h"
#include "sys/http/http_line.h"

namespace muster {

namespace http_client {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

// A Beast body that passes its bytes to a function instead of keeping them.
struct SinkBody {
  using value_type = std::function<bool(std::string_view)>;  // false: stop
  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(http::header<isRequest, Fields>&, value_type& sink) : sink_(sink) {}
    void init(const boost::optional<uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      size_t total = 0;
      for (auto it = boost::asio::buffer_sequence_begin(buffers);
           it != boost::asio::buffer_sequence_end(buffers); ++it) {
        boost::asio::const_buffer piece(*it);
        total += piece.size();
        std::string_view text(static_cast<const char*>(piece.data()), piece.size());
        if (!error && !text.empty() && !sink_(text)) error = http::error::body_limit;
      }
      return total;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& sink_;
  };
};
using Parser = http::response_parser<SinkBody>;

struct Exchange {
  Io io = Io::done;
  bool any_sent = false;
  bool any_received = false;
  bool stopped_by_sink = false;
  std::string complaint;
};

class BlockingClient : public HttpClient {
 public:
  BlockingClient(HttpClientOptions options, Target target, ContextPtr context)
      : options_(std::move(options)), target_(std::move(target)), context_(std::move(context)) {}

  Result<HttpResponse> request(HttpRequest request, DurationMs deadline) override {
    std::string body;
    bool too_large = false;
    auto keep = [&](std::string_view piece) {
      body += piece;
      too_large = body.size() > options_.max_answer;
      return !too_large;
    };
    auto restart = [&] { body.clear(); };
    TRY(HttpResponse response, converse(request, Deadline(deadline), keep, restart, false));
    if (too_large) return fail(Code::failed, "the answer is too large");
    response.body = std::move(body);
    return response;
  }

  Result<HttpResponse> stream(HttpRequest request, DurationMs deadline,
                              std::function<bool(std::string_view)> on_chunk) override {
    return converse(
        request, Deadline(deadline), std::move(on_chunk), [] {}, true);
  }

  std::string peer_fingerprint() const override { return fingerprint_; }

 private:
  Result<HttpResponse> converse(const HttpRequest& request, const Deadline& deadline,
                                SinkBody::value_type sink, const std::function<void()>& restart,
                                bool streaming) {
    TRY(std::string head, head_of(request));
    for (bool retried = false;; retried = true) {
      bool reused = line_.idle_and_alive();
      if (!reused) TRY_(connect(deadline));
      std::optional<Parser> parser;
      Exchange exchange = talk(request, head, deadline, sink, parser);
      // The only safe retry: a read-only (or unsent) request, on a connection that was closed while idle.
      bool harmless = !exchange.any_sent || request.method == "GET";
      if (exchange.io == Io::closed && reused && !retried && !exchange.any_received && harmless) {
        line_.close();
        restart();
        continue;
      }
      return conclude(exchange, *parser, streaming);
    }
  }

  Status connect(const Deadline& deadline) {
    fingerprint_.clear();
    Deadline soon = deadline.sooner(options_.connect_timeout);
    TRY_(line_.connect(target_, soon, options_.reserved_port));
    if (target_.tls && !target_.authority.empty()) TRY_(line_.tunnel(target_.authority, soon));
    if (target_.tls) TRY_(line_.start_tls(context_.get(), target_, options_, soon, fingerprint_));
    return Ok{};
  }

  Exchange talk(const HttpRequest& request, const std::string& head, const Deadline& deadline,
                const SinkBody::value_type& sink, std::optional<Parser>& parser) {
    Exchange exchange;
    fresh(parser, request, sink);
    Io sent = request.body.size() < 65536 ? line_.write_all(head + request.body, deadline, exchange.any_sent)
                                          : line_.write_all(head, deadline, exchange.any_sent);
    if (sent == Io::done && request.body.size() >= 65536)
      sent = line_.write_all(request.body, deadline, exchange.any_sent);
    exchange.io = sent;
    if (sent == Io::late || !exchange.any_sent) return exchange;
    // A server may answer and close before it has read everything ("too large"): its answer counts.
    std::string pending;
    std::array<char, 65536> buffer;
    while (!parser->is_done()) {
      size_t size = 0;
      exchange.io = line_.read_some(buffer.data(), buffer.size(), deadline, size);
      if (exchange.io != Io::done) break;
      exchange.any_received = true;
      pending.append(buffer.data(), size);
      if (!feed(exchange, pending, request, sink, parser)) break;
      if (options_.head_only && parser->is_header_done()) break;
    }
    // For a body without a length, the end of the connection is the regular end.
    if (exchange.io == Io::closed && parser->is_header_done() && parser->need_eof()) {
      error_code ignored;
      parser->put_eof(ignored);
      if (parser->is_done()) exchange.io = Io::done;
    }
    if (sent != Io::done || !pending.empty()) line_.close();  // cannot be reused
    return exchange;
  }

  static void fresh(std::optional<Parser>& parser, const HttpRequest& request,
                    const SinkBody::value_type& sink) {
    parser.emplace();
    parser->get().body() = sink;
    parser->eager(true);
    parser->header_limit(64 << 10);
    parser->body_limit(boost::none);
    parser->skip(request.method == "HEAD");
  }

  // Parses the received bytes; returns false at the end of the exchange.
  bool feed(Exchange& exchange, std::string& pending, const HttpRequest& request,
            const SinkBody::value_type& sink, std::optional<Parser>& parser) {
    for (;;) {
      error_code error;
      size_t used = parser->put(boost::asio::buffer(pending), error);
      pending.erase(0, used);
      if (error == http::error::need_more) return true;
      if (error == http::error::body_limit)
        exchange.stopped_by_sink = true;
      else if (error)
        exchange.complaint = error.message();
      if (error) return false;
      if (!parser->is_done()) return true;
      if (parser->get().result_int() / 100 != 1) return false;
      fresh(parser, request, sink);  // interim responses such as "100 Continue" precede the answer
    }
  }

  Result<HttpResponse> conclude(const Exchange& exchange, const Parser& parser, bool streaming) {
    bool whole = parser.is_done() && exchange.io == Io::done && exchange.complaint.empty();
    // A stream of unknown length just ends; a truncated one of known length must not be taken for complete.
    bool ended =
        streaming && parser.is_header_done() && !parser.content_length() && exchange.complaint.empty();
    const bool enough = options_.head_only && parser.is_header_done();
    if (!whole || !options_.keep_alive || !parser.keep_alive()) line_.close();
    if (!whole && !ended && !enough && !exchange.stopped_by_sink) return problem(exchange);
    HttpResponse response;
    const auto& message = parser.get();
    response.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      std::string& value = response.headers[std::string(field.name_string())];
      value += (value.empty() ? "" : ", ") + std::string(field.value());
    }
    return response;
  }

  Error problem(const Exchange& exchange) {
    const std::string& host = target_.host;
    if (exchange.io == Io::refused)
      return fail(Code::denied, host + " rejects our certificate: " + line_.reason());
    if (!exchange.any_sent) return fail(Code::unavailable, "could not send the request to " + host);
    if (!exchange.complaint.empty())
      return fail(Code::timeout, fmt::format("{} sent an unreadable answer: {}", host, exchange.complaint));
    if (exchange.io == Io::late) return fail(Code::timeout, host + " did not answer in time");
    return fail(Code::timeout, host + " closed the connection before its answer was complete");
  }

  Result<std::string> head_of(const HttpRequest& request) const {
    auto clean = [](std::string_view text) {
      return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
    };
    bool good = clean(request.method) && !request.method.empty() && !request.target.empty() &&
                request.target.find_first_of(std::string_view(" \r\n\0", 4)) == std::string::npos;
    for (const auto& [name, value] : request.headers) good = good && clean(name) && clean(value);
    if (!good) return fail(Code::invalid, "the request contains characters that HTTP does not allow");
    Headers headers = request.headers;
    headers.try_emplace("Host", options_.host_name.empty() ? target_.host : options_.host_name);
    headers.try_emplace("User-Agent", std::string("muster/") + kProgramVersion);
    headers.try_emplace("Accept", "*/*");
    if (!options_.basic_user.empty())
      headers.try_emplace("Authorization",
                          "Basic " + to_base64(options_.basic_user + ":" + options_.basic_password));
    if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD"))
      headers["Content-Length"] = std::to_string(request.body.size());
    if (!options_.keep_alive) headers["Connection"] = "close";
    const bool absolute = !target_.tls && !target_.authority.empty();  // a proxy reads it
    std::string head = fmt::format("{} {}{} HTTP/1.1\r\n", request.method,
                                   absolute ? "http://" + target_.authority : "", request.target);
    for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
    return head + "\r\n";
  }

  HttpClientOptions options_;
  Target target_;
  ContextPtr context_;
  Line line_;
  std::string fingerprint_;
};

}  // namespace
}  // namespace http_client

Result<std::unique_ptr<HttpClient>> make_http_client(HttpClientOptions options) {
  using namespace http_client;
  TRY(Target target,
      options.proxy.empty() ? parse_base(options.base) : parse_proxied(options.base, options.proxy));
  ContextPtr context;
  if (target.tls) {
    if (options.ca_pem.empty() && options.pin_sha256.empty() && !options.insecure_first_use)
      return fail(Code::invalid, "https needs a CA or a pinned certificate");
    if (!options.host_name.empty() && options.ca_pem.empty())
      return fail(Code::invalid, "a host name can only be checked with a CA");
    TRY(context, make_context(options));
  }
  return std::unique_ptr<HttpClient>(
      std::make_unique<BlockingClient>(std::move(options), std::move(target), std::move(context)));
}

}  // namespace muster
