// JournalWriter: writes the executor's rows to the store, in the order of events.
//
// One commit at a time; rows that come meanwhile go into the next one. Rows belong to a node, or ("") to the
// run as a whole. A commit that fails is retried piece by piece: a piece that fails alone, too, waits, with
// all that its node writes after it, and is retried every second; the others go on. So a full disk delays
// everything, and a row that the store rejects delays only its node. Nothing overtakes an earlier row of its
// own node, and what belongs to the run as a whole waits for every rejected row: its end comes after
// everything. Thread: the reactor's.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
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

  // All or nothing. `then` runs when these rows are durable, and all that this node wrote before them; for
  // `node` "": all rows written before them.
  void write(const std::string& node, Rows rows, std::function<void()> then = {});
  // Why this node's rows are not durable yet; "": none was rejected. For `node` "": of the first rejected row
  // of any node, and that node.
  std::string trouble(const std::string& node) const;

 private:
  struct Piece {
    std::string node;
    Rows rows;
    std::function<void()> then;
  };
  using Pieces = std::deque<Piece>;

  bool must_wait(const std::string& node) const;
  void keep(Piece piece, Pieces& kept);
  Pieces next_commit();
  void flush();
  void commit(std::shared_ptr<Pieces> pieces);
  void run_due();
  void one_by_one(std::shared_ptr<Pieces> left, std::shared_ptr<Pieces> kept);
  void refused(const std::string& node, const Error& error);
  void written(const std::string& node);

  Reactor& reactor_;
  Store& store_;
  std::shared_ptr<bool> alive_;
  Pieces waiting_;  // in their order; not those that are being written
  bool writing_ = false, timer_runs_ = false, try_again_ = false;
  std::deque<std::function<void()>> due_;  // durable now: continue what waited for it
  bool due_posted_ = false;
  std::set<std::string> refused_;                // nodes whose pieces are not retried in this second
  std::map<std::string, std::string> troubles_;  // by node, until something of it is written
  std::set<std::string> complaints_;             // logged ones, until all is written
};

}  // namespace muster
