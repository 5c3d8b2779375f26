// Several steps of other modules as one: storage engines are mostly files, folders and units in the right
// order.
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
// All differences at once.
Result<CheckResult> check_parts(StepContext& context, const std::vector<Part>& parts);
// In order; a part that holds already is left alone.
Status apply_parts(StepContext& context, const std::vector<Part>& parts);

using Parts = std::function<Result<std::vector<Part>>(const StepContext&, const Json&)>;
StepModule made_of(std::string name, std::string help, Json parameters, Parts parts);

Part file_part(const std::string& path, const std::string& content, const std::string& mode = "0644");
Part service_part(const std::string& unit, const std::vector<std::string>& restart_for);

// Asks until `lacking` says "", or the deadline passes: then its last words are in the error. What it says is
// a line of progress each time it changes. An error counts as not yet.
Status wait_for_storage(StepContext& context, int64_t seconds,
                        const std::function<Result<std::string>()>& lacking);

// Whom root of a client is to a server that squashes it.
inline constexpr const char* kNobody = "nobody";
inline constexpr const char* kNoGroup = "nogroup";
// The top folder of such a file system, and .muster in it for what agents write: everybody may put something
// into the first, only nobody into the second. Both belong to nobody: in a folder of somebody else, kernels
// keep root from opening again what the server gave to nobody (fs.protected_regular), and nobody from
// removing what the server's own root left.
std::vector<Part> open_top(const std::string& path);

// Addresses of [{name, address}]: each a single host's, and one at least once.
Result<std::vector<std::string>> client_addresses(const Json& list, const std::string& module);

}  // namespace muster::steps
