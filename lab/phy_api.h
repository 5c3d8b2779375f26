// PhyApi: an emulation of a bare-metal provider's API ("Sakura dedicated server PHY" 1.1) for the power and
// reinstallation of lab machines, based on its published description and on observed behaviour.
//
// handle() takes a request and returns the response. It is as strict as the real API: Basic authentication
// (a 401 has a different format), paths that end in '/', 12-digit ids, the X-Requested-With header, pages of
// ten entries, 300 requests per hour and account (429 with Retry-After), 409 for orders to a locked server.
// An order takes effect after the 204 response, and its result is not reported: after `os_install` the lock
// is null for a while, then os_install, then null again. PhyManners configures timing and faults, for tests
// and `muster lab break`. Not emulated: RAID status, graphs, subnets, and network settings other than those
// in a server's resource. Time advances only in handle() and advance(). Thread-safe (one mutex, also held
// during an installation).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "lab/machine.h"
#include "sys/http/http.h"

namespace muster::lab {

struct PhyManners {
  DurationMs power_lag = 8 * kSecond;       // from the 204 until the machine changes
  DurationMs lock_after = 5 * kSecond;      // from the 204 of an installation until its lock is set
  DurationMs install_takes = 20 * kSecond;  // how long the lock is set
  DurationMs list_age = 0;                  // how outdated server lists may be
  DurationMs cache_every = 60 * kSecond;    // how often the cached power state is refreshed; 0: never
  int quota = 300;                          // requests per hour
  int throttled = 0;                        // this many further requests get a 429
  DurationMs retry_after = 60 * kSecond;    // Retry-After of these
  int conflicts = 0;                        // this many further orders get a 409
  int lost_answers = 0;                     // this many further orders succeed, but their response is lost
  int lost_orders = 0;            // this many further orders have no effect, and their response is lost
  int unreadable_power = 0;       // this many further power queries get a 503
  bool ignores_orders = false;    // orders get a 204 but have no effect
  bool installs_nothing = false;  // an installation sets its lock, but leaves the disk unchanged
  bool leaves_off = false;        // the machine is off after an installation
  bool shows_no_lock = false;     // no lock is visible during an installation
  bool locked_by_people = false;  // administrative_lock
};

struct PhyMachine {
  std::string id, nickname, address;  // id: 12 digits; address: the IPv4 address in the API
  Machine* machine = nullptr;
  // Writes an image to the machine's disk while it is off, with these SSH keys for the image's superuser.
  // Returns "", or why it failed.
  std::function<std::string(const std::string& image, const std::vector<std::string>& keys)> install = {};
};

struct PhyImage {
  std::string id, name, superuser = "root";
  bool keys = true, needs_password = false;
};

class PhyApi {
 public:
  using Clock = std::function<TimeMs()>;
  using Images = std::function<std::vector<PhyImage>()>;  // the currently available images
  PhyApi(std::string token, std::string secret, Images images, Clock now);

  void add(PhyMachine machine);
  HttpResponse handle(const HttpRequest& request);
  void advance();  // applies changes that are due
  void change(const std::function<void(PhyManners&)>& manners);
  int installs(const std::string& id);  // accepted so far
  int orders(const std::string& id);    // power_control requests accepted so far
  int served();                         // requests so far, including rejected ones

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
    std::string remembered;  // cached power state; "": never read
    TimeMs remembered_at = 0;
    int installs = 0, ordered = 0;
  };
  HttpResponse dispatch(const HttpRequest& request);
  std::optional<HttpResponse> refuse_unknown(const HttpRequest& request);
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
  std::deque<TimeMs> request_times_;
  Json listed_;
  TimeMs listed_at_ = 0;
  int served_ = 0;
};

}  // namespace muster::lab
