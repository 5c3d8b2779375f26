// Tests whether KVM works: boots a machine's firmware with a deadline, because nested KVM may be present and
// open without error, and then hang in the firmware's first real-mode code. The call blocks.
#pragma once

#include <string>

#include "base/time.h"
#include "lab/lab_dir.h"
#include "lab/qemu_args.h"

namespace muster::lab {

struct KvmProbe {
  Accel accel = Accel::tcg;
  std::string reason;  // "firmware up in 1.4 s", "no /dev/kvm", "firmware not up within 12 s"
};
KvmProbe probe_kvm(const LabDir& dir, const QemuHost& host, DurationMs deadline = 12 * kSecond);

}  // namespace muster::lab
