#include "agent/link/http_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/digest.h"
#include "base/json_dump.h"
#include "sys/contain.h"
#include "sys/http/http.h"
#include "sys/log.h"
#include "sys/pki.h"

namespace muster {
namespace {

constexpr DurationMs kPollDeadline = 40 * kSecond, kPostDeadline = 30 * kSecond;

HttpClientOptions client_options(const std::string& url, const Credentials& credentials) {
  HttpClientOptions options;
  options.base = url;
  options.ca_pem = credentials.ca_pem;
  options.certificate_pem = credentials.certificate_pem;
  options.key_pem = credentials.key_pem;
  // The clock of a new machine may be wrong; the pinned CA, which is the controller's own, is sufficient.
  options.ignore_certificate_times = true;
  return options;
}

Result<Json> answer_json(const HttpResponse& response, const std::string& what) {
  if (response.status == 401 || response.status == 403)
    return fail(Code::denied, fmt::format("{}: {} {}", what, response.status, response.body.substr(0, 200)));
  if (response.status == 409 || response.status == 400)
    return fail(response.status == 409 ? Code::conflict : Code::invalid,
                fmt::format("{}: {} {}", what, response.status, response.body.substr(0, 200)));
  if (response.status != 200)
    return fail(Code::unavailable, fmt::format("{}: status {}", what, response.status));
  return parse_json(response.body);
}

// One HTTP client and the thread that blocks in it. Jobs run in order.
class Lane {
 public:
  explicit Lane(std::unique_ptr<HttpClient> client)
      : client_(std::move(client)), thread_([this] { work(); }) {}
  // Waits for the call in progress, at most until its deadline.
  ~Lane() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  // Takes effect with the next job.
  void replace(std::unique_ptr<HttpClient> client) {
    const std::lock_guard lock(mutex_);
    next_ = std::move(client);
  }
  void submit(std::function<void(HttpClient&)> job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_all();
  }

 private:
  void work() {
    for (;;) {
      std::function<void(HttpClient&)> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
        if (stop_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
        if (next_) client_ = std::move(next_);
      }
      job(*client_);
    }
  }

  std::unique_ptr<HttpClient> client_, next_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void(HttpClient&)>> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

Result<wire::PollReply> poll_orders(HttpClient& client, const std::string& target) {
  HttpRequest request;
  request.target = target;
  TRY(const HttpResponse response, client.request(request, kPollDeadline));
  TRY(const Json json, answer_json(response, "orders"));
  return wire::poll_reply_from_json(json);
}

Result<uint64_t> post_events(HttpClient& client, const std::string& body) {
  HttpRequest request;
  request.method = "POST";
  request.target = "/agent/v1/events";
  request.headers["Content-Type"] = "application/json";
  request.body = body;
  TRY(const HttpResponse response, client.request(request, kPostDeadline));
  TRY(const Json json, answer_json(response, "events"));
  const auto it = json.find("ack");
  if (it == json.end() || !it->is_number_unsigned())
    return fail(Code::invalid, "events: the response contains no `ack`");
  return it->get<uint64_t>();
}

Result<wire::JoinReply> request_certificate(HttpClient& client, const std::string& verb, const Json& message,
                                            const std::string& query = "") {
  HttpRequest request;
  request.method = "POST";
  request.target = "/agent/v1/" + verb + query;
  request.headers["Content-Type"] = "application/json";
  request.body = dump_json(message);
  TRY(const HttpResponse response, client.request(request, kPostDeadline));
  TRY(const Json json, answer_json(response, verb));
  return wire::join_reply_from_json(json);
}

// The connection was verified with a trusted CA; the received one is checked as well, because it is stored.
Result<Credentials> checked(const wire::JoinReply& reply, const std::string& key_pem,
                            const std::string& csr_pem, const std::vector<std::string>& trusted) {
  TRY(const std::string ca, pki::certificate_fingerprint(reply.ca_pem));
  if (std::find(trusted.begin(), trusted.end(), ca) == trusted.end())
    return fail(Code::denied, "the controller's CA differs from the pinned one");
  TRY(const std::string ours, pki::public_key_fingerprint(csr_pem));
  TRY(const std::string theirs, pki::public_key_fingerprint(reply.certificate_pem));
  if (ours != theirs) return fail(Code::denied, "the controller returned a certificate for a different key");
  return Credentials{key_pem, reply.certificate_pem, reply.ca_pem};
}

// "?ca=..." for the controller; "" if there is nothing to report.
std::string trusts_query(char separator, const std::string& trusts) {
  return trusts.empty() ? "" : fmt::format("{}{}={}", separator, wire::kTrusts, query_value(trusts));
}

class HttpLink : public RenewableLink {
 public:
  HttpLink(Reactor& reactor, std::string url, std::unique_ptr<HttpClient> polls,
           std::unique_ptr<HttpClient> posts, const AgentIdentity& identity,
           std::function<std::string()> storage)
      : reactor_(reactor),
        url_(std::move(url)),
        poll_path_("/agent/v1/orders?boot=" + query_value(identity.boot_id) +
                   "&mode=" + std::string(wire::to_string(identity.mode)) + "&image=" +
                   query_value(identity.image_digest) + "&slot=" + query_value(identity.slot) + "&have="),
        on_trial_(identity.on_trial),
        storage_(std::move(storage)),
        polls_(std::move(polls)),
        posts_(std::move(posts)) {}

