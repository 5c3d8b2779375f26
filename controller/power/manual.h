// Driver `manual`: an operator switches the machine by hand, since nothing else can.
//
// The run creates a manual task (controller/power/service/power_service.h) and waits for it; see
// PowerPort::switcher. The driver itself can do nothing: state is `unknown`, and on, off and the network boot
// return `invalid`, because a call has a deadline of a minute and an operator may take hours.
#pragma once

#include "controller/ports/power.h"

namespace muster {

PowerDriver manual_driver();

}  // namespace muster
