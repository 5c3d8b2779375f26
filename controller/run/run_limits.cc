#include "controller/run/run_limits.h"

#include <algorithm>

namespace muster {

Limits::Lane Limits::lane_of(ActionKind kind) {
  if (kind == ActionKind::image || kind == ActionKind::write_slot) return Lane::imaging;
  if (kind == ActionKind::netboot || kind == ActionKind::wake) return Lane::netboot;
  return Lane::free;
}

bool Limits::may_begin(Lane lane) const {
  if (lane == Lane::free) return true;
  const int most = lane == Lane::imaging ? limits_.parallel_imaging : limits_.parallel_netboot;
  return static_cast<int>(in_flight(lane)) < std::max(most, 1);
}

void Limits::begin(Lane lane, const NodeName& node) {
  if (lane == Lane::imaging) imaging_.insert(node);
  if (lane == Lane::netboot) netboot_.insert(node);
}

SteadyMs Limits::next_power_on(SteadyMs now) const {
  return powered_ ? std::max(now, last_power_on_ + limits_.power_stagger) : now;
}

SteadyMs Limits::reserve_power_on(SteadyMs now) {
  last_power_on_ = next_power_on(now);
  powered_ = true;
  return last_power_on_;
}

void Limits::end(Lane lane, const NodeName& node) {
  if (lane == Lane::imaging) imaging_.erase(node);
  if (lane == Lane::netboot) netboot_.erase(node);
}

bool Limits::holds(Lane lane, const NodeName& node) const {
  return lane == Lane::free || (lane == Lane::imaging ? imaging_ : netboot_).count(node) > 0;
}

size_t Limits::in_flight(Lane lane) const {
  if (lane == Lane::free) return 0;
  return (lane == Lane::imaging ? imaging_ : netboot_).size();
}

}  // namespace muster
