// The folder of one image's name, <state>/images/<name>: one writer at a time, and which version is the
// present one. Thread: blocking; for worker threads.
#pragma once

#include <string>

#include "base/lock_file.h"
#include "base/result.h"

namespace muster {

// Letters, digits and . _ -, not starting with . or -: it becomes a folder's name and an argument of
// programs.
bool valid_image_name(const std::string& name);

// Held while an image is built or imported; gone with the process, however it ends. Creates the folder.
// Code::conflict if another process holds it.
Result<LockFile> lock_image(const std::string& folder);

// Points <folder>/current at `version`, atomically.
Status make_current(const std::string& folder, const std::string& version);

}  // namespace muster
