// Reads the spec that an operator names, with all that it refers to on the operator's disk: the lab's key,
// reference results for GPUs, and the texts of playbooks named by path (relative to the spec's folder).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"
#include "sys/os.h"

namespace muster::cli {

// Returns `spec` with the texts of acceptance.gpu_results and gpu_results_key (paths relative to `folder`)
// appended. Unchanged if it names no such files, already contains them (the files may then be missing), or is
// not YAML (reported elsewhere). Code::invalid: a file cannot be read, or differs from its copy in `carried`.
Result<std::string> with_carried_files(std::string spec, const std::string& folder, const Files& files);

struct SpecFile {
  std::string text;               // as sent to the controller
  std::vector<SpecError> errors;  // of the key `playbooks`: missing files, texts that cannot be embedded
};
// Returns an Error if the spec itself cannot be read. A spec with errors in its content is returned as it is.
Result<SpecFile> read_spec_file(const std::string& path);
// The same for a text; paths in it are relative to `folder`, an absolute path.
Result<SpecFile> read_spec_text(std::string text, const std::string& folder);

}  // namespace muster::cli
