// IpmiTool: requests to one BMC through the program `ipmitool`: sessions, cipher suites, and the meaning of
// its errors.
//
// Each request() is one process and one session with one or more raw commands. Sessions are at least kPace
// apart, since some BMCs crash if sessions follow faster. One rejection is not final: a second session, after
// a pause, with the other suite and 5 s for each message, must be rejected as well; after two no request is
// sent (controller/power/logins.h). Contains nothing about power or boot flags. Codes: `unavailable`
// no session, nothing was done; `denied` user or password rejected, or missing privilege; `invalid` the BMC
// does not support the command; `conflict` not possible in its present state; `timeout` any other error, the
// commands may have been carried out. Thread: one at a time; blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/ports/power.h"
#include "controller/power/logins.h"
#include "controller/power/waiter.h"
#include "sys/os.h"

namespace muster {

using IpmiBytes = std::vector<uint8_t>;
std::string hex_of(const IpmiBytes& bytes);  // "a004000000"

class IpmiTool {
 public:
  IpmiTool(PowerTarget target, Waiter waiter, std::shared_ptr<Process> process);

  // Starts the clock of one public call.
  void begin(DurationMs deadline) { end_ = waiter_.now() + deadline; }
  DurationMs left() const { return end_ - waiter_.now(); }
  void pause(DurationMs span);

  // Returns the data of each response, in order. An Error if one command failed; all were sent nevertheless.
  Result<std::vector<IpmiBytes>> request(const std::vector<IpmiBytes>& commands);
  // Why the last request() failed: command and completion code, if the BMC returned one.
  struct Refusal {
    int command = -1, completion = -1;
  };
  const Refusal& refusal() const { return refusal_; }
  // 17 or 3; 0 before the first session.
  int suite() const { return suite_; }
  // What ipmitool's errors (with -v) mean for a login: absent: the BMC does not respond at all; mixed_up: it
  // lost its session; refused: user or password rejected; not_allowed: the requested privilege level.
  enum class Login { established, absent, no_answer, mixed_up, other_suite, refused, not_allowed };
  static Login login_of(const std::string& complaint);
  // Returns ipmitool's arguments for a login. `patient`: for a BMC that needs more than a second per message.
  static std::vector<std::string> options(const PowerTarget& target, int suite, bool patient);

 private:
  Result<Output> run(const std::string& script, int suite);
  Result<Output> in_a_suite(const std::string& script);
  std::vector<int> suites_to_try() const;
  void came_in(int suite, bool other_failed);
  Status failed_login(int suite, const std::string& why);
  Error judge(const std::string& complaint);

  PowerTarget target_;
  Waiter waiter_;
  std::shared_ptr<Process> process_;
  std::string host_, port_ = "623";
  TimeMs end_ = 0;
  std::optional<TimeMs> last_;  // end of the previous session
  int suite_ = 0;
  bool patient_ = false;
  Refusal refusal_;
  std::shared_ptr<Logins> logins_;
};

}  // namespace muster
