// NodeBook: what is known of every node whether a run is about it or not: its row, as it will be when all
// that is on its way to the store is durable, and what its agent said to this process of the controller.
//
// The only writer of NodeRows. A row is changed, never made up: while the store's rows cannot be read,
// changes wait. What an earlier process knew of an agent is believed until the agent speaks, but not when the
// database is an older copy of itself. Thread: the reactor's.
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

  // `silent_after`: an agent not heard for this long counts as silent.
  NodeBook(Reactor& reactor, Store& store, JournalWriter& journal, DurationMs silent_after);
  ~NodeBook();
  NodeBook(const NodeBook&) = delete;
  NodeBook& operator=(const NodeBook&) = delete;

  // Of its agent; one never heard of is what its row says. `find`: null when nothing was ever known or asked.
  KnownAgent& agent(const std::string& node);
  const KnownAgent* find(const std::string& node) const;
  // It said something now.
  void hear(KnownAgent& agent);
  // When any agent was heard last; the beginning of this process when none was.
  SteadyMs last_heard() const { return std::max(heard_, began_); }
  // It asked for orders. `hello`: what it says, or what its row says of the same boot, which is to be taken
  // for a hello to this process, and nothing was noted.
  struct Contact {
    std::optional<Hello> hello = {};
    bool by_the_known_boot = true;  // else of one whose hello is on its way
    bool after_silence = false;
  };
  Contact contact(const std::string& node, const Presence& present);
  // It said hello; true: of another boot than the last. With the row to write.
  bool hello(const Hello& hello, JournalWriter::Rows& rows);

  // Reads the rows unless that was done; where it fails it is tried again by whoever asks next.
  void load() const;
  bool loaded() const { return loaded_; }
  const std::map<std::string, NodeRow>& rows() const { return rows_; }
  // Newest row of a node, with what is on its way to the store; a default row when it is unknown.
  NodeRow row(const std::string& node) const;
  // The row to write, changed; none while rows cannot be read: then it is changed and written later, so
  // `change` keeps what it needs by value.
  JournalWriter::Rows changed(const std::string& node, const Change& change);
  // The row to write in one batch with the intent of this action: from then on what was seen on the disk,
  // or in the slot, that it writes says nothing (NodeRow::disk_written). None where it writes neither, or
  // where the row says so already; as above.
  JournalWriter::Rows begun(const std::string& node, const Action& action, TimeMs time);
  // Forgets what is known of a node whose row is being deleted; false while changes wait for the rows.
  bool forget(const std::string& node);
  // Which node each known machine is; undeclared ones are nobody's. Null while the store cannot be read.
  std::shared_ptr<const Machines> machines() const;

  // How long its agent is silent now; nullopt: never heard, or not since the database is an older copy of
  // itself.
  std::optional<DurationMs> silent_for(const std::string& node) const;
  // Since when it is silent, for people; 0: for less than `shown`, or this process does not run that long.
  TimeMs silent_since(const std::string& node, DurationMs shown) const;
  // The database is an older copy, and the node was not heard since it was put there: its row may say
  // anything but the truth.
  bool outdated(const std::string& node) const;
  // Something may run on it: it was seen, or nobody can know.
  bool ever_seen(const std::string& node) const;
  // Nothing is recorded of it and nobody heard of it.
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
  // A cache of the store: reading it changes nothing that anybody could see.
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
