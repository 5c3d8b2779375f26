// NodeTable: the known state of every node, in a run or not: its row, as it will be once all pending writes
// are durable, and what its agent has sent to this process of the controller. The only writer of NodeRows.
// Existing rows are changed, never replaced by default ones: while the store's rows cannot be read, changes
// wait. Until an agent reports to this process, its state is taken from its row, unless the database was
// restored from an older copy. Thread: the reactor's.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/alive.h"
#include "base/machine_uuid.h"
#include "base/names.h"
#include "controller/executor/journal_writer.h"
#include "controller/plan/plan.h"
#include "controller/ports/run_ports.h"
#include "controller/ports/store.h"
#include "controller/run/node_run.h"
#include "sys/reactor.h"

namespace muster {

class NodeTable {
 public:
  using Change = std::function<void(NodeRow&)>;

  // `silent_after`: after this time without a message an agent counts as silent.
  NodeTable(Reactor& reactor, Store& store, JournalWriter& journal, DurationMs silent_after);
  ~NodeTable();
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  // From the node's row if its agent sent no message. `find`: null if never used.
  KnownAgent& agent(const NodeName& node);
  const KnownAgent* find(const NodeName& node) const;
  void note_contact(KnownAgent& agent);
  // The start of this process if no agent sent a message.
  SteadyMs last_message() const { return std::max(last_message_, began_); }
  // For how long agents have been able to report: since this process began, or since the first message after
  // all agents were silent for `silent_after`; 0 while they are, since the controller may be cut off.
  DurationMs reporting_for() const;
  // Records a message of the node's agent, unless it returns a `hello`, derived from the message or from the
  // node's row for the same boot, which the caller must handle like a hello to this process.
  struct Contact {
    std::optional<Hello> hello = {};
    bool by_the_known_boot = true;  // false: from a boot whose hello has not arrived yet
    bool after_silence = false;
  };
  Contact contact(const NodeName& node, const Presence& present);
  // Handles a hello; adds the row to write to `rows`. True if it is from a different boot than the last one.
  bool hello(const Hello& hello, JournalWriter::Rows& rows);

  // Reads the rows unless they were read before; after a failure, the next call retries.
  void load() const;
  bool loaded() const { return loaded_; }
  const std::map<std::string, NodeRow>& rows() const { return rows_; }
  // Returns the newest row of a node, including writes that are pending; a default row for an unknown node.
  NodeRow row(const NodeName& node) const;
  // Returns the changed row, to be written. Empty while rows cannot be read: then `change` runs later and the
  // row is written then, so `change` must capture by value.
  JournalWriter::Rows changed(const NodeName& node, const Change& change);
  // Returns the row to write in one batch with the intent of this action: it voids earlier findings on the
  // disk or slot that the action writes (NodeRow::disk_written). Empty if the action writes neither, or if
  // the row has that already; while rows cannot be read, works like changed().
  JournalWriter::Rows begun(const NodeName& node, const Action& action, TimeMs time);
  // Drops the state of a node whose row is being deleted; false while changes wait for the rows.
  bool forget(const NodeName& node);
  // Returns the node of each known machine, without undeclared ones; null while the store cannot be read.
  std::shared_ptr<const Machines> machines() const;

  // How long the node's agent has been silent; nullopt: it never reported, or not since a restored database.
  std::optional<DurationMs> silent_for(const NodeName& node) const;
  // Since when the node has been silent, for display; 0: it is not silent, or has been for less than `shown`,
  // or this process has run for less than that.
  TimeMs silent_since(const NodeName& node, DurationMs shown) const;
  // True if the database was restored from an older copy and the node has not reported since then.
  bool outdated(const NodeName& node) const;
  // True if something may be running on the node: it was seen, or it is unknown whether it was.
  bool ever_seen(const NodeName& node) const;
  // True if there is no record of the node and it sent no message.
  bool never_seen(const NodeName& node) const;

  // Converts a wall-clock time of an earlier process, or of a record.
  SteadyMs steady_of(TimeMs wall) const;
  SteadyMs began() const { return began_; }  // start of this process

 private:
  void restore_row(const NodeName& node, KnownAgent& agent) const;
  bool older_than_restore(const NodeRow& row) const;
  Write changed_row(const NodeName& node, const Change& change);
  void read_later();

  Reactor& reactor_;
  Store& store_;
  JournalWriter& journal_;
  Alive alive_;
  std::map<std::string, std::unique_ptr<KnownAgent>> agents_;
  // A cache of the store, hence mutable: filling it has no visible effect.
  mutable std::map<std::string, NodeRow> rows_;
  mutable bool loaded_ = false, complained_ = false;
  bool reading_ = false;
  std::vector<std::pair<NodeName, Change>> held_;     // changes that wait for the rows to be read
  mutable std::shared_ptr<const Machines> machines_;  // derived from rows_; null: must be computed again
  const DurationMs silent_after_;
  SteadyMs last_message_ = {};  // last message of any agent
  const SteadyMs began_;
  SteadyMs reporting_since_;
};

}  // namespace muster
