// What is believed about a node's agent. Outlives runs. Thread: a value.
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
  std::string slot;       // it runs from (Hello::slot); "": none, or not known yet
  bool trial = false;     // it is on trial (Hello::trial), as it said last
  bool greeted = false;   // it said what it is to this process; else the row's word is all there is
  SteadyMs contact = {};  // last word from it in this process
  SteadyMs spoke = {};  // last word of the boot that said hello; a later boot may speak before its hello was
                        // looked at
  TimeMs seen = 0;      // `contact` for people
  SteadyMs heard = {};  // where silence is counted from: its last contact, or later when that would be unfair
  SteadyMs returned = {};  // when it was last heard again after silence or a boot
};

}  // namespace muster
