#include "controller/executor/node_table.h"

#include <algorithm>

#include "base/utf8.h"
#include "sys/log.h"

namespace muster {
namespace {

// "" if it writes the whole disk; nullopt if it writes neither.
std::optional<std::string> written_by(const Action& action) {
  if (action.kind == ActionKind::image) return "";
  if (action.kind != ActionKind::write_slot || !action.params.is_object()) return std::nullopt;
  const auto slot = action.params.own().find("slot");
  if (slot == action.params.own().end() || !slot->is_string()) return "";
  return slot->get<std::string>();
}

void note_hold(NodeRow& row, const NodeRow& before, TimeMs now) {
  if (row.state != NodeState::quarantined) {
    row.held_by = HeldBy::nobody;
    row.held_since = 0;
    row.held_caller.clear();
    return;
  }
  if (row.held_by == HeldBy::nobody) row.held_by = HeldBy::run;
  const bool still = before.state == NodeState::quarantined && before.held_by == row.held_by &&
                     before.held_caller == row.held_caller;
  if (!still) row.held_since = now;
}

// It is of the acceptance that the reason is of.
void note_fault(NodeRow& row, const NodeRow& before) {
  const bool counts = row.state == NodeState::quarantined || row.state == NodeState::degraded;
  if (!counts || (row.reason != before.reason && row.faulty_part == before.faulty_part))
    row.faulty_part.clear();
}

Hello hello_of(const NodeName& node, const Presence& present) {
  return {node, *present.mode, present.boot_id, present.image_digest, present.slot, present.trial};
}

}  // namespace

NodeTable::NodeTable(Reactor& reactor, Store& store, JournalWriter& journal, DurationMs silent_after)
    : reactor_(reactor),
      store_(store),
      journal_(journal),
      silent_after_(silent_after),
      began_(reactor.steady()),
      reporting_since_(began_) {}

NodeTable::~NodeTable() { alive_.end(); }

KnownAgent& NodeTable::agent(const NodeName& node) {
  auto& entry = agents_[node];
  if (entry) return *entry;
  entry = std::make_unique<KnownAgent>();
  load();
  restore_row(node, *entry);
  return *entry;
}

const KnownAgent* NodeTable::find(const NodeName& node) const {
  const auto it = agents_.find(node);
  return it == agents_.end() ? nullptr : it->second.get();
}

// After a silence of all agents the controller may have been cut off: all agents get time to report again.
void NodeTable::note_contact(KnownAgent& agent) {
  const SteadyMs now = reactor_.steady();
  if (now - last_message() >= silent_after_) {
    reporting_since_ = now;
    for (const auto& [name, other] : agents_)
      if (other->contact) other->silent_since = now;
  }
  last_message_ = now;
  agent.silent_since = agent.contact = now;
  agent.seen = reactor_.now();
}

NodeTable::Contact NodeTable::contact(const NodeName& node, const Presence& present) {
  KnownAgent& known = agent(node);
  const SteadyMs now = reactor_.steady();
  // Not computed from `silent_since`, which is moved forward when a silence does not count.
  const bool after_silence = now - (known.contact ? known.contact : known.silent_since) >= silent_after_;
  // For the first message to this process it is unknown whether the node was away before.
  if (after_silence || !known.contact) known.returned = now;
  const bool other_boot =
      !present.boot_id.empty() && present.boot_id != known.boot_id;  // its hello is derived from this request
  if (!known.greeted) {
    // It sent its hello to an earlier process of the controller. Its own report is newer than any row.
    if (present.mode) return {hello_of(node, present)};
    // Older agents send only their boot id. If it is the one in the row, the system in the row is running.
    const auto found = rows_.find(node);
    const bool same =
        found != rows_.end() && !present.boot_id.empty() && present.boot_id == found->second.boot_id;
    if (const auto mode = wire::mode_from_string(same ? found->second.mode : ""); same && mode.ok())
      return {Hello{node, *mode, present.boot_id, Digest(found->second.image_digest)}};
    if (other_boot) known.mode.reset();
  }
  // Events contain only the boot id: the slot is reported with the first request for orders.
  if (present.mode && !other_boot && known.slot.empty() && !present.slot.empty())
    return {hello_of(node, present)};
  // Whether the next boot is a trial is reported with its hello.
  if (present.mode && !other_boot) known.trial = present.trial;
  note_contact(known);
  if (!other_boot) known.spoke = known.contact;
  return {std::nullopt, !other_boot, after_silence};
}

bool NodeTable::hello(const Hello& hello, JournalWriter::Rows& rows) {
  KnownAgent& known = agent(hello.node);
  const bool new_boot = known.boot_id != hello.boot_id;
  known.mode = hello.mode;
  known.boot_id = hello.boot_id;
  if (new_boot || !hello.slot.empty()) known.slot = hello.slot;
  known.trial = hello.trial;
  known.loader_skipped = hello.loader_skipped;
  known.greeted = true;
  if (new_boot) known.returned = reactor_.steady();
  note_contact(known);
  known.spoke = known.contact;
  rows = changed(hello.node, [hello, now = known.seen](NodeRow& row) {
    row.mode = std::string(wire::to_string(hello.mode));
    row.boot_id = hello.boot_id;
    row.last_seen = now;
    if (hello.mode != wire::Mode::ram) row.image_digest = hello.image_digest;
  });
  return new_boot;
}

// The state when the controller ended. The agent's own report has priority; a restored row is not used.
void NodeTable::restore_row(const NodeName& node, KnownAgent& agent) const {
  const auto found = rows_.find(node);
  if (found == rows_.end() || agent.contact || older_than_restore(found->second)) return;
  const NodeRow& row = found->second;
  if (const auto mode = wire::mode_from_string(row.mode); mode.ok()) agent.mode = *mode;
  agent.boot_id = row.boot_id;
  if (row.last_seen > 0) agent.silent_since = steady_of(row.last_seen);
}

// True if the row is from before the database was restored, and was not confirmed since.
bool NodeTable::older_than_restore(const NodeRow& row) const {
  const TimeMs restored = store_.restored();
  return restored > 0 && row.last_seen <= restored;
}

// If the clock was set in the meantime, the time may be in the future: then it counts as now.
SteadyMs NodeTable::steady_of(TimeMs wall) const {
  return reactor_.steady() - std::max<DurationMs>(reactor_.now() - wall, 0);
}

void NodeTable::load() const {
  if (loaded_) return;
  const auto rows = store_.nodes();
  if (!rows.ok()) {
    if (!std::exchange(complained_, true))
      log::error("node rows cannot be read", {{"error", rows.error().message}});
    return;
  }
  loaded_ = true;
  complained_ = false;
  for (const auto& row : *rows) {
    NodeRow& kept = rows_[row.name];
    kept = row;
    kept.reason = short_reason(row.reason);  // earlier versions kept any length
  }
  for (const auto& [name, agent] : agents_)
    if (agent) restore_row(NodeName(name), *agent);
}

// An unknown row is not changed: a default row would replace the unreadable one and its bound machine. The
// changes wait until the rows can be read.
void NodeTable::read_later() {
  if (std::exchange(reading_, true)) return;
  reactor_.after(kSecond, alive_.wrap([this] {
    reading_ = false;
    load();
    if (!loaded_) return read_later();
    for (const auto& [node, change] : std::exchange(held_, {}))
      journal_.write(node, {changed_row(node, change)});
  }));
}

NodeRow NodeTable::row(const NodeName& node) const {
  load();
  NodeRow row;
  row.name = node;
  if (const auto it = rows_.find(node); it != rows_.end()) row = it->second;
  // Contacts are not written one by one.
  if (const KnownAgent* agent = find(node); agent && agent->contact) row.last_seen = agent->seen;
  return row;
}

DurationMs NodeTable::reporting_for() const {
  const SteadyMs now = reactor_.steady();
  return now - last_message() >= silent_after_ ? 0 : now - reporting_since_;
}

std::optional<DurationMs> NodeTable::silent_for(const NodeName& node) const {
  if (const KnownAgent* agent = find(node); agent && agent->contact)
    return reactor_.steady() - agent->contact;
  const NodeRow known = row(node);
  if (known.last_seen == 0 || older_than_restore(known)) return std::nullopt;
  // If the clock was set back, the contact may be in the future; in fact it was before this process began.
  return std::max<DurationMs>(reactor_.now() - known.last_seen, reactor_.steady() - began_);
}

TimeMs NodeTable::silent_since(const NodeName& node, DurationMs shown) const {
  const KnownAgent* agent = find(node);
  const bool spoke = agent && agent->contact;
  if (reactor_.steady() - (spoke ? agent->contact : began_) < shown) return 0;
  if (spoke) return agent->seen;
  load();
  const auto known = rows_.find(node);
  return known == rows_.end() ? 0 : known->second.last_seen;
}

bool NodeTable::outdated(const NodeName& node) const {
  if (store_.restored() == 0) return false;
  load();
  if (const KnownAgent* agent = find(node); agent && agent->greeted) return false;
  const auto found = rows_.find(node);
  return found == rows_.end() || older_than_restore(found->second);
}

bool NodeTable::ever_seen(const NodeName& node) const {
  const NodeRow known = row(node);
  return !loaded_ || !known.mode.empty() || !known.image_digest.empty() || store_.restored() > 0;
}

bool NodeTable::never_seen(const NodeName& node) const {
  if (!loaded_ || store_.restored() > 0 || rows_.count(node)) return false;
  const KnownAgent* agent = find(node);
  return !agent || !agent->contact;
}

JournalWriter::Rows NodeTable::changed(const NodeName& node, const Change& change) {
  load();
  // Changes are applied in order: earlier ones may still wait, even if the rows can be read again now.
  if (loaded_ && held_.empty()) return {changed_row(node, change)};
  held_.emplace_back(node, change);
  read_later();
  return {};
}

JournalWriter::Rows NodeTable::begun(const NodeName& node, const Action& action, TimeMs time) {
  const auto slot = written_by(action);
  if (!slot) return {};
  load();
  if (const auto known = rows_.find(node); known != rows_.end() && held_.empty()) {
    const auto last = known->second.disk_written.find(*slot);
    if (last != known->second.disk_written.end() && last->second >= time) return {};
  }
  return changed(node, [slot = *slot, time](NodeRow& row) {
    TimeMs& last = row.disk_written[slot];
    last = std::max(last, time);  // the clock may have been set back
  });
}

Write NodeTable::changed_row(const NodeName& node, const Change& change) {
  NodeRow changed = row(node);
  change(changed);
  NodeRow& kept = rows_[node];
  note_hold(changed, kept, reactor_.now());
  note_fault(changed, kept);
  if (kept.product_uuid != changed.product_uuid) machines_.reset();
  kept = changed;
  return changed;
}

bool NodeTable::forget(const NodeName& node) {
  load();
  if (!loaded_ || !held_.empty()) return false;
  rows_.erase(node);
  machines_.reset();
  agents_.erase(node);
  return true;
}

std::shared_ptr<const Machines> NodeTable::machines() const {
  load();
  if (machines_ || !loaded_) return machines_;
  auto made = std::make_shared<Machines>();
  for (const auto& [name, known] : rows_)
    if (known.state != NodeState::unadmitted) made->bind(known.product_uuid, name);
  return machines_ = made;
}

}  // namespace muster
