// UserNames: the names of this machine's users. Those in /etc/passwd are read there. Others are in a
// directory of the network, which may hang: searches run in the pool, kMostSearches at a time, and nothing
// waits for one longer than kDeadline. Thread: the reactor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/alive.h"
#include "base/steady.h"
#include "base/time.h"
#include "sys/os.h"
#include "sys/reactor.h"

namespace muster::api {

class UserNames {
 public:
  // Runs `work` on another thread, then `done` on the reactor's.
  using Offload = std::function<void(Reactor::Task work, Reactor::Task done)>;
  using Lookup = std::function<std::string(uint32_t)>;  // in the directory; may block; "": it has none
  using Then = std::function<void(const std::string& name)>;

  static constexpr DurationMs kDeadline = 2 * kSecond;
  static constexpr DurationMs kKept = 10 * kMinute;  // names from the directory
  static constexpr size_t kMostSearches = 2;

  UserNames(Reactor& reactor, Offload offload, Files files, Lookup lookup)
      : reactor_(reactor),
        offload_(std::move(offload)),
        files_(std::move(files)),
        lookup_(std::move(lookup)) {}

  // Calls `then`, perhaps at once, with the name; "": there is none, or it is not known in time.
  void find(uint32_t uid, Then then);

 private:
  struct Known {
    std::string name;
    SteadyMs since;
  };
  struct Search {
    std::vector<Then> waiting = {};
    bool late = false;  // its deadline has passed
    Reactor::TimerId deadline = 0;
  };
  void begin(uint32_t uid, Search& search);
  void give_up(uint32_t uid);
  void found(uint32_t uid, const std::string& name);

  Reactor& reactor_;
  const Offload offload_;
  const Files files_;
  const Lookup lookup_;
  std::map<uint32_t, Known> known_;
  std::map<uint32_t, Search> searches_;
  Alive alive_;
};

}  // namespace muster::api
