#include "controller/notices/service/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/json_dump.h"
#include "controller/notices/notice_text.h"
#include "controller/spec/address.h"
#include "controller/spec/apt_origin.h"
#include "sys/http/by_name.h"
#include "sys/http/http.h"
#include "sys/os.h"
#include "sys/own_program.h"

namespace muster {
namespace {

constexpr size_t kMostOutput = 64 << 10;
constexpr size_t kMostText = 4 << 10;  // of an answer
constexpr DurationMs kResolve = 5 * kSecond, kConnect = 10 * kSecond;

struct Url {
  std::string scheme, host, port, target;  // "https", "hooks.example", ":8443" or "", "/services/x"
};

// The URL is not in the messages: it may be a secret.
Result<Url> url_from(const std::string& text) {
  Url out;
  const size_t scheme = text.find("://");
  if (scheme == std::string::npos) return fail(Code::invalid, "the webhook's `url` is not a URL");
  const size_t path = std::min(text.find_first_of("/?", scheme + 3), text.size());
  out.scheme = text.substr(0, scheme);
  out.host = url_host(text.substr(0, path));
  if (out.host.empty()) return fail(Code::invalid, "the webhook's `url` is not an http or https URL");
  out.port = text.substr(scheme + 3 + out.host.size(), path - scheme - 3 - out.host.size());
  out.target = text.substr(path);
  if (out.target.empty() || out.target.front() != '/') out.target.insert(0, "/");
  return out;
}

Result<std::string> address_of(const std::string& host) {
  if (parse_ipv4(host)) return host;
  return first_address(host, kResolve);
}

// Only a connector of Teams says in the text of its answer how it went.
bool says_more(const Webhook& webhook) { return webhook.shape == WebhookShape::teams; }

Result<HttpClientOptions> client_of(const Url& url, const Webhook& webhook) {
  const std::string& proxy = webhook.proxy;
  HttpClientOptions out;
  out.keep_alive = false;
  out.head_only = !says_more(webhook);
  out.connect_timeout = kConnect;
  if (proxy.empty()) {
    TRY(const std::string address, address_of(url.host));
    out.base = url.scheme + "://" + address + url.port;
  } else {
    TRY(const Url of_proxy, url_from(proxy));
    TRY(const std::string address, address_of(of_proxy.host));
    out.proxy = "http://" + address + of_proxy.port;
    out.base = url.scheme + "://" + url.host + url.port;
  }
  if (url.scheme != "https") return out;
  TRY(out.ca_pem, system_roots());
  out.host_name = url.host;
  return out;
}

// True if an answer is about what was posted. The others are about the URL, the credentials, or the moment.
bool refuses(int status) {
  static const std::set<int> others = {401, 403, 404, 405, 407, 408, 410, 429};
  return status / 100 == 4 && !others.count(status);
}

// True if what is in front of a receiver answers for one that is not there.
bool is_away(int status) { return status == 502 || status == 503; }

// 504: what is in front of a receiver passed it on, and had no answer in time.
Code code_of(int status) {
  if (status == 504) return Code::timeout;
  if (is_away(status)) return Code::unavailable;
  return refuses(status) ? Code::conflict : Code::failed;
}

// A connector of Teams answers with 200 when Teams itself did not take the message, whose status is then in
// the text: "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429
// with ContextId ...". A workflow answers with 202 and no text.
int status_in(const std::string& text, int status) {
  constexpr std::string_view failed = "delivery failed with error", number = "HTTP error ";
  if (status / 100 != 2 || text.find(failed) == text.npos) return status;
  const size_t at = text.find(number);
  const int of_teams = at == text.npos ? 0 : std::atoi(text.c_str() + at + number.size());
  return of_teams / 100 == 4 || of_teams / 100 == 5 ? of_teams : 500;
}

Status post(const Webhook& webhook, const notices::Notice& notice, const std::string& cluster) {
  TRY(const Url url, url_from(webhook.url));
  TRY(auto options, client_of(url, webhook));
  TRY(const auto client, make_http_client(std::move(options)));
  HttpRequest request;
  request.method = "POST";
  request.target = url.target;
  request.headers["Host"] = url.host + url.port;
  request.headers["Content-Type"] = "application/json";
  request.headers["Idempotency-Key"] = notice.id;
  for (const auto& [name, value] : webhook.headers) request.headers[name] = value;
  request.body = dump_json(webhook_json(notice, cluster, webhook.shape));
  std::string text;
  const auto read = [&](std::string_view piece) {
    text += piece;
    return text.size() < kMostText;
  };
  TRY(const HttpResponse answer, client->stream(std::move(request), kDelivery, read));
  const int status = says_more(webhook) ? status_in(text, answer.status) : answer.status;
  if (status / 100 == 2) return Ok{};
  // Without the body, which may repeat the URL or a header.
  const Code code = code_of(status);
  return fail(code, fmt::format("{} answers with HTTP {}{}", url.host, status,
                                status == answer.status ? "" : " of Teams"));
}

Status run(Command command, const std::string& what) {
  command.deadline = kDelivery;
  command.max_output = kMostOutput;
  const auto ran = run_ok(*make_process(), command);
  if (!ran.ok()) return Error(ran.error()).with(what);
  return Ok{};
}

}  // namespace

Status deliver(const Receiver& receiver, const notices::Notice& notice, const std::string& cluster,
               const DeliveryPaths& paths) {
  Command command;
  switch (receiver.way) {
    case ReceiverWay::webhook:
      return post(receiver.webhook, notice, cluster);
    case ReceiverWay::mail:
      // -i: a line with a single dot does not end the mail.
      command.argv = {paths.sendmail, "-i"};
      if (!receiver.mail.from.empty()) command.argv.insert(command.argv.end(), {"-f", receiver.mail.from});
      command.argv.push_back("--");
      command.argv.insert(command.argv.end(), receiver.mail.to.begin(), receiver.mail.to.end());
      command.input = mail_of(notice, cluster, receiver.mail);
      return run(std::move(command), "sendmail");
    case ReceiverWay::program:
      TRY_(must_be_own_program(paths.programs, receiver.program));
      command.argv = {paths.programs + "/" + receiver.program};
      command.input = dump_json(plain_json(notice, cluster)) + "\n";
      return run(std::move(command), receiver.program);
  }
  return fail(Code::invalid, "a receiver without a way to reach it");
}

}  // namespace muster
