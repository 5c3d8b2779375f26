#include "controller/power/sakura/phy_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/digest.h"
#include "base/json.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "sys/http/by_name.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr const char* kHost = "secure.sakura.ad.jp";
constexpr const char* kBase = "/cloud/api/dedicated-phy/1.0/";
constexpr size_t kMaxAnswer = 8 << 20, kPage = 100, kMaxPages = 50;
constexpr DurationMs kRefusalHolds = 10 * kMinute;
constexpr DurationMs kUnsaid = 15 * kMinute;  // after a 429 without a Retry-After

const Json& at(const Json& json, const char* key) {
  static const Json nothing;
  if (!json.is_object()) return nothing;
  const auto found = json.find(key);
  return found == json.end() ? nothing : *found;
}

PhyServer server_from(const Json& json) {
  PhyServer out;
  out.id = text_at(json, "server_id");
  out.service = text_at(at(json, "service"), "service_id");
  out.nickname = text_at(at(json, "service"), "nickname");
  const Json& lock = at(json, "lock_status");
  // If it is neither text nor null, treat it as an unknown lock.
  out.lock = lock.is_null() ? "" : lock.is_string() ? lock.get<std::string>() : "unreadable";
  out.power = text_at(at(json, "cached_power_status"), "status");
  out.address = text_at(at(json, "ipv4"), "ip_address");
  out.raw = json;
  return out;
}

// Returns the fields of the body that a 400 response rejects.
std::string invalid_fields(const Json& body) {
  const Json& fields = at(body, "invalid_parameters");
  std::string out;
  if (!fields.is_object()) return out;
  for (const auto& [field, problems] : fields.items()) {
    if (!problems.is_array()) continue;
    for (const Json& problem : problems)
      out += fmt::format("{}{}: {} {}", out.empty() ? "" : "; ", field, text_at(problem, "code"),
                         text_at(problem, "message"));
  }
  return out;
}

}  // namespace

std::optional<PhyLock> phy_lock(const PhyServer& server) {
  if (server.lock.empty()) return std::nullopt;
  if (server.lock == "administrative_lock")
    return PhyLock{Code::denied,
                   "the provider's staff are working on the machine (administrative_lock), which accepts no "
                   "orders until the work ends: ask the provider when that will be, then run this again"};
  const std::string what = server.lock == "os_install"       ? "its operating system is being installed"
                           : server.lock == "configure_raid" ? "its RAID is being configured"
                                                             : "an operation of the provider is running";
  return PhyLock{Code::unavailable,
                 fmt::format("{} (lock {}); the machine accepts no orders until the lock is released", what,
                             std::string(first_bytes(server.lock, 40)))};
}

int PhyAccount::requests() const {
  const std::lock_guard hold(budget_mutex_);
  return requests_;
}

// Waits until the budget allows a request, or until `end`.
Status PhyAccount::take(bool for_order, TimeMs end) {
  for (;;) {
    DurationMs wait = 0;
    {
      const std::lock_guard hold(budget_mutex_);
      const TimeMs at = now();
      if (at < refused_until_)
        return fail(Code::denied, fmt::format("the API rejected the account's token; update it with "
                                              "`muster secret set` (next attempt in {})",
                                              to_human(refused_until_ - at)));
      if (const DurationMs blocked = budget_.blocked(); blocked > 0)
        return fail(Code::unavailable,
                    fmt::format("the account's quota is used up; the API accepts no request for {} (429)",
                                to_human(blocked)));
      wait = budget_.take(for_order);
      if (wait == 0) {
        ++requests_;
        return Ok{};
      }
    }
    if (now() + wait >= end)
      return fail(Code::unavailable, fmt::format("this account's budget of requests (300 an hour for all its "
                                                 "servers) is used up; the next one can be sent in {}",
                                                 to_human(wait)));
    options_.waiter.sleep(wait);
  }
}

