// Logins: recent answers of BMCs to user and password, so that one bad answer is not taken for a wrong
// password, and a wrong password does not lock an account: after three to five failed logins in a row BMCs
// lock it, and reject the right password, too.
//
// At most two failed logins in a row within ten minutes, the second at least ten seconds after the first:
// BMCs that are busy or starting sometimes reject the right password. One that accepted the password less
// than ten minutes before rejects it for a passing reason: `unavailable` instead of `denied`, twenty seconds
// instead of ten, and no more logins than otherwise. Kept by address, user and password (as a digest);
// another password for an account that rejected two gets one try. Lost when the controller ends. Thread: any;
// one mutex inside.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "controller/power/power.h"

namespace muster {

class Logins {
 public:
  explicit Logins(std::function<TimeMs()> monotonic) : now_(std::move(monotonic)) {}

  void let_in(const PowerTarget& target);
  // One failed login.
  void failed(const PowerTarget& target);
  // Before a login: waits with `pause` if one failed a moment ago. An Error: no password is sent now.
  Status may_log_in(const PowerTarget& target, DurationMs left,
                    const std::function<void(DurationMs)>& pause) const;
  // failed(); Ok: one more login is allowed. After the last nothing more is sent with this user and password.
  Status failed_login(const PowerTarget& target);
  // Rejected for good, as counted by the driver itself.
  void refused(const PowerTarget& target);
  // The answer to give instead of a login; none if a login is allowed.
  std::optional<Error> find(const PowerTarget& target) const;
  // Less than ten minutes ago, and not rejected since.
  bool took(const PowerTarget& target) const;
  // How long the next login must wait.
  DurationMs pause(const PowerTarget& target) const;
  // A person set secrets: each rejected one gets one more try, at once.
  void once_more();

  // Basic authentication is off at this BMC: it needs a session.
  void wants_session(const PowerTarget& target);
  bool knows_session(const PowerTarget& target) const;
  // IPMI: this BMC answers too slowly for a second per message; it has this cipher suite and not the usual
  // one (0: unknown).
  void wants_time(const PowerTarget& target);
  bool needs_time(const PowerTarget& target) const;
  void has_suite(const PowerTarget& target, int suite);
  int suite(const PowerTarget& target) const;

 private:
  struct Tried {
    int failed = 0;  // in a row
    TimeMs at = 0;   // the last of them
    bool at_once = false, trusted = false;
    std::optional<TimeMs> let_in = {};
  };
  using Account = std::map<std::string, Tried>;  // by digest of the password, which is not kept
  bool lately(TimeMs at) const;
  int failures(const PowerTarget& target) const;
  const Tried* tried(const PowerTarget& target) const;
  Tried& count(const PowerTarget& target, int failed);

  std::function<TimeMs()> now_;
  mutable std::mutex mutex_;
  std::map<std::string, Account> accounts_;  // by address and user
  std::set<std::string> sessions_, slow_;    // addresses
  std::map<std::string, int> suites_;        // by address
};

}  // namespace muster
