// TCP between two nodes: round trip time, then verified data in one direction, then in the other.
//
// How to run:  muster-accept link-serve --bind 10.20.0.12 --port 7490 --seconds 60 [--from 10.20.0.11]
// [--sessions 1]
//              muster-accept link --to 10.20.0.12 --port 7490 --seconds 1 [--bind 10.20.0.11]
// Reference:   both ends generate the same pseudo-random pattern. Byte p of a direction's stream is pattern[p
//              mod 1048573]: the period is prime, so a block that is lost, repeated or moved by any multiple
//              of a page, MTU or segment is detected, as is any flipped bit that the 16-bit TCP checksum
//              misses.
// Structure:   one connection, reopened if it breaks, at most three in total; frames of at most 256 KiB. The
//              receiver measures the time from the first byte to the end mark, so data still in a buffer is
//              not counted. A port above 10 Gb/s is measured by several connections at once, up to eight,
//              with a thread each at both ends; one by itself before that is only reported.
// Expected:    one stream: ~94 % of a 10 Gb/s link with MTU 1500, 30-50 Gb/s on faster ones (then the CPU
//              core is the limit). Emulated guests: about 10 MB/s.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/link/link.h"
#include "base/json_dump.h"
#include "base/record.h"

namespace muster::kernels {
namespace {

constexpr size_t kPeriod = 1048573;  // prime
constexpr size_t kChunk = kLargestFrame;
constexpr size_t kMostConnections = 3;

enum Type : uint32_t { ping = kPing, pong = kPong, data, end, result, go, bye };

const std::vector<char>& pattern() {
  static const std::vector<char> bytes = [] {
    std::vector<char> out(kPeriod + kChunk);
    SplitMix random(0x6d7573746572);
    fill_random(random, out.data(), kPeriod);
    std::copy_n(out.begin(), kChunk, out.begin() + kPeriod);
    return out;
  }();
  return bytes;
}

// Sends pattern data for `seconds`, then the end mark.
Result<uint64_t> send_stream(Connection& link, double seconds, const Flip* flip) {
  uint64_t offset = 0;
  const double until = seconds_now() + seconds;
  std::vector<char> damaged;
  do {
    const char* bytes = pattern().data() + offset % kPeriod;
    if (flip && flip->index >= offset && flip->index < offset + kChunk) {
      damaged.assign(bytes, bytes + kChunk);
      damaged[flip->index - offset] =
          static_cast<char>(damaged[flip->index - offset] ^ (1 << (flip->bit % 8)));
      bytes = damaged.data();
    }
    TRY_(link.send(data, offset, bytes, kChunk));
    offset += kChunk;
  } while (seconds_now() < until);
  TRY_(link.send(end, offset));
  return offset;
}

struct Received {
  uint64_t bytes = 0, wrong_chunks = 0;
  int64_t first_wrong = -1;  // byte offset
  double seconds = 0;
  double mbps() const { return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e6 : 0; }
};
MUSTER_RECORD(Received, bytes, wrong_chunks, first_wrong, seconds)

void verify(const char* bytes, size_t length, uint64_t offset, Received& out) {
  const char* expected = pattern().data() + offset % kPeriod;
  if (std::memcmp(bytes, expected, length) == 0) return;
  if (out.wrong_chunks++ == 0)
    out.first_wrong =
        static_cast<int64_t>(offset) + (std::mismatch(bytes, bytes + length, expected).first - bytes);
}

// Receives data frames, starting with `header`, until the end mark.
Result<Received> receive_stream(Connection& link, Header header, const Flip* flip) {
  Received out;
  // Timed from the first header, not from the end of its frame: on a slow link the first frame may carry all
  // the data, and nothing would be left to time.
  const double start = link.arrived();
  while (header.type == data) {
    if (header.value != out.bytes)
      return fail(Code::corrupt,
                  fmt::format("received offset {} where {} was expected", header.value, out.bytes));
    if (flip && flip->index >= out.bytes && flip->index < out.bytes + header.length)
      link.body()[flip->index - out.bytes] =
          static_cast<char>(link.body()[flip->index - out.bytes] ^ (1 << (flip->bit % 8)));
    verify(link.body(), header.length, out.bytes, out);
    out.bytes += header.length;
    TRY(header, link.receive());
  }
  if (header.type != end || header.value != out.bytes)
    return fail(Code::corrupt, fmt::format("{} bytes arrived, but {} were sent", out.bytes, header.value));
  out.seconds = seconds_now() - start;
  return out;
}

Result<std::vector<double>> measure_rtt(Connection& link, double seconds) {
  std::vector<double> out;
  const double until = seconds_now() + seconds;
  for (uint64_t i = 0; i < 100 && (i < 5 || seconds_now() < until); ++i) {
    const double start = seconds_now();
    TRY_(link.send(ping, i));
    TRY(const Header reply, link.receive(pong));
    if (reply.value != i) return fail(Code::corrupt, "a ping was answered out of order");
    out.push_back((seconds_now() - start) * 1000);
  }
  return out;
}

// Serves one client until it ends the session. Returns how many chunks arrived damaged.
Result<uint64_t> serve(Connection& link, const Flip* flip, Turns& turns) {
  uint64_t wrong = 0;
  SessionTurn turn(turns);
  while (true) {
    TRY(const Header header, link.receive());
    switch (header.type) {
      case ping:
        TRY_(link.send(pong, turn.reply_to(header.value)));
        break;
      case data:
      case end: {
        TRY(const Received received, receive_stream(link, header, nullptr));
        wrong += received.wrong_chunks;
        const std::string text = dump_json(record_json(received));
        TRY_(link.send(result, 0, text.data(), text.size()));
        break;
      }
      case go:
        TRY_(send_stream(link, std::min(static_cast<double>(header.value) / 1000, 3600.0), flip));
        break;
      case bye:
        return wrong;
      default:
        return fail(Code::invalid, "unknown frame");
    }
  }
}

struct ClientResult {
  Turn turn = Turn::none;
  std::vector<double> rtt;
  Received sent, received;                    // of all streams together
  Received one_sent = {}, one_received = {};  // of one by itself, if there were several
  uint64_t retransmits = 0;
  std::vector<std::string> broken = {};  // why the connections before this one ended
};

double longest(const LinkOptions& options) { return options.seconds * 4 + 10; }

// A session with this node's own server, which counts the measurements at this node. Null: no turn is wanted,
// or no server runs here.
std::unique_ptr<Connection> own_server(const LinkOptions& options, double deadline) {
  if (options.turn.turn == Turn::none || options.bind.empty()) return nullptr;
  const auto fd = connect_until({options.bind, options.port, options.bind, 1});
  return fd ? std::make_unique<Connection>(*fd, deadline) : nullptr;
}

Result<Received> send_for(Connection& link, double seconds, const Flip* flip) {
  TRY_(send_stream(link, seconds, flip));
  TRY(const Header reply, link.receive(result));
  TRY(const Json report, parse_json({link.body(), reply.length}));
  return read_record<Received>(report, "result");
}

Result<Received> receive_for(Connection& link, double seconds, const Flip* flip) {
  TRY_(link.send(go, static_cast<uint64_t>(seconds * 1000)));
  TRY(const Header first, link.receive());
  return receive_stream(link, first, flip);
}

// One direction over several connections at once. Only the first one's data is flipped.
using Direction = Result<Received> (*)(Connection& link, double seconds, const Flip* flip);
Result<Received> all_at_once(std::vector<Connection*> links, Direction direction, double seconds,
                             const Flip* flip) {
  std::vector<Result<Received>> each(links.size(), fail(Code::failed, "the stream did not run"));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < links.size(); ++i)
    threads.emplace_back([&, i] { each[i] = direction(*links[i], seconds, nullptr); });
  each[0] = direction(*links[0], seconds, flip);
  for (auto& thread : threads) thread.join();
  Received out;
  for (const auto& one : each) {
    if (!one) return one;
    out.bytes += one->bytes;
    out.wrong_chunks += one->wrong_chunks;
    if (out.first_wrong < 0) out.first_wrong = one->first_wrong;
    out.seconds = std::max(out.seconds, one->seconds);
  }
  return out;
}

// The connections of a link: the first one is the session's, in which turns are taken.
class Streams {
 public:
  static Result<Streams> open(Connection& first, const LinkOptions& options, double deadline) {
    Streams out;
    out.all_.push_back(&first);
    while (out.all_.size() < static_cast<size_t>(std::max(1, options.streams))) {
      TRY(const int fd, connect_until({options.to, options.port, options.bind, options.connect_seconds}));
      out.own_.push_back(std::make_unique<Connection>(fd, deadline));
      out.all_.push_back(out.own_.back().get());
    }
    return out;
  }
  const std::vector<Connection*>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Connection>> own_;
  std::vector<Connection*> all_;
};

Status measure_both(Connection& link, const LinkOptions& options, ClientResult& out) {
  const Flip* flip = options.flip ? &*options.flip : nullptr;
  const Flip *sending = flip && flip->part == 0 ? flip : nullptr,
             *receiving = flip && flip->part == 1 ? flip : nullptr;
  double each = options.seconds * 0.4;
  if (options.streams > 1) {
    const double alone = options.seconds * 0.1;
    each -= alone;
    TRY(out.one_sent, send_for(link, alone, nullptr));
    TRY(out.one_received, receive_for(link, alone, nullptr));
  }
  TRY(const Streams streams, Streams::open(link, options, seconds_now() + longest(options)));
  TRY(out.sent, all_at_once(streams.all(), send_for, each, sending));
  TRY(out.received, all_at_once(streams.all(), receive_for, each, receiving));
  for (Connection* one : streams.all()) {
    out.retransmits += one->retransmits();
    TRY_(one->send(bye, 0));
  }
  return Ok{};
}

Result<ClientResult> measure_over(int fd, const LinkOptions& options) {
  // The turns of both kinds are waited for, one after the other.
  const double deadline = seconds_now() + 2 * options.turn.seconds + longest(options);
  Connection link(fd, deadline);
  const auto own = own_server(options, deadline);
  ClientResult out;
  TRY(out.turn, take_turn(own.get(), link, options.turn));
  link.until(seconds_now() + longest(options));
  TRY(out.rtt, measure_rtt(link, options.seconds * 0.1));
  TRY_(measure_both(link, options, out));
  if (own) (void)own->send(bye, 0);
  return out;
}

// Retries, because the peer's server ends and restarts with its agent, for example when the controller's
// connection to the peer is lost. If every connection breaks, the link or the peer is at fault.
Result<ClientResult> measure(const LinkOptions& options) {
  std::vector<std::string> broken;
  while (true) {
    TRY(const int fd, connect_until({options.to, options.port, options.bind, options.connect_seconds}));
    auto result = measure_over(fd, options);
    if (result) {
      result->broken = std::move(broken);
      return result;
    }
    broken.push_back(result.error().message);
    if (result.error().code != Code::unavailable || broken.size() == kMostConnections)
      return fail(result.error().code, fmt::format("{}", fmt::join(broken, "; then ")));
    // The next connection must not reach a server that is still shutting down.
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

void judge_direction(const char* what, const Received& received, const std::string& path, Measurement& out) {
  if (received.wrong_chunks == 0) return;
  out.outcome = Outcome::corrupt;
  if (out.error.empty())
    out.error = fmt::format("{}: {} of {} chunks arrived damaged; the first wrong byte is number {}", what,
                            received.wrong_chunks, received.bytes / kChunk, received.first_wrong);
  out.faulty_parts.push_back("direction " + path);
}

}  // namespace

Measurement run_link(const Files& files, const LinkOptions& given) {
  LinkOptions options = given;
  Measurement out;
  out.check = "link";
  const std::string self = options.bind.empty() ? "here" : options.bind;
  out.detail = {{"to", options.to},
                {"port", options.port},
                {"from", options.bind},
                {"verified", "every byte at its receiver, against a pattern that both ends generate"}};
  const Json port = own_port(files, options.bind);
  if (!port.is_null()) out.detail["own_port"] = port;
  if (options.streams <= 0)
    options.streams = streams_for(port.is_null() ? 0 : port.value("speed_mbps", 0.0), usable_cpus().size());
  auto measured = measure(options);
  if (!measured) {
    const Code code = measured.error().code;
    out.outcome = code == Code::corrupt   ? Outcome::corrupt
                  : code == Code::timeout ? Outcome::failed
                                          : Outcome::unavailable;
    out.error = measured.error().message;
    out.faulty_parts.push_back(fmt::format("link {} - {}", self, options.to));
    return out;
  }
  out.metrics["send_mbps"] = {measured->sent.mbps(), "MB/s"};
  out.metrics["receive_mbps"] = {measured->received.mbps(), "MB/s"};
  out.metrics["rtt_ms"] = {median(measured->rtt), "ms"};
  out.metrics["rtt_p99_ms"] = {percentile(measured->rtt, 0.99), "ms"};
  if (options.streams > 1) {
    out.detail["streams"] = options.streams;
    out.metrics["stream_send_mbps"] = {measured->one_sent.mbps(), "MB/s"};
    out.metrics["stream_receive_mbps"] = {measured->one_received.mbps(), "MB/s"};
  }
  out.detail["sent"] = record_json(measured->sent);
  out.detail["received"] = record_json(measured->received);
  out.detail["retransmits"] = measured->retransmits;
  out.detail["pings"] = measured->rtt.size();
  if (options.turn.turn != Turn::none) out.detail["turn"] = turn_name(measured->turn);
  if (!measured->broken.empty()) out.detail["measured_again_after"] = measured->broken;
  judge_direction("sent data", measured->sent, self + " -> " + options.to, out);
  judge_direction("received data", measured->received, options.to + " -> " + self, out);
  return out;
}

Result<LinkServer> LinkServer::open(LinkServerOptions options) {
  TRY(Listener listener, Listener::open(options.bind, options.port));
  return LinkServer(std::move(options), std::move(listener));
}

Measurement LinkServer::run() {
  Measurement out;
  out.check = "link-serve";
  const double until = seconds_now() + options_.seconds;
  Turns turns;
  std::mutex mutex;  // guards out and sessions
  Json sessions = Json::array();
  listener_.serve_until({until, options_.sessions, options_.from}, [&](int fd, const std::string& from) {
    // Every session gets the server's full time limit from now on: when acceptance is repeated, the client
    // may connect to the previous run's server in that server's last second.
    Connection link(fd, seconds_now() + options_.seconds);
    const auto served = serve(link, options_.flip ? &*options_.flip : nullptr, turns);
    const std::lock_guard lock(mutex);
    sessions.push_back({{"from", from},
                        {"error", served ? "" : served.error().message},
                        {"wrong_chunks", served.value_or(0)}});
    if (served && *served > 0) {
      out.outcome = Outcome::corrupt;
      out.error = fmt::format("{} damaged chunks from {}", *served, from);
      out.faulty_parts.push_back(fmt::format("direction {} -> {}", from, options_.bind));
    }
  });
  out.detail = {{"bind", options_.bind}, {"port", port()}, {"sessions", sessions}};
  return out;
}

}  // namespace muster::kernels
