// SolReader: reads the serial consoles of machines behind IPMI BMCs (serial over LAN), through Debian's
// ipmitool.
//
// One process per machine, each with its own pseudo-terminal, which ipmitool requires. Nothing is ever
// written to a console. A BMC allows one such session: if another client has it, or if a session ends by
// itself, a new one is tried after a while. A rejected login is retried once, with the other suite and more
// time, and then not until the target changes; failed logins count together with the driver's
// (controller/power/logins.h). ipmitool gets the password in its environment. Thread: want() any;
// `on_data` is called on the reader's own thread, which the destructor waits for.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "controller/ports/power.h"

namespace muster {

class SolReader {
 public:
  using OnData = std::function<void(const std::string& node, const std::string& bytes)>;
  explicit SolReader(OnData on_data, std::string program = "ipmitool", DurationMs again = 30 * kSecond);
  ~SolReader();
  SolReader(const SolReader&) = delete;
  SolReader& operator=(const SolReader&) = delete;

  // Sets the nodes whose consoles are read from now on.
  void want(std::map<std::string, PowerTarget> nodes);

 private:
  struct Session {
    PowerTarget target;
    int fd = -1;
    pid_t pid = 0;
    size_t suite = 0, not_offered = 0;  // not_offered: suites in a row that the BMC lacks
    int refused = 0;
    bool operational = false, given_up = false;
    std::string complaint;          // ipmitool's output before the session began
    TimeMs next_try = 0, ends = 0;  // ends: when the process is killed; 0: never
  };
  void loop();
  bool settle(TimeMs now);  // false: the reader has been stopped
  void listen(TimeMs now);
  void open(Session& session, TimeMs now);
  void hang_up(Session& session, TimeMs now);
  void read(const std::string& node, Session& session, TimeMs now);
  void ended(Session& session, TimeMs now);
  static void refuse(Session& session, bool login);
  void wake() const;

  const OnData on_data_;
  const std::string program_;
  const DurationMs again_;
  std::mutex mutex_;
  std::map<std::string, PowerTarget> wanted_;  // under mutex_
  bool stopping_ = false;                      // also under mutex_
  std::map<std::string, Session> sessions_;    // used only by the thread
  int wake_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace muster
