// PhyApi: the emulated API of a provider of bare metal ("Sakura dedicated server PHY" 1.1) in front of
// machines: power and reinstallation, from its published description and observed behaviour.
//
// handle() is the whole interface: a request in, an answer out. Strict as the original: Basic authentication
// with a 401 of a different format, paths that end in '/', ids of 12 digits, the header X-Requested-With,
// pages of ten, 300 requests an hour for the account (429 with Retry-After), no order to a server with a lock
// (409). An order takes effect after the 204, and its result is not reported: after `os_install` the lock is
// null for a while, then os_install, then null again. Manners are its faults, for tests and `muster lab
// break`. Not emulated: RAID status, graphs, subnets, and everything of the network but what servers show.
// Time passes in handle() and advance() only. Thread: any; one mutex inside, held while a system is
// installed.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/http.h"
#include "base/json.h"
#include "base/time.h"
#include "lab/machine.h"

namespace muster::lab {

struct PhyManners {
  DurationMs power_lag = 8 * kSecond;       // between the 204 and the machine
  DurationMs lock_after = 5 * kSecond;      // between the 204 of an installation and its lock
  DurationMs install_takes = 20 * kSecond;  // as long as the lock is there
  DurationMs list_age = 0;                  // age of lists
  DurationMs cache_every = 60 * kSecond;    // how often the cached power state is refreshed; 0: never
  int quota = 300;                          // requests an hour
  int throttled = 0;                        // number of next requests answered with 429
  DurationMs retry_after = 60 * kSecond;    // of those
  int conflicts = 0;                        // number of next orders answered with 409
  int lost_answers = 0;                     // number of next orders that are carried out, with lost answers
  int lost_orders = 0;            // number of next orders that are not carried out, with lost answers
  int unreadable_power = 0;       // number of next power readings answered with 503
  bool ignores_orders = false;    // 204, and nothing happens
  bool installs_nothing = false;  // lock and all, and the disk is as it was
  bool leaves_off = false;        // the machine is off after an installation
  bool shows_no_lock = false;     // an installation begins and ends between two readings
  bool locked_by_people = false;  // administrative_lock
};

struct PhyMachine {
  std::string id, nickname, address;  // id: 12 digits; address: the IPv4 address in the API
  Machine* machine = nullptr;
  // Writes an image to its disk while it is off, with these keys for its superuser. "" or the reason of a
  // failure.
  std::function<std::string(const std::string& image, const std::vector<std::string>& keys)> install = {};
};

struct PhyImage {
  std::string id, name, superuser = "root";
  bool keys = true, needs_password = false;
};

class PhyApi {
 public:
  using Clock = std::function<TimeMs()>;
  using Images = std::function<std::vector<PhyImage>()>;  // those that it has now
  PhyApi(std::string token, std::string secret, Images images, Clock now);

  void add(PhyMachine machine);
  HttpResponse handle(const HttpRequest& request);
  void advance();  // applies what is due
  void change(const std::function<void(PhyManners&)>& manners);
  int installs(const std::string& id);  // accepted so far
  int orders(const std::string& id);    // power_control accepted so far
  int served();                         // requests, rejected ones too

 private:
  struct Order {
    std::string operation;
    TimeMs due = 0;
  };
  struct Install {
    std::string image;
    std::vector<std::string> keys;
    TimeMs locks = 0, ends = 0;
    bool begun = false;
  };
  struct Server {
    PhyMachine of;
    std::deque<Order> orders;
    std::optional<Install> install;
    std::string remembered;  // power; "" never read
    TimeMs remembered_at = 0;
    int installs = 0, ordered = 0;
  };
  HttpResponse dispatch(const HttpRequest& request);
  std::optional<HttpResponse> stranger(const HttpRequest& request);
  std::optional<HttpResponse> throttle();
  std::optional<HttpResponse> locked(Server& server);
  HttpResponse list(const HttpRequest& request);
  HttpResponse images() const;
  HttpResponse power_status(Server& server);
  HttpResponse power_control(Server& server, const HttpRequest& request);
  HttpResponse os_install(Server& server, const HttpRequest& request);
  HttpResponse accepted(bool lost);
  void advance_locked();
  void pass(Server& server);
  void finish(Server& server);
  void remember(Server& server);
  std::string lock_of(const Server& server) const;
  Json show(const Server& server) const;

  const std::string token_, secret_;
  const Images images_;
  const Clock now_;
  std::mutex mutex_;
  PhyManners manners_;
  std::map<std::string, Server> servers_;
  std::deque<TimeMs> asked_;
  Json listed_;
  TimeMs listed_at_ = 0;
  int served_ = 0;
};

}  // namespace muster::lab
