// Driver `manual`: a person switches the machine, since nothing else can.
//
// What a run needs done is asked of a person (controller/power/by_hand.h) and waited for; see
// PowerPort::by_hand. Of the driver itself there is nothing to be had: state is `unknown`, and on, off and
// the network boot are refused (`invalid`), because a call has a deadline of a minute and a person comes
// when they come.
#pragma once

#include "controller/power/power.h"

namespace muster {

PowerDriver manual_driver();

}  // namespace muster
