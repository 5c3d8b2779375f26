// Driver `manual`: a person switches the machine, since nothing else can.
//
// What a run needs done is a manual task (controller/power/by_hand.h) that the run waits for; see
// PowerPort::by_hand. The driver itself can do nothing: state is `unknown`, and on, off and the network boot
// are refused (`invalid`), because a call has a deadline of a minute and a person may take hours.
#pragma once

#include "controller/power/power.h"

namespace muster {

PowerDriver manual_driver();

}  // namespace muster
