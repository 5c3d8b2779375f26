// Files that a spec names and the controller cannot read: their texts go with the spec, in a section
// `carried` at its end, so that the stored revision is complete. Thread: any.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster::cli {

// `spec` with the texts of acceptance.gpu_results and gpu_results_key, relative to `folder`. Unchanged if it
// names none, has them already (section `carried`; the files may be gone), or is not YAML (reported
// elsewhere). Code::invalid for a file that cannot be read, or that differs from its copy in `carried`.
Result<std::string> with_carried_files(std::string spec, const std::string& folder, const Files& files);

}  // namespace muster::cli