Status PhyAccount::connect(DurationMs deadline) {
  if (http_) return Ok{};
  HttpClientOptions client;
  client.max_answer = kMaxAnswer;
  if (options_.api.empty()) {
    TRY(client.ca_pem, system_roots());
    TRY(const std::string address, first_address(kHost, deadline));
    client.base = "https://" + address;
    client.host_name = kHost;
  } else {
    client.base = "https://" + options_.api;
    if (pin_.empty()) {  // connects without sending the token, so that an unverified peer does not get it
      client.insecure_first_use = true;
      TRY(auto unpinned, make_http_client(client));
      HttpRequest hello;
      hello.target = kBase;
      TRY_(unpinned->request(std::move(hello), deadline));
      pin_ = unpinned->peer_fingerprint();
      client.insecure_first_use = false;
    }
    client.pin_sha256 = pin_;
  }
  client.basic_user = options_.token;
  client.basic_password = options_.secret;
  client.keep_alive = false;  // minutes pass between two requests
  TRY(http_, make_http_client(std::move(client)));
  return Ok{};
}

Result<PhyAccount::Answer> PhyAccount::exchange(const std::string& method, const std::string& path,
                                                const Json& body, bool for_order, DurationMs deadline,
                                                const MaySend& may_send) {
  const TimeMs end = now() + deadline;
  const std::string what = fmt::format("{} {}", method, path);
  if (const Status turn = take(for_order, end); !turn.ok()) return Error(turn.error()).with(what);
  const std::lock_guard hold(line_mutex_);
  const DurationMs left = std::min(end - now(), kRequest);
  if (left <= 0) return fail(Code::unavailable, what + ": no time left");
  TRY_(connect(left));
  HttpRequest request;
  request.method = method;
  request.target = kBase + path;
  request.headers["Accept"] = "application/json";
  request.headers["X-Requested-With"] = "XMLHttpRequest";
  if (!body.is_null()) {
    request.headers["Content-Type"] = "application/json";
    request.body = dump_json(body);
  }
  if (may_send && !may_send())
    return fail(Code::cancelled, what + ": no longer needed; the request was not sent");
  auto response = http_->request(std::move(request), left);
  if (!response.ok()) {
    Error error = std::move(response).error();
    if (error.code != Code::timeout) http_.reset();  // the name may resolve to a different address now
    if (method == "GET" && error.code == Code::timeout) error.code = Code::unavailable;
    if (method != "GET" && error.code == Code::failed) error.code = Code::timeout;  // too large an answer
    return std::move(error).with(what);
  }
  Answer answer{response->status, parse_json(response->body).value_or(nullptr), 0};
  const auto after = response->headers.find("Retry-After");
  if (after != response->headers.end() && !after->second.empty() && after->second.size() < 7 &&
      after->second.find_first_not_of("0123456789") == std::string::npos)
    answer.retry_after = std::stol(after->second) * kSecond;
  return answer;
}

// Masks the token and its secret, since a response may repeat the request.
std::string PhyAccount::clean(std::string text) const {
  for (const std::string& secret : {options_.secret, options_.token})
    for (size_t found = 0; !secret.empty() && (found = text.find(secret, found)) != std::string::npos;
         found += 3)
      text.replace(found, secret.size(), "***");
  return printable(first_bytes(text, 400));
}

// A 401 has a different structure, in which `status` is a string.
Error PhyAccount::refusal(const Answer& answer, const std::string& what) {
  const int status = answer.status;
  std::string said = text_at(answer.body, "title");
  if (said.empty()) said = text_at(answer.body, "error_code");
  for (const std::string& more :
       {text_at(answer.body, "detail"), text_at(answer.body, "error_msg"), invalid_fields(answer.body)})
    if (!more.empty()) said += (said.empty() ? "" : ", ") + more;
  const std::string says =
      fmt::format("{}: the API returned {}{}{}", what, status, said.empty() ? "" : " ", clean(said));
  const std::lock_guard hold(budget_mutex_);
  switch (status) {
    case 401:
    case 403:
      refused_until_ = now() + kRefusalHolds;
      return fail(Code::denied, says + ": the account's token is wrong: correct it with `muster secret set`");
    case 404:
      return fail(Code::not_found, says + ": the account has no such server or image");
    case 409:
      return fail(Code::conflict,
                  says + ": an operation that muster did not start is running on this server");
    case 429: {
      const DurationMs span =
          answer.retry_after > 0 ? std::min(answer.retry_after, PhyBudget::kLongestBlock) : kUnsaid;
      budget_.block(span);
      return fail(
          Code::unavailable,
          fmt::format("{}: the account's quota is used up; no request is sent for {}", says, to_human(span)));
    }
    case 503:
      return fail(Code::unavailable, says + ": the machine's hardware did not respond to the provider");
    case 400:
    case 422:
      return fail(Code::invalid, says);
    default:
      break;
  }
  // An error of the API or of a gateway in front of it. A read may be retried; for orders see post().
  return fail(status / 100 == 5 ? Code::unavailable : Code::failed, says);
}