  void poll(const std::vector<std::string>& have, Orders done) override {
    std::string target = poll_path_;
    for (size_t i = 0; i < have.size(); ++i) target += (i ? "," : "") + query_value(have[i]);
    target += trusts_query('&', trusts_);
    polls_.submit([this, target, done = std::move(done)](HttpClient& client) {
      Result<wire::PollReply> reply = fail(Code::invalid, "invalid response: see the agent's log");
      contain_exceptions("an answer with orders", [&] {
        reply = poll_orders(client, target + (on_trial_ && on_trial_() ? "&trial=1" : "") +
                                        (storage_ ? "&storage=" + query_value(storage_()) : ""));
      });
      reactor_.post([this, done, reply = std::move(reply)] {
        if (reply.ok() && reply->renew && renew_) renew_();
        done(reply);
      });
    });
  }

  void post(const wire::EventBatch& batch, Acked done) override {
    // Output of tools may contain any bytes; bytes that are not UTF-8 are replaced.
    std::string body = dump_json(wire::to_json(batch));
    posts_.submit([this, body = std::move(body), done = std::move(done)](HttpClient& client) {
      Result<uint64_t> ack = fail(Code::invalid, "invalid response: see the agent's log");
      contain_exceptions("an answer to events", [&] { ack = post_events(client, body); });
      reactor_.post([done, ack] { done(ack); });
    });
  }

  Status use(const Credentials& credentials) override {
    TRY(auto polls, make_http_client(client_options(url_, credentials)));
    TRY(auto posts, make_http_client(client_options(url_, credentials)));
    polls_.replace(std::move(polls));
    posts_.replace(std::move(posts));
    report(credentials);
    return Ok{};
  }

  void on_renew(std::function<void()> renew) override { renew_ = std::move(renew); }
  void report(const Credentials& in_use) { trusts_ = trust_of(in_use); }

