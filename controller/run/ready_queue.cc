#include "controller/run/ready_queue.h"

#include <utility>

namespace muster {

void ReadyQueue::add(size_t node) {
  drop(node);
  ready_.insert(node);
}

void ReadyQueue::add_all() {
  for (size_t node = 0; node < wants_.size(); ++node) add(node);
}

void ReadyQueue::drop(size_t node) {
  ready_.erase(node);
  const Want& want = wants_[node];
  Waiters* waiters = want.what == For::action ? waiters_of(want.action) : nullptr;
  if (waiters) waiters->nodes.erase(node);
  if (want.what == For::barrier) barriers_[want.barrier].waiting.erase(node);
  if (want.what == For::place) places_[want.lane].erase(node);
  wants_[node] = {};
}

ReadyQueue::Waiters* ReadyQueue::waiters_of(const Awaited& what) {
  const auto found = of_[what.of].find(what.action);
  return found == of_[what.of].end() ? nullptr : &found->second;
}

void ReadyQueue::wait_for(size_t node, Awaited what) {
  drop(node);
  of_[what.of][what.action].nodes.insert(node);
  wants_[node] = {For::action, std::move(what)};
}

void ReadyQueue::wait_for_barrier(size_t node, size_t barrier, Awaited member) {
  drop(node);
  barriers_[barrier].waiting.insert(node);
  wants_[node] = {For::barrier, {}, barrier};
  hold(barrier, std::move(member));
}

void ReadyQueue::wait_for_place(size_t node, Lane lane) {
  drop(node);
  places_[lane].insert(node);
  wants_[node] = {For::place, {}, 0, lane};
}

void ReadyQueue::hold(size_t barrier, Awaited member) {
  Barrier& held = barriers_[barrier];
  if (held.member.action != member.action && !held.member.action.empty())
    if (Waiters* before = waiters_of(held.member)) before->barriers.erase(barrier);
  of_[member.of][member.action].barriers.insert(barrier);
  held.member = std::move(member);
}

void ReadyQueue::wake(Waiters waiters) {
  for (const size_t node : waiters.nodes) add(node);
  due_.insert(waiters.barriers.begin(), waiters.barriers.end());
}

void ReadyQueue::succeeded(const Awaited& what) {
  const auto found = of_[what.of].find(what.action);
  if (found == of_[what.of].end()) return;
  Waiters waiters = std::move(found->second);
  of_[what.of].erase(found);
  wake(std::move(waiters));
}

void ReadyQueue::changed(size_t node) {
  for (auto& [action, waiters] : std::exchange(of_[node], {})) wake(std::move(waiters));
}

std::optional<ReadyQueue::Due> ReadyQueue::next_barrier() {
  while (!due_.empty()) {
    const size_t barrier = *due_.begin();
    due_.erase(due_.begin());
    const Barrier& held = barriers_[barrier];
    if (!held.waiting.empty()) return Due{barrier, held.member.action};
  }
  return {};
}

void ReadyQueue::open(size_t barrier) {
  for (const size_t node : std::exchange(barriers_[barrier].waiting, {})) add(node);
}

std::optional<size_t> ReadyQueue::next(size_t from, const std::function<bool(Lane)>& has_place) {
  std::optional<size_t> first;
  const auto look_in = [&](const std::set<size_t>& nodes) {
    const auto found = nodes.lower_bound(from);
    if (found != nodes.end() && (!first || *found < *first)) first = *found;
  };
  look_in(ready_);
  for (const auto& [lane, waiting] : places_)
    if (has_place(lane)) look_in(waiting);
  if (first) drop(*first);
  return first;
}

const std::string* ReadyQueue::awaited(size_t node) const {
  const Want& want = wants_[node];
  if (want.what == For::action) return &want.action.action;
  return want.what == For::barrier ? &barriers_.at(want.barrier).member.action : nullptr;
}

}  // namespace muster
