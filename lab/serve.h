// `muster lab serve`: simulates the hardware: all BMCs, the QEMU processes, the control socket DIR/lab.sock.
//
// Runs inside the lab's network namespace until SIGTERM (machines lose power) or SIGKILL (machines keep
// running, and the next serve or `muster lab down` finds them through their PID files). Control
// API (HTTP over the Unix socket): GET /status, POST /break, POST /add {"name"}, POST /chassis {"node",
// "words"} (requests of ipmi_sim, through `muster lab chassis`); errors as {"code","message"}.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "lab/lab_dir.h"
#include "lab/qemu_args.h"

namespace muster::lab {

Status serve(const LabDir& dir, const QemuHost& host);  // blocks

// Sends a request to the control API. `unavailable` if no serve process responds.
Result<Json> control(const LabDir& dir, const std::string& method, const std::string& path, const Json& body,
                     DurationMs deadline = 60 * kSecond);

// For tests with independent Redfish clients: serves one BMC of `profile` on 127.0.0.1, which controls a FAKE
// machine (lab/fake_machine.h). Prints "listening PORT" and blocks.
Status serve_fake_bmc(const std::string& profile, uint16_t port, const std::string& password, bool tls);

}  // namespace muster::lab
