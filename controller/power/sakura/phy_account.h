// PhyAccount: one account of the provider's API ("Sakura dedicated server PHY" 1.1), shared by all nodes
// whose servers are in it: the list of servers, the request budget, and the interpretation of responses.
//
// The provider allows an account 300 requests an hour for all its servers together. So a server's lock is
// read from the list of servers, which takes one request and is reused within `max_age`; PhyBudget limits the
// rate. After a 429 nothing is sent for the time that it specifies. A rejected token is not sent again for
// ten minutes. The API cannot distinguish a call from its repetition: a POST without a response is
// Code::timeout and is never repeated by this class. Other codes: `unavailable` nothing was done (budget,
// 429, 503, a temporary lock); `denied` token rejected, or the provider's staff are working on the machine;
// `conflict` another operation runs on this server; `not_found`; `invalid`. The token's secret never appears
// in a message, even if the API returns it. Responses may be hostile: size and depth are limited, unknown
// enumeration values are passed through. Thread: any; requests of one account are serialized.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "controller/power/waiter.h"
#include "sys/http/http.h"

namespace muster {

// PhyBudget: how many requests an account of the provider may still send; the count survives restarts of the
// controller.
//
// A token bucket of kBurst requests, refilled at kPerMinute: fewer than 300 in any hour. The last kForOrders
// are reserved for orders, so that reads never use up the requests needed to act. The remainder (before a
// request is sent) and a refusal (429) are written to the file `name`: restarts do not lead to more requests.
// Without a file this controller never used the account; with an unreadable one, past use is unknown: only
// the share for orders is available, and reads wait. A clock set back refills nothing; one set ahead, at most
// the bucket. Thread: one at a time; blocks while a small file is written.

class PhyBudget {
 public:
  static constexpr int kBurst = 60, kPerMinute = 4, kForOrders = 20;
  static constexpr DurationMs kLongestBlock = 2 * 60 * kMinute;

  struct Options {
    std::string folder, name;        // folder "": not kept
    std::function<TimeMs()> now;     // monotonic
    std::function<TimeMs()> of_day;  // wall clock, comparable across restarts
  };
  explicit PhyBudget(Options options);

  // Takes one request and returns 0; or returns the time until one is available for this purpose.
  DurationMs take(bool for_order);
  // Records that the provider accepts no requests for this time; see blocked().
  void block(DurationMs span);
  DurationMs blocked() const;

 private:
  void fill();
  void load();
  void keep();

  const Options options_;
  double left_ = kBurst;
  TimeMs filled_ = 0, blocked_until_ = 0;
  bool complained_ = false;  // logged that the file cannot be written
};

struct PhyServer {
  std::string id, service, nickname;
  std::string lock;     // "" none, "os_install", "configure_raid", "administrative_lock", or a newer value
  std::string power;    // cached by the API, may be old: "on", "off", ""
  std::string address;  // its IPv4 address; "" none
  Json raw;             // all of it
};

// Purpose of a request (for an order, or only a read), and how old a cached response may be.
struct PhyQuery {
  bool for_order = false;
  DurationMs max_age = 0, deadline = 0;
};

// nullopt: the server accepts orders. Else why not, what to do, and whether that is temporary.
struct PhyLock {
  Code code = Code::unavailable;
  std::string words;
};
std::optional<PhyLock> phy_lock(const PhyServer& server);

class PhyAccount {
 public:
  struct Options {
    std::string api;  // "": the provider's; "10.20.1.250:443": a substitute at this address
    std::string token, secret;
    Waiter waiter;
    std::function<TimeMs()> of_day;
    std::string folder, budget;  // folder and file of its budget; folder "": not kept
  };
  static constexpr int kBurst = PhyBudget::kBurst, kPerMinute = PhyBudget::kPerMinute;
  static constexpr DurationMs kRequest = 30 * kSecond;

  explicit PhyAccount(Options options)
      : options_(std::move(options)),
        budget_({options_.folder, options_.budget, options_.waiter.now, options_.of_day}) {}

  Result<std::vector<PhyServer>> servers(const PhyQuery& request);
  // Returns the server with this id or unique nickname.
  Result<PhyServer> server(const std::string& name, const PhyQuery& request);
  // GET servers/ID/PATH; 200 or an Error.
  Result<Json> get(const std::string& id, const std::string& path, const PhyQuery& request);
  // POST servers/ID/PATH; Ok: 2xx, the operation was begun; its result is unknown. `may_send` is called when
  // all waiting is over and the connection made, right before the request is written: if false, nothing is
  // sent (Code::cancelled).
  using MaySend = std::function<bool()>;
  Status post(const std::string& id, const std::string& path, const Json& body, DurationMs deadline,
              const MaySend& may_send = {});
  // Returns the power state that the hardware reports: "on", "off", "" if it did not respond to the API. An
  // earlier reading is reused unless the list contradicts it.
  Result<std::string> power(const PhyServer& server, const PhyQuery& request);

  int requests() const;  // sent so far

 private:
  struct Answer {
    int status = 0;
    Json body;
    DurationMs retry_after = 0;
  };
  struct Look {
    std::string power, remembered;
    TimeMs at = 0;
  };
  Status take(bool for_order, TimeMs end);
  Status connect(DurationMs deadline);
  Result<Answer> exchange(const std::string& method, const std::string& path, const Json& body,
                          bool for_order, DurationMs deadline, const MaySend& may_send = {});
  Error refusal(const Answer& answer, const std::string& what);
  std::string clean(std::string text) const;
  TimeMs now() const { return options_.waiter.now(); }

  const Options options_;
  mutable std::mutex budget_mutex_;  // protects the members down to requests_
  PhyBudget budget_;
  TimeMs refused_until_ = 0;  // after a 401
  int requests_ = 0;
  std::map<std::string, Look> looks_;
  std::mutex line_mutex_;  // one request at a time
  std::unique_ptr<HttpClient> http_;
  std::string pin_;  // certificate pin of a substitute
  std::mutex list_mutex_;
  std::vector<PhyServer> list_;
  TimeMs listed_ = -1;
};

// The accounts of this process, by API and token. Thread: any.
class PhyAccounts {
 public:
  PhyAccounts(Waiter waiter, std::function<TimeMs()> of_day)
      : waiter_(std::move(waiter)), of_day_(std::move(of_day)) {}
  // Returns the account. `folder`: where its remaining budget is kept; "": not kept.
  std::shared_ptr<PhyAccount> of(const std::string& api, const std::string& token, const std::string& secret,
                                 const std::string& folder);

 private:
  const Waiter waiter_;
  const std::function<TimeMs()> of_day_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<PhyAccount>> by_digest_;
};

}  // namespace muster