Result<std::vector<PhyServer>> PhyAccount::servers(const PhyQuery& request) {
  const TimeMs end = now() + request.deadline;
  const std::lock_guard hold(list_mutex_);
  if (listed_ >= 0 && now() - listed_ <= request.max_age) return list_;
  std::vector<PhyServer> found;
  for (size_t page = 0; page < kMaxPages; ++page) {
    const std::string path = fmt::format("servers/?limit={}&offset={}", kPage, found.size());
    TRY(const Answer answer, exchange("GET", path, nullptr, request.for_order, end - now()));
    if (answer.status != 200) return refusal(answer, "GET " + path);
    const Json& servers = at(answer.body, "servers");
    if (!servers.is_array())
      return fail(Code::failed, "GET " + path + ": the response contains no list of servers");
    for (const Json& server : servers) found.push_back(server_from(server));
    const Json& count = at(at(answer.body, "meta"), "count");
    if (servers.empty() || !count.is_number_integer() ||
        found.size() >= static_cast<size_t>(std::max<int64_t>(0, count.get<int64_t>())))
      break;
  }
  list_ = std::move(found);
  listed_ = now();
  return list_;
}

Result<PhyServer> PhyAccount::server(const std::string& name, const PhyQuery& request) {
  TRY(const auto all, servers(request));
  const PhyServer* found = nullptr;
  int alike = 0;
  for (const PhyServer& one : all) {
    if (one.id == name) return one;
    if (one.nickname == name) found = &one, ++alike;
  }
  if (alike == 1) return *found;
  if (alike > 1)
    return fail(
        Code::invalid,
        fmt::format(
            "{} servers of the account have the nickname '{}': use the server's id (12 digits) instead",
            alike, name));
  std::string known;
  for (size_t i = 0; i < all.size() && i < 8; ++i)
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", all[i].id, clean(all[i].nickname));
  return fail(Code::not_found, fmt::format("the account has no server '{}'; it has {}{}", name,
                                           known.empty() ? "none" : known, all.size() > 8 ? ", ..." : ""));
}

Result<Json> PhyAccount::get(const std::string& id, const std::string& path, const PhyQuery& request) {
  const std::string full = fmt::format("servers/{}/{}", id, path);
  TRY(Answer answer, exchange("GET", full, nullptr, request.for_order, request.deadline));
  if (answer.status != 200) return refusal(answer, "GET " + full);
  return std::move(answer.body);
}

Status PhyAccount::post(const std::string& id, const std::string& path, const Json& body, DurationMs deadline,
                        const MaySend& may_send) {
  const std::string full = fmt::format("servers/{}/{}", id, path);
  {
    const std::lock_guard hold(budget_mutex_);
    looks_.erase(id);
  }
  TRY(const Answer answer, exchange("POST", full, body, true, deadline, may_send));
  if (answer.status / 100 == 2) return Ok{};
  if (answer.status == 409) {  // the list shows no lock, and is outdated
    const std::lock_guard hold(list_mutex_);
    listed_ = -1;
  }
  // If the server failed during the request, it is unknown whether the order took effect.
  Error error = refusal(answer, "POST " + full);
  if (answer.status / 100 == 5 && answer.status != 503) error.code = Code::timeout;
  return error;
}

