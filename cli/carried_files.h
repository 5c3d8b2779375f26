// Embeds in a spec the files that it names but the controller cannot read: their texts are appended in a
// section `carried`, so that the stored revision is complete. Thread: any.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster::cli {

// Returns `spec` with the texts of acceptance.gpu_results and gpu_results_key (paths relative to `folder`)
// appended. Unchanged if it names no such files, already contains them (the files may then be missing), or is
// not YAML (reported elsewhere). Code::invalid: a file cannot be read, or differs from its copy in `carried`.
Result<std::string> with_carried_files(std::string spec, const std::string& folder, const Files& files);

}  // namespace muster::cli
