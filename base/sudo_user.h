// The header in which `muster` sends the name of the user who called sudo, to the controller's Unix socket.
// The controller believes it from root alone (controller/api/caller.h). Thread safety: a constant.
#pragma once

namespace muster {

inline constexpr char kSudoUserHeader[] = "Muster-Sudo-User";

}  // namespace muster
