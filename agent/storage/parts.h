// Combines several steps of other modules into one: storage engines consist mostly of files, folders and
// units in the right order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/steps/step_modules.h"

namespace muster::steps {

struct Part {
  StepModule module;
  Json params;
};
// Returns all differences at once.
Result<CheckResult> check_parts(StepContext& context, const std::vector<Part>& parts);
// Applies the parts in order; a part that already holds is not changed.
Status apply_parts(StepContext& context, const std::vector<Part>& parts);

using Parts = std::function<Result<std::vector<Part>>(const StepContext&, const Json&)>;
StepModule made_of(std::string name, std::string help, Json parameters, Parts parts);

Part file_part(const std::string& path, const std::string& content, const std::string& mode = "0644");
Part service_part(const std::string& unit, const std::vector<std::string>& restart_for);

// Calls `lacking` until it returns "" or the deadline passes; the error then contains its last text. Each
// changed text is reported as progress. An error of `lacking` counts as "not yet".
Status wait_for_storage(StepContext& context, int64_t seconds,
                        const std::function<Result<std::string>()>& lacking);

// The user that an NFS server maps the root of clients to (root_squash).
inline constexpr const char* kNobody = "nobody";
inline constexpr const char* kNoGroup = "nogroup";
// The top folder of such a file system, and .muster in it for agents' files: every user may create files in
// the first, only `nobody` in the second. Both belong to `nobody`: in a folder of a different user, the
// kernel prevents root from reopening files that the server gave to `nobody` (fs.protected_regular), and
// `nobody` from removing files of the server's own root.
std::vector<Part> open_top(const std::string& path);

// Returns the addresses of [{name, address}]: at least one, and each of a single host.
Result<std::vector<std::string>> client_addresses(const Json& list, const std::string& module);

}  // namespace muster::steps
