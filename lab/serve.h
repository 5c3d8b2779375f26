// `muster lab serve`: the process with the simulated hardware: all BMCs, all QEMU processes, and the control
// socket DIR/lab.sock.
//
// Runs inside the lab's network namespace until SIGTERM (machines lose power) or SIGKILL (machines keep
// running and are found again through their pid files, by the next serve or by `muster lab down`). Control
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

// The client side of the control API. `unavailable` when no serve process answers.
Result<Json> control(const LabDir& dir, const std::string& method, const std::string& path, const Json& body,
                     DurationMs deadline = 60 * kSecond);

// For tests against independent Redfish clients: one BMC of `profile` on 127.0.0.1 with a FAKE machine
// (lab/fake_machine.h) behind it. Prints "listening PORT" and blocks.
Status serve_fake_bmc(const std::string& profile, uint16_t port, const std::string& password, bool tls);

}  // namespace muster::lab
