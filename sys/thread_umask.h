// ThreadUmask: another umask for the calling thread, its children and the threads that it starts.
//
// A process has one umask, which musterd's unit sets to 0077; what packages and their scripts create in the
// tree of an image has the modes of a usual system. From then on the thread's working directory is its own,
// too. Thread: constructed and destroyed in the same one.
#pragma once

#include <sched.h>
#include <sys/stat.h>

namespace muster {

class ThreadUmask {
 public:
  explicit ThreadUmask(mode_t mask) : own_(::unshare(CLONE_FS) == 0), before_(own_ ? ::umask(mask) : 0) {}
  ~ThreadUmask() {
    if (own_) ::umask(before_);
  }
  ThreadUmask(const ThreadUmask&) = delete;
  ThreadUmask& operator=(const ThreadUmask&) = delete;

 private:
  const bool own_;
  const mode_t before_;
};

}  // namespace muster
