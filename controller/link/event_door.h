// EventDoor: the limits of what an agent may send as events, so that a node speaks for itself only, controls
// no display and cannot fill the controller.
//
// A share is charged with what the controller stores of an event, not with what the agent calls its data, and
// with each event once, however often it is sent. It never falls below zero. Called before anything of a
// batch is used. Thread: the reactor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/names.h"
#include "base/steady.h"
#include "base/wire.h"
#include "controller/spec/spec.h"

namespace muster {

class EventDoor {
 public:
  void set_limits(const EventLimits& limits) { limits_ = limits; }

  struct Admitted {
    uint64_t up_to = 0;    // numbers up to here are done with: taken, or dropped
    size_t dropped = 0;    // events of kinds that agents do not send
    size_t left = 0;       // events that stay at the node: it is beyond its share, for a while
    bool repeats = false;  // some were taken before
    std::string dropped_why, left_why;
    size_t stored = 0;  // bytes that the events taken are charged with
  };

  // Cleans the names in it (base/printable.h), by which what was taken before is found.
  static void clean_names(wire::EventBatch& batch);
  // Leaves in the batch what is taken: events after the number `taken`, up to the first for which the share
  // does not suffice. Cleans their texts, and cuts down those that are too large.
  Admitted admit(const NodeName& node, wire::EventBatch& batch, uint64_t taken, SteadyMs now);
  // A whole share: another system speaks for the node now.
  void begin_anew(const NodeName& node) { shares_.erase(node.str()); }

 private:
  // What a node may still send.
  struct Share {
    double events = 0, bytes = 0;
    double urgent = 0;  // besides: small events without which the node cannot go on
    SteadyMs at = {};
  };
  Share& share_of(const NodeName& node, SteadyMs now);
  bool charge(Share& share, const wire::Event& event, size_t size) const;
  size_t tidy(const NodeName& node, wire::Event& event) const;

  EventLimits limits_;
  std::map<std::string, Share> shares_;
};

}  // namespace muster
