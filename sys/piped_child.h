// PipedChild: a running program whose standard input and output are pipes of this process, for an exchange
// that may last hours. For programs whose output is read after they end, use sys/os.h.
//
// Owned by the code that starts it. The child has its own session, so that signals from this terminal do not
// reach it, and gets SIGTERM when this process dies for any reason. Thread: the reactor's, which must live as
// long as the process (Linux ties the child to the thread that started it); callbacks never run inside a
// call. SIGPIPE is ignored from the first start on.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/alive.h"
#include "base/result.h"
#include "sys/reactor.h"

namespace muster {

class PipedChild {
 public:
  struct Events {
    std::function<void(std::string_view)> out, err;  // as it arrives, in pieces of any size
    std::function<void()> out_end;                   // standard output was closed
    // Called once when the child has ended, after all of its output: exit status, or 128 + signal if killed
    // by one. Processes that the child started may still hold the pipes, and are not waited for.
    std::function<void(int status)> ended;
  };
  // Open files of this process for each that runs, and in addition while one is started.
  static constexpr size_t kOpenFiles = 4, kOpenFilesToStart = 8;
  // cannot_start(); unavailable, too: out of descriptors.
  static Result<std::unique_ptr<PipedChild>> start(RealReactor& reactor, const std::vector<std::string>& argv,
                                                   Events events);
  // Ends the child and its process group if still running: SIGTERM, then SIGKILL half a second later. Blocks
  // until the child has ended.
  ~PipedChild();
  PipedChild(const PipedChild&) = delete;
  PipedChild& operator=(const PipedChild&) = delete;

  // Queues text for its standard input, sent in order. Ignored once that is closed at either end.
  void send(std::shared_ptr<const std::string> text);
  void send(std::string text) { send(std::make_shared<const std::string>(std::move(text))); }
  // Closes its standard input after everything queued was sent.
  void close_input();
  // To its process group.
  void signal(int number);
  size_t unsent() const;  // bytes

 private:
  PipedChild(RealReactor& reactor, Events events) : reactor_(reactor), events_(std::move(events)) {}
  void watch();
  void write_some();
  // Returns false at the end of the stream, and closes `fd`.
  bool read_some(int& fd, const std::function<void(std::string_view)>& take);
  void read_out();
  void read_err();
  void look_for_end();
  void close(int& fd);

  RealReactor& reactor_;
  Events events_;
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1, exit_ = -1;
  std::deque<std::shared_ptr<const std::string>> queue_;
  size_t sent_ = 0;  // of the first text in the queue
  bool writing_ = false, closing_ = false, ended_ = false;
  Reactor::TimerId look_timer_ = 0;
  Alive alive_;
};

}  // namespace muster