Result<std::string> PhyAccount::power(const PhyServer& server, const PhyQuery& request) {
  {
    const std::lock_guard hold(budget_mutex_);
    const auto last = looks_.find(server.id);
    if (last != looks_.end() && now() - last->second.at <= request.max_age &&
        last->second.remembered == server.power)
      return last->second.power;
  }
  const std::string path = fmt::format("servers/{}/power_status/", server.id);
  TRY(const Answer answer, exchange("GET", path, nullptr, request.for_order, request.deadline));
  if (answer.status == 503) return std::string();
  if (answer.status != 200) return refusal(answer, "GET " + path);
  const std::string status = text_at(at(answer.body, "power_status"), "status");
  const std::lock_guard hold(budget_mutex_);
  looks_[server.id] = {status == "on" || status == "off" ? status : "", server.power, now()};
  return looks_[server.id].power;
}

// An account whose secret changed becomes a separate object, but uses the same budget file.
std::shared_ptr<PhyAccount> PhyAccounts::of(const std::string& api, const std::string& token,
                                            const std::string& secret, const std::string& folder) {
  const std::string digest = sha256(api + "\n" + token + "\n" + secret);
  const std::lock_guard hold(mutex_);
  auto& account = by_digest_[digest];
  if (account) return account;
  const std::string name = "phy-budget-" + sha256(api + "\n" + token).substr(0, 16) + ".json";
  account =
      std::make_shared<PhyAccount>(PhyAccount::Options{api, token, secret, waiter_, of_day_, folder, name});
  return account;
}

namespace {

// Longer than it takes to fill the whole bucket.
constexpr DurationMs kLongest = 60 * kMinute;

double filled_in(DurationMs span) {
  return static_cast<double>(span) * PhyBudget::kPerMinute / static_cast<double>(kMinute);
}

}  // namespace

PhyBudget::PhyBudget(Options options) : options_(std::move(options)), filled_(options_.now()) { load(); }

void PhyBudget::fill() {
  const TimeMs at = options_.now();
  left_ = std::min<double>(kBurst, left_ + filled_in(at - filled_));
  filled_ = at;
}

DurationMs PhyBudget::take(bool for_order) {
  fill();
  const double needed = for_order ? 1 : 1 + kForOrders;
  if (left_ < needed) return static_cast<DurationMs>(std::ceil((needed - left_) * kMinute / kPerMinute));
  left_ -= 1;
  keep();
  return 0;
}

void PhyBudget::block(DurationMs span) {
  blocked_until_ = std::max(blocked_until_, options_.now() + std::min(span, kLongestBlock));
  keep();
}

DurationMs PhyBudget::blocked() const { return std::max<DurationMs>(0, blocked_until_ - options_.now()); }

void PhyBudget::load() {
  if (options_.folder.empty()) return;
  const auto text = Files(options_.folder).read("/" + options_.name);
  if (!text.ok() && text.error().code == Code::not_found) return;
  left_ = kForOrders;
  const auto kept = text.ok() ? parse_json(*text) : Result<Json>(text.error());
  const auto number = [&](const char* key) {
    const bool there = kept.ok() && kept->is_object() && kept->contains(key) && kept->at(key).is_number();
    return there ? kept->at(key).get<double>() : -1.0;
  };
  const double left = number("left"), at = number("at"), blocked_until = number("blocked_until");
  if (!(left >= 0 && left <= kBurst && at >= 0 && blocked_until >= 0))
    return log::warning("the stored remaining request quota cannot be read: requests are delayed",
                        {{"file", options_.name}});
  const auto now = static_cast<double>(options_.of_day());
  const auto span = [](double ms, DurationMs longest) {
    return static_cast<DurationMs>(std::clamp(ms, 0.0, static_cast<double>(longest)));
  };
  left_ = std::min<double>(kBurst, left + filled_in(span(now - at, kLongest)));
  blocked_until_ = options_.now() + span(blocked_until - now, kLongestBlock);
}

void PhyBudget::keep() {
  if (options_.folder.empty()) return;
  const TimeMs now = options_.of_day();
  const Json kept = {
      {"left", left_}, {"at", now}, {"blocked_until", blocked() > 0 ? now + blocked() : TimeMs{0}}};
  const auto written = Files(options_.folder).write("/" + options_.name, dump_json(kept) + "\n", 0600);
  if (!written.ok() && !complained_)
    log::error("the remaining request quota could not be stored", {{"error", written.error().message}});
  complained_ = !written.ok();
}

}  // namespace muster
