// What this process writes to its log, and to stderr at all, while the value lives. Thread: one at a time.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "sys/log.h"
#include "tests/fakes/temp_dir.h"

namespace muster {

class CapturedLog {
 public:
  CapturedLog() : own_(::fcntl(2, F_DUPFD_CLOEXEC, 3)) {
    log::set_level(log::Level::info);  // a command that ran in this process may have changed it
    const int file = ::open(dir_.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(file, 2);
    ::close(file);
  }
  ~CapturedLog() {
    ::dup2(own_, 2);
    ::close(own_);
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  std::string text() const { return dir_.read("log"); }

 private:
  TempDir dir_;
  int own_;
};

}  // namespace muster
