// The known state of a node's agent. Outlives runs. Thread: a value.
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
  std::string slot;       // that it runs from (Hello::slot); "": none, or not known yet
  bool trial = false;     // a trial boot (Hello::trial), from its last report
  bool greeted = false;   // it sent a hello to this process; else only the row is known
  SteadyMs contact = {};  // last message from it in this process
  SteadyMs spoke = {};  // last message of the boot that sent a hello; a later boot may send others before its
                        // hello was handled
  TimeMs seen = 0;      // `contact` for people
  SteadyMs heard = {};  // where silence is counted from: its last contact, or later, if the node could not
                        // report
  SteadyMs returned = {};  // when it last reported again after silence or a boot
};

}  // namespace muster
