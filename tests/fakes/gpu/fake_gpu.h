// Shared by the parts of the made-up GPU (runtime.cc, launchers.cc).
#pragma once

namespace fake_gpu {

// The calling thread's current device.
int device();

}  // namespace fake_gpu