 private:
  Reactor& reactor_;
  std::string url_, poll_path_, trusts_;
  std::function<void()> renew_;
  std::function<bool()> on_trial_;  // these two outlive the lanes, which call them
  std::function<std::string()> storage_;
  Lane polls_, posts_;
};

}  // namespace

bool renewal_due(const std::string& certificate_pem, TimeMs now) {
  const auto info = pki::read_certificate(certificate_pem);
  return info.ok() && now > info->not_before + (info->not_after - info->not_before) / 3 * 2;
}

Renewal::Renewal(RealReactor& reactor, const Files& files, RenewableLink& link, std::string folder,
                 AgentConfig config)
    : reactor_(reactor), files_(files), link_(link), folder_(std::move(folder)), config_(std::move(config)) {}

void Renewal::look() {
  reactor_.after(kDay, [this] { look(); });
  link_.on_renew([this] { renew_soon(); });
  const auto present = read_credentials(files_, folder_);
  if (!present.ok()) return;
  keep_pin(present->ca_pem);  // the agent may have been killed between the two
  if (!busy_ && renewal_due(present->certificate_pem, reactor_.now())) begin(*present);
}

void Renewal::renew_soon() {
  if (busy_ || (begun_ && reactor_.steady() - begun_ < kMinute)) return;
  if (const auto present = read_credentials(files_, folder_); present.ok()) begin(*present);
}

void Renewal::begin(const Credentials& present) {
  busy_ = true;
  begun_ = reactor_.steady();
  auto fresh = std::make_shared<Result<Credentials>>(fail(Code::failed, "not requested"));
  reactor_.offload([this, present, fresh] { *fresh = renew(config_.url, config_.node, present); },
                   [this, fresh] {
                     busy_ = false;
                     keep(*fresh);
                   });
}

// By the pin an adoption recognises the controller.
void Renewal::keep_pin(const std::string& ca_pem) const {
  auto config = read_config(files_, folder_);
  if (!config.ok()) return;  // without the file there is no pin
  const auto pin = pki::certificate_fingerprint(ca_pem);
  if (pin.ok() && config->ca_pin == *pin) return;
  if (pin.ok()) config->ca_pin = *pin;
  const Status kept = pin.ok() ? write_config(files_, folder_, *config) : Status(pin.error());
  if (!kept.ok())
    log::warning("the pin of the controller's CA could not be updated", {{"error", kept.error().message}});
}

void Renewal::keep(const Result<Credentials>& fresh) {
  const Status kept = fresh.ok() ? write_credentials(files_, folder_, *fresh) : Status(fresh.error());
  if (!kept.ok())
    return log::warning("the certificate could not be renewed", {{"error", kept.error().message}});
  keep_pin(fresh->ca_pem);
  // The new certificate is on the disk, and the old one is valid for another third of its lifetime: the agent
  // uses the new one after its next start.
  const Status used = link_.use(*fresh);
  if (used.ok())
    log::info("certificate renewed", {{"node", config_.node}});
  else
    log::warning("certificate renewed, but the link uses the old one until the agent restarts",
                 {{"error", used.error().message}});
}

Result<std::string> normal_pin(const std::string& pin) {
  const std::string hex = pin.starts_with("sha256:") ? pin.substr(7) : pin;
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return fail(Code::invalid, "the pin must be a SHA-256 digest in lower-case hexadecimal");
  return "sha256:" + hex;
}

std::string query_value(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    if (isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~')
      out += static_cast<char>(c);
    else
      out += fmt::format("%{:02X}", c);
  }
  return out;
}

Result<Credentials> join(const JoinOptions& options, std::string* node) {
  wire::JoinRequest message = options.request;
  TRY(message.csr_pem, pki::make_csr(options.key_pem, message.node));
  TRY(const std::string pin, normal_pin(options.pin));
  HttpClientOptions client_settings;
  client_settings.base = options.url;
  client_settings.pin_sha256 = pin;
  client_settings.peer_organization =
      kControllerOrganization;  // other nodes have certificates of the same CA
  client_settings.ignore_certificate_times = true;
  client_settings.reserved_port = true;
  TRY(auto client, make_http_client(client_settings));
  TRY(const wire::JoinReply reply, request_certificate(*client, "join", wire::to_json(message)));
  if (node) *node = reply.node;
  return checked(reply, options.key_pem, message.csr_pem, {pin});
}

Result<Credentials> renew(const std::string& url, const std::string& node, const Credentials& present) {
  TRY(const std::string csr, pki::make_csr(present.key_pem, node));
  TRY(const auto trusted, pki::certificate_fingerprints(present.ca_pem));
  TRY(auto client, make_http_client(client_options(url, present)));
  TRY(const wire::JoinReply reply,
      request_certificate(*client, "renew", {{"csr_pem", csr}}, trusts_query('?', trust_of(present))));
  return checked(reply, present.key_pem, csr, trusted);
}

std::string trust_of(const Credentials& credentials) {
  const size_t last = credentials.ca_pem.rfind("-----BEGIN CERTIFICATE-----");
  const auto own = pki::read_certificate(credentials.certificate_pem);
  if (last == std::string::npos || !own.ok()) return "";
  // At the time of its making, as this machine's clock may be wrong.
  const bool of_last = pki::verify_certificate(credentials.ca_pem.substr(last), credentials.certificate_pem,
                                               own->not_before + kDay)
                           .ok();
  return of_last ? sha256(credentials.ca_pem) : "incomplete";
}

Result<std::unique_ptr<RenewableLink>> make_http_link(Reactor& reactor, const std::string& url,
                                                      const Credentials& credentials,
                                                      const AgentIdentity& identity,
                                                      std::function<std::string()> storage) {
  TRY(auto polls, make_http_client(client_options(url, credentials)));
  TRY(auto posts, make_http_client(client_options(url, credentials)));
  auto link = std::make_unique<HttpLink>(reactor, url, std::move(polls), std::move(posts), identity,
                                         std::move(storage));
  link->report(credentials);
  return std::unique_ptr<RenewableLink>(std::move(link));
}

}  // namespace muster
