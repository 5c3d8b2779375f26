// AcceptTimes: how long configuration and acceptance of nodes took (accept_times_search.h), looked up in the
// store's runs. A worker thread reads the long parts. A node's result is cached until a later run accepts the
// node, because the journal of a finished run no longer changes. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/alive.h"
#include "controller/bringup/accept_times_search.h"
#include "controller/bringup/plan_worker.h"
#include "controller/ports/store.h"

namespace muster {

class AcceptTimes {
 public:
  using Accepted = AcceptTimesSearch::Accepted;

  AcceptTimes(Store& store, PlanWorker::Offload offload) : store_(store), offload_(std::move(offload)) {}
  ~AcceptTimes() { alive_.end(); }  // `then` is not called after this
  AcceptTimes(const AcceptTimes&) = delete;
  AcceptTimes& operator=(const AcceptTimes&) = delete;

  // Looks up what is not yet known about these nodes, then calls `then`, possibly before find() returns.
  void find(const Accepted& accepted, std::function<void()> then);
  // True if the lookup for this node and run was done.
  bool looked_for(const std::string& node, int64_t run) const;
  // Returns the time for a node that was last accepted by this run; 0: unknown.
  DurationMs of(const std::string& node, int64_t run) const;

 private:
  struct Looking {
    AcceptTimesSearch search;
    std::set<int64_t> running;  // running when the search began: their journals were incomplete
    uint64_t number = 0;        // searches are numbered in order of their start
  };
  using Search = std::shared_ptr<Looking>;
  struct Known {
    int64_t run = 0;
    DurationMs took = 0;
    bool readable = true;  // false: a run was unreadable; look up again
    uint64_t found_by = 0;
  };

  void go_on(const Search& looking, const std::function<void()>& then);
  std::optional<PlanKind> kind_of(int64_t run);
  void keep(const Looking& looking);
  const Known* known(const std::string& node, int64_t run) const;

  Store& store_;
  PlanWorker::Offload offload_;
  std::map<std::string, Known> known_;
  uint64_t searches_ = 0;
  Alive alive_;
};

}  // namespace muster
