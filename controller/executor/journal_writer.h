// JournalWriter: writes the executor's rows to the store, in the order of events.
// One commit at a time; rows that arrive during a commit go into the next one. A row belongs to a node, or
// (name "") to the run as a whole. If a commit fails, its pieces are retried one by one. A piece that also
// fails alone is retried every second, and later rows of its node wait with it; other nodes' rows are
// written. So a full disk delays everything, and a row that the store rejects delays only its node. No row is
// written before an earlier row of its node, and rows of the run as a whole wait for every rejected row: the
// end of the run is written last. Thread: the reactor's.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/alive.h"
#include "base/names.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

class JournalWriter {
 public:
  using Rows = std::vector<Write>;

  JournalWriter(Reactor& reactor, Store& store);
  ~JournalWriter();  // rows that are not durable are lost, and their `then` is not called
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // Writes all rows or none. `then` runs when these rows are durable, and all earlier rows of this node; for
  // `node` "": all rows written before them.
  void write(const NodeName& node, Rows rows, std::function<void()> then = {});
  // Returns why this node's rows are not durable yet; "" if none was rejected. For `node` "": the reason for
  // the first rejected row of any node, with the node's name.
  std::string trouble(const NodeName& node) const;

 private:
  struct Piece {
    NodeName node;
    Rows rows;
    std::function<void()> then;
  };
  using Pieces = std::deque<Piece>;

  bool must_wait(const NodeName& node) const;
  void keep(Piece piece, Pieces& kept);
  Pieces next_commit();
  void flush();
  void commit(std::shared_ptr<Pieces> pieces);
  void run_due();
  void one_by_one(std::shared_ptr<Pieces> left, std::shared_ptr<Pieces> kept);
  void refused(const NodeName& node, const Error& error);
  void written(const NodeName& node);

  Reactor& reactor_;
  Store& store_;
  Alive alive_;
  Pieces waiting_;  // in order, without those that are being written
  bool writing_ = false, timer_runs_ = false, try_again_ = false;
  std::deque<std::function<void()>> due_;  // their rows are durable: callbacks to run
  bool due_posted_ = false;
  std::set<std::string> refused_;                // nodes whose pieces are not retried before the next second
  std::map<std::string, std::string> troubles_;  // by node, until one of its rows is written
  std::set<std::string> complaints_;             // errors already logged; cleared when all rows are written
};

}  // namespace muster
