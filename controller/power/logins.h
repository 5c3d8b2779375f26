// Logins: records recent results of logins to BMCs, so that a single failed login is not taken for a wrong
// password, and a wrong password does not lock an account: after three to five failed logins in a row BMCs
// lock it, and then also reject the correct password.
//
// Allows at most two failed logins in a row within ten minutes, the second at least ten seconds after the
// first: BMCs that are busy or starting sometimes reject the correct password. If a BMC accepted the password
// less than ten minutes before, the cause is temporary: `unavailable` instead of `denied`, twenty seconds
// instead of ten, and the same limit on logins. Results are kept by address, user and password (as a digest);
// after two rejected passwords of an account, a new password gets one try. Not kept across restarts of the
// controller. Thread: any; one mutex inside.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "controller/ports/power.h"

namespace muster {

class Logins {
 public:
  explicit Logins(std::function<TimeMs()> monotonic) : now_(std::move(monotonic)) {}

  void let_in(const PowerTarget& target);
  void failed(const PowerTarget& target);
  // To be called before a login: waits with `pause` if one has just failed. An Error: do not log in now.
  Status may_log_in(const PowerTarget& target, DurationMs left,
                    const std::function<void(DurationMs)>& pause) const;
  // Calls failed(); Ok: one more login is allowed. Else nothing more may be sent with this user and password;
  // with PowerTarget::one_login, in this call.
  Status failed_login(const PowerTarget& target);
  // Records a final rejection that the driver itself established.
  void refused(const PowerTarget& target);
  // Returns the error to report instead of logging in; nullopt if a login is allowed.
  std::optional<Error> find(const PowerTarget& target) const;
  // True if a login succeeded less than ten minutes ago and none has been rejected since.
  bool took(const PowerTarget& target) const;
  // True if the last login was rejected less than ten minutes ago.
  bool rejected(const PowerTarget& target) const;
  // Returns how long the next login must wait.
  DurationMs pause(const PowerTarget& target) const;
  // To be called when an operator set secrets: each rejected account gets one more try, at once.
  void once_more();

  // Records that Basic authentication is disabled on this BMC, so that it needs a session.
  void wants_session(const PowerTarget& target);
  bool has_session(const PowerTarget& target) const;
  // IPMI: this BMC needs more than a second per message; the cipher suite it accepts (0: unknown).
  void wants_time(const PowerTarget& target);
  bool needs_time(const PowerTarget& target) const;
  void has_suite(const PowerTarget& target, int suite);
  int suite(const PowerTarget& target) const;
  // IPMI: the first suite with which the account was rejected less than ten minutes ago and not let in since,
  // with whatever password; 0: none.
  void rejects_suite(const PowerTarget& target, int suite);
  int rejected_suite(const PowerTarget& target) const;

 private:
  struct Tried {
    int failed = 0;  // in a row
    TimeMs at = 0;   // the last of them
    bool at_once = false, trusted = false;
    std::optional<TimeMs> let_in = {};
  };
  using Account = std::map<std::string, Tried>;  // by digest of the password, which is not kept
  struct RejectedSuite {
    int suite = 0;
    TimeMs at = 0;
  };
  bool lately(TimeMs at) const;
  int failures(const PowerTarget& target) const;
  const Tried* tried(const PowerTarget& target) const;
  Tried& count(const PowerTarget& target, int failed);

  std::function<TimeMs()> now_;
  mutable std::mutex mutex_;
  std::map<std::string, Account> accounts_;               // by address and user
  std::set<std::string> sessions_, slow_;                 // addresses
  std::map<std::string, int> suites_;                     // by address
  std::map<std::string, RejectedSuite> rejected_suites_;  // by address and user
};

}  // namespace muster
