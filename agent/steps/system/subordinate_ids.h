// The subordinate UIDs and GIDs of an account (subuid(5)), to which rootless containers map their own users.
//
// The range follows from the UID, so files in a container's storage keep their owner over re-images and
// between nodes. useradd's own choice is the next free range, which depends on the order in which accounts
// are created. Pure function.
#pragma once

#include <cstdint>
#include <optional>

namespace muster::steps {

inline constexpr int64_t kSubordinateIds = 65536;             // of each account
inline constexpr int64_t kLastSubordinateId = 4'294'967'294;  // the kernel's largest id is not one

// The first id of the range for an account with this UID; none for UIDs that are no user's.
std::optional<int64_t> subordinate_start(int64_t uid);

}  // namespace muster::steps
