// Combines several steps of other modules into one: storage engines consist mostly of files, folders and
// units in the right order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {

struct Part {
  StepModule module;
  Json params;
};
Result<CheckResult> check_parts(StepContext& context, const std::vector<Part>& parts);
// In order; a part that already holds is not changed.
Status apply_parts(StepContext& context, const std::vector<Part>& parts);

// `check` and `apply` of a module that consists of `parts`, a function of its parameters.
template <auto parts, typename W>
Result<CheckResult> check_made(StepContext& context, const W& want) {
  TRY(const auto list, parts(context, want));
  return check_parts(context, list);
}
template <auto parts, typename W>
Status apply_made(StepContext& context, const W& want) {
  TRY(const auto list, parts(context, want));
  return apply_parts(context, list);
}

inline constexpr const char* kHead = "# Written by muster.\n";
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

struct StorageMember {
  std::string name, address;
};
MUSTER_RECORD(StorageMember, lenient, opt(name), opt(address))

// A client, of which only the address is read.
struct StorageClient {
  std::string address;
};
MUSTER_RECORD(StorageClient, lenient, opt(address))
// Returns the addresses, each of which must be that of a single host.
Result<std::vector<std::string>> client_addresses(const std::vector<StorageClient>& clients,
                                                  const std::string& module);

}  // namespace muster::steps
