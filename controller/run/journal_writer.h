// JournalWriter: brings what the executor writes to the store, in the order in which it happened.
//
// One commit at a time; what comes meanwhile goes into the next one. A write that fails (disk full) is tried
// again every second until it succeeds, and nothing overtakes it: the journal's order is the order of events.
// Thread: the reactor's.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/reactor.h"
#include "controller/store/store.h"

namespace muster {

class JournalWriter {
 public:
  using Rows = std::vector<Write>;

  JournalWriter(Reactor& reactor, Store& store);
  ~JournalWriter();  // what is not durable then is lost, and no `then` runs any more
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // `then` runs when these rows, and all that were written before them, are durable.
  void write(Rows rows, std::function<void()> then = {});

 private:
  using Thens = std::vector<std::function<void()>>;
  void flush();
  void commit(std::shared_ptr<Rows> rows, std::shared_ptr<Thens> then);

  Reactor& reactor_;
  Store& store_;
  std::shared_ptr<bool> alive_;
  Rows unwritten_;  // waiting for the commit under way
  Thens after_write_;
  bool writing_ = false, complained_ = false;
};

}  // namespace muster
