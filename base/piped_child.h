// PipedChild: a running program whose standard input and output are pipes of this process, for a dialogue
// that may last hours. For programs that run to their end and are then read: base/os.h.
//
// Owned by its user. The child has a session of its own, so that no key of this terminal reaches it, and gets
// SIGTERM when this process dies, however that happens. Thread: the reactor's, which must be the thread that
// lives as long as the process (Linux ties the child to the thread that started it); callbacks never run
// inside a call. SIGPIPE is ignored from the first start on.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/reactor.h"
#include "base/result.h"

namespace muster {

class PipedChild {
 public:
  struct Events {
    std::function<void(std::string_view)> out, err;  // as it comes, in pieces of any size
    std::function<void()> out_end;                   // standard output was closed
    // It has ended: called once, after all output that was there; exit status, 128 + signal when killed by
    // one. A process of its own that lives on may still hold the pipes, and is not waited for.
    std::function<void(int status)> ended;
  };
  // not_found: there is no such program; unavailable: no descriptors or no memory for one more.
  static Result<std::unique_ptr<PipedChild>> start(RealReactor& reactor, const std::vector<std::string>& argv,
                                                   Events events);
  // Ends it and its process group where it still runs: SIGTERM, half a second later SIGKILL. Blocks until it
  // is gone.
  ~PipedChild();
  PipedChild(const PipedChild&) = delete;
  PipedChild& operator=(const PipedChild&) = delete;

  // Sent in order, as the child takes it. Nothing once its standard input is closed at either end.
  void send(std::shared_ptr<const std::string> text);
  void send(std::string text) { send(std::make_shared<const std::string>(std::move(text))); }
  // Closes its standard input after what was sent.
  void close_input();
  // To its process group.
  void signal(int number);
  size_t unsent() const;  // bytes

 private:
  PipedChild(RealReactor& reactor, Events events) : reactor_(reactor), events_(std::move(events)) {}
  void watch();
  void write_some();
  // False: it is at its end, and closed.
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
  size_t sent_ = 0;  // of the first one
  bool writing_ = false, closing_ = false, ended_ = false;
  Reactor::TimerId look_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster
