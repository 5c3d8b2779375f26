#include "controller/run/limits.h"

#include <algorithm>

namespace muster {

Limits::Lane Limits::lane_of(ActionKind kind) {
  if (kind == ActionKind::image) return Lane::imaging;
  if (kind == ActionKind::netboot) return Lane::netboot;
  return Lane::free;
}

TimeMs Limits::earliest(Lane lane, TimeMs now) const {
  if (lane == Lane::free) return 0;
  const bool imaging = lane == Lane::imaging;
  const int most = imaging ? limits_.parallel_imaging : limits_.parallel_netboot;
  if (static_cast<int>((imaging ? imaging_ : netboot_).size()) >= std::max(most, 1)) return -1;
  if (imaging || !powered_ || now >= last_power_on_ + limits_.power_stagger) return 0;
  return last_power_on_ + limits_.power_stagger;
}

void Limits::begin(Lane lane, const std::string& node, TimeMs now) {
  if (lane == Lane::imaging) imaging_.insert(node);
  if (lane != Lane::netboot) return;
  netboot_.insert(node);
  last_power_on_ = now;
  powered_ = true;
}

void Limits::end(Lane lane, const std::string& node) {
  if (lane == Lane::imaging) imaging_.erase(node);
  if (lane == Lane::netboot) netboot_.erase(node);
}

bool Limits::holds(Lane lane, const std::string& node) const {
  return lane == Lane::free || (lane == Lane::imaging ? imaging_ : netboot_).count(node) > 0;
}

size_t Limits::in_flight(Lane lane) const {
  if (lane == Lane::free) return 0;
  return (lane == Lane::imaging ? imaging_ : netboot_).size();
}

}  // namespace muster
