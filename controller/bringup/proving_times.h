// ProvingTimes: what configuration and acceptance of nodes took (proving.h), looked up in the store's runs. A
// worker reads what is long; what was found of a node is kept until another run accepts it, as a node's part
// in a run that accepted it and has ended does not change any more. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "controller/bringup/plan_worker.h"
#include "controller/bringup/proving.h"
#include "controller/store/store.h"

namespace muster {

class ProvingTimes {
 public:
  using Accepted = ProvingSearch::Accepted;

  ProvingTimes(Store& store, PlanWorker::Offload offload) : store_(store), offload_(std::move(offload)) {}
  ~ProvingTimes() { *alive_ = false; }  // no `then` is called from then on
  ProvingTimes(const ProvingTimes&) = delete;
  ProvingTimes& operator=(const ProvingTimes&) = delete;

  // Looks for what is not known yet of these nodes, then calls `then`; perhaps before this returns.
  void find(const Accepted& accepted, std::function<void()> then);
  // Whether it was looked for.
  bool looked_for(const std::string& node, int64_t run) const;
  // Of a node that this run accepted last. 0: not known.
  DurationMs of(const std::string& node, int64_t run) const;

 private:
  struct Looking {
    ProvingSearch search;
    std::set<int64_t> running;  // when it began: the last rows of their journals were not there yet
    uint64_t number = 0;        // they began in this order
  };
  using Search = std::shared_ptr<Looking>;
  struct Known {
    int64_t run = 0;
    DurationMs took = 0;
    bool readable = true;  // in full; else it is looked for again
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
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster
