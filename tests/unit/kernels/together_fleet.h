// A group's members in one process: a thread each, over loopback, on ports that were free. Members that are
// to be killed are forked children. What members see is asserted by the test's own thread afterwards.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/together/tcp_group.h"
#include "tests/catch.h"

namespace muster::together {

struct Fleet {
  std::vector<Meeting> meetings = {};
  std::vector<Listening> listening = {};

  // Long enough for any machine: only tests of silence wait for the end of it.
  explicit Fleet(size_t count, double seconds = 120, double grace = 60) {
    std::vector<Member> members;
    for (size_t r = 0; r < count; ++r) {
      auto one = listen_at("127.0.0.1", 0);
      REQUIRE(one.ok());
      members.push_back({"node" + std::to_string(r), "127.0.0.1", one->port});
      listening.push_back(std::move(*one));
    }
    for (size_t r = 0; r < count; ++r)
      meetings.push_back({members, static_cast<int>(r), "a token", seconds, grace});
  }
  Met join(size_t rank) { return meet(meetings[rank], std::move(listening[rank])); }
};

// `work` for each of these ranks, each in a thread; when all are done, or with the first few that are.
inline void run(Fleet& fleet, const std::vector<size_t>& ranks,
                const std::function<void(Met& met, size_t rank)>& work) {
  std::vector<std::thread> threads;
  for (const size_t rank : ranks)
    threads.emplace_back([&fleet, &work, rank] {
      Met met = fleet.join(rank);
      work(met, rank);
    });
  for (auto& thread : threads) thread.join();
}

inline std::vector<size_t> first(size_t count) {
  std::vector<size_t> out(count);
  for (size_t r = 0; r < count; ++r) out[r] = r;
  return out;
}

// Opens after `count` calls of done(). A member can have met all others before these have met one another:
// what kills a member waits until those that are to notice it have met.
class Gate {
 public:
  explicit Gate(size_t count) : left_(count) {}
  void done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) open_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    open_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_ = {};
  std::condition_variable open_ = {};
  size_t left_;
};

// A member in a process of its own that joins and then does nothing.
class Child {
 public:
  // While this process has one thread.
  Child(Fleet& fleet, size_t rank) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (size_t r = 0; r < fleet.listening.size(); ++r)
        if (r != rank) fleet.listening[r] = {};
      const Met met = fleet.join(rank);
      const char done = met.group ? 'y' : 'n';
      if (::write(ends[1], &done, 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    REQUIRE(pid_ > 0);
    ::close(ends[1]);
    joined_ = ends[0];
    fleet.listening[rank] = {};
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(joined_);
  }
  bool joined() const {
    char done = 'n';
    return ::read(joined_, &done, 1) == 1 && done == 'y';
  }
  void signal(int number) const { ::kill(pid_, number); }

 private:
  pid_t pid_ = -1;
  int joined_ = -1;
};

// "3 died, 4 died"
inline std::string said(const std::vector<Lost>& lost) {
  std::string out;
  for (const auto& one : lost) {
    out += (out.empty() ? "" : ", ") + std::to_string(one.rank) + " " + std::string(to_string(one.kind));
    if (one.name != "node" + std::to_string(one.rank)) out += " under another name";
  }
  return out;
}

}  // namespace muster::together
