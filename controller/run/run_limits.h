// Limits: how much may run at once. Only counts: the executor checks before a start and reports each end.
// Thread: the reactor's.
#pragma once

#include <set>
#include <string>

#include "base/names.h"
#include "base/steady.h"
#include "controller/plan/plan.h"

namespace muster {

class Limits {
 public:
  explicit Limits(PlanLimits limits = {}) : limits_(limits) {}

  enum class Lane { free, imaging, netboot };  // free: no limit
  static Lane lane_of(ActionKind kind);

  bool may_begin(Lane lane) const;
  void begin(Lane lane, const NodeName& node);
  void end(Lane lane, const NodeName& node);
  bool holds(Lane lane, const NodeName& node) const;
  size_t in_flight(Lane lane) const;
  // `now` or later. reserve_power_on() also reserves that time, so that two power-ons are never closer
  // together than the stagger.
  SteadyMs next_power_on(SteadyMs now) const;
  SteadyMs reserve_power_on(SteadyMs now);
  bool budget_spent(int quarantined) const { return quarantined > limits_.failure_budget; }
  const PlanLimits& limits() const { return limits_; }

 private:
  PlanLimits limits_;
  std::set<std::string> imaging_, netboot_;
  SteadyMs last_power_on_;
  bool powered_ = false;
};

}  // namespace muster
