// The folder <state>/images/<name> of one image: allows one writer at a time, and selects the current
// version. Thread: blocking; for worker threads.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/lock_file.h"

namespace muster {

// Letters, digits and . _ -, not starting with . or -: becomes a folder name and a program argument.
bool valid_image_name(const std::string& name);

// Takes the lock that is held while an image is built or imported; it is released when the process ends.
// Creates the folder. Code::conflict if another process holds the lock.
Result<LockFile> lock_image(const std::string& folder);

// Points <folder>/current at `version`, atomically.
Status make_current(const std::string& folder, const std::string& version);

}  // namespace muster
