// EventDoor: the limits of what an agent may send as events, so that a node speaks for itself only, controls
// no display and cannot fill the controller.
//
// Called before anything of a batch is used. Thread: the reactor's.
#pragma once

#include <map>
#include <string>

#include "base/names.h"
#include "base/result.h"
#include "base/steady.h"
#include "base/wire.h"
#include "controller/spec/spec.h"

namespace muster {

class EventDoor {
 public:
  void set_limits(const EventLimits& limits) { limits_ = limits; }

  // Cleans the batch's texts (base/printable.h), and cuts down events that are too large. Code::denied: it
  // has a kind of events that agents do not send; Code::unavailable: the node is beyond its share, and will
  // be heard again after a while. Of a refused batch only `boot_id` may be used.
  Status admit(const NodeName& node, wire::EventBatch& batch, SteadyMs now);

 private:
  // What a node may still send. Below zero after a batch that was larger than what was left.
  struct Share {
    double events = 0, bytes = 0;
    SteadyMs at = {};
  };
  Share& share_of(const NodeName& node, SteadyMs now);

  EventLimits limits_;
  std::map<std::string, Share> shares_;
};

}  // namespace muster
