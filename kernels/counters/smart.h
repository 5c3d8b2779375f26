// What NVMe drives report about their own health: the SMART log (NVM Express base specification, log page
// 02h). Thread safety: stateless functions.
#pragma once

#include <functional>
#include <string>

#include "kernels/common/kernels.h"
#include "kernels/counters/moved.h"

namespace muster::kernels {

// Returns the log's 512 bytes. `device`: "/dev/nvme0". Code::denied: not root. Ends within seconds, also if
// the drive does not answer.
Result<std::string> read_smart_log(const std::string& device);
using QuerySmart = std::function<Result<std::string>(const std::string& device)>;

// Adds these metrics, of this machine's NVMe drives:
//   drive_warnings   drives with a critical warning: spares used up, too hot, unreliable, read-only, or their
//                    backup of power failed
//   drive_wear       the highest share of its life that a drive has used up, in percent of what its maker
//                    guarantees; may be above 100
// detail.smart: {PART: {"warning", "spare", "used", "media_errors"}}; a drive whose log cannot be read has
// the reason there. Without NVMe drives, or without a log, both are in `moved.absent`.
void add_smart(const Files& files, const QuerySmart& query, Measurement& out, Moved& moved);

}  // namespace muster::kernels
