// The known state of a node's agent, which outlives runs. Thread safety: plain value type.
#pragma once

#include <optional>
#include <string>

#include "base/steady.h"
#include "base/time.h"
#include "base/wire.h"

namespace muster {

struct KnownAgent {
  std::optional<wire::Mode> mode;
  std::string boot_id;
  std::string slot;       // root slot it runs from (Hello::slot); "": none, or not known yet
  bool trial = false;     // a trial boot (Hello::trial), from its last report
  bool greeted = false;   // it sent a hello to this process; else only its row is known
  SteadyMs contact = {};  // last message from it in this process
  SteadyMs spoke = {};    // last message from the boot that sent the hello; a later boot may send messages
                          // before its hello was handled
  TimeMs seen = 0;        // `contact` as wall time, for display
  SteadyMs silent_since = {};  // its last contact; later if it could not report
  SteadyMs returned = {};      // when it last reported again after silence or a boot
};

}  // namespace muster
