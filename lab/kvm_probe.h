// Whether KVM works: a machine is started through the firmware under a deadline, because nested KVM may
// exist, open, and then hang in the firmware's first real-mode steps. Thread: blocking.
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
