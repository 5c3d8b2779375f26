// NodeBook: the known state of every node, in a run or not: its row, as it will be when all pending writes
// are durable, and its agent's messages to this process of the controller.
//
// The only writer of NodeRows. A row is changed, never made up: while the store's rows cannot be read,
// changes wait. The state of an agent from an earlier process is used until the agent reports, but not if the
// database was restored from an older copy. Thread: the reactor's.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/machine_uuid.h"
#include "base/reactor.h"
#include "controller/plan/plan.h"
#include "controller/run/journal_writer.h"
#include "controller/run/known_agent.h"
#include "controller/run/run_ports.h"
#include "controller/store/store.h"

namespace muster {

class NodeBook {
 public:
  using Change = std::function<void(NodeRow&)>;

  // `silent_after`: after this time without a message an agent counts as silent.
  NodeBook(Reactor& reactor, Store& store, JournalWriter& journal, DurationMs silent_after);
  ~NodeBook();
  NodeBook(const NodeBook&) = delete;
  NodeBook& operator=(const NodeBook&) = delete;

  // Of its agent; without a message, from its row. `find`: null if never used.
  KnownAgent& agent(const std::string& node);
  const KnownAgent* find(const std::string& node) const;
  // It sent a message now.
  void hear(KnownAgent& agent);
  // The last message of any agent; the start of this process if there was none.
  SteadyMs last_heard() const { return std::max(heard_, began_); }
  // It requested orders. `hello`: from the request, or from its row for the same boot, to be handled as a
  // hello to this process; nothing was recorded.
  struct Contact {
    std::optional<Hello> hello = {};
    bool by_the_known_boot = true;  // else of one whose hello is on its way
    bool after_silence = false;
  };
  Contact contact(const std::string& node, const Presence& present);
  // It sent a hello; true: of another boot than the last. With the row to write.
  bool hello(const Hello& hello, JournalWriter::Rows& rows);

  // Reads the rows unless that was done; after a failure the next call retries.
  void load() const;
  bool loaded() const { return loaded_; }
  const std::map<std::string, NodeRow>& rows() const { return rows_; }
  // Newest row of a node, with what is on its way to the store; a default row when it is unknown.
  NodeRow row(const std::string& node) const;
  // The row to write, changed; none while rows cannot be read: then it is changed and written later, so
  // `change` captures by value.
  JournalWriter::Rows changed(const std::string& node, const Change& change);
  // The row to write in one batch with the intent of this action: from then on earlier findings on the disk,
  // or in the slot, that it writes are void (NodeRow::disk_written). None if it writes neither, or if the row
  // has that already; as above.
  JournalWriter::Rows begun(const std::string& node, const Action& action, TimeMs time);
  // Drops the state of a node whose row is being deleted; false while changes wait for the rows.
  bool forget(const std::string& node);
  // The node of each known machine, without undeclared ones. Null while the store cannot be read.
  std::shared_ptr<const Machines> machines() const;

  // How long its agent has been silent; nullopt: it never reported, or not since the database was restored.
  std::optional<DurationMs> silent_for(const std::string& node) const;
  // Since when it is silent, for people; 0: it is not, or for less than `shown`, or this process has not run
  // that long.
  TimeMs silent_since(const std::string& node, DurationMs shown) const;
  // The database was restored from an older copy, and the node has not reported since: its row may be wrong.
  bool outdated(const std::string& node) const;
  // Something may run on it: it was seen, or that is unknown.
  bool ever_seen(const std::string& node) const;
  // No record and no message of it.
  bool never_seen(const std::string& node) const;

  // A time of an earlier process, or of a record.
  SteadyMs steady_of(TimeMs wall) const;
  SteadyMs began() const { return began_; }  // this process

 private:
  void believe_row(const std::string& node, KnownAgent& agent) const;
  bool unproven(const NodeRow& row) const;
  Write changed_row(const std::string& node, const Change& change);
  void read_later();

  Reactor& reactor_;
  Store& store_;
  JournalWriter& journal_;
  std::shared_ptr<bool> alive_;
  std::map<std::string, std::unique_ptr<KnownAgent>> agents_;
  // A cache of the store: reading it has no visible effect.
  mutable std::map<std::string, NodeRow> rows_;
  mutable bool loaded_ = false, complained_ = false;
  bool reading_ = false;
  std::vector<std::pair<std::string, Change>> held_;  // changes that wait for the rows to be read
  mutable std::shared_ptr<const Machines> machines_;  // of rows_; null: to be made again
  const DurationMs silent_after_;
  SteadyMs heard_ = {};  // any agent
  const SteadyMs began_;
};

}  // namespace muster
