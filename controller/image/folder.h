// The folder <state>/images/<name> of one image: allows one writer at a time, selects the current version,
// and reads what is recorded of a build. Thread: blocking; for worker threads.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/lock_file.h"

namespace muster {

// Letters, digits and . _ -, not starting with . or -: becomes a folder name and a program argument.
bool valid_image_name(const std::string& name);

// Takes the lock that is held while an image is built or imported; it is released when the process ends.
// Creates the folder. Code::conflict if another process holds the lock.
Result<LockFile> lock_image(const std::string& folder);

// Points <folder>/current at `version`, atomically.
Status make_current(const std::string& folder, const std::string& version);

// Key in build.json: wall clock of the machine that built it.
constexpr const char* kBuiltAt = "built_at";
// True for the 64 hexadecimal digits of a digest, which name the folder of a finished build.
bool is_build_name(const std::string& name);
// build.json of a build's folder; {} if it cannot be read.
Json build_record(const std::string& build);
// When it was built; 0: unknown. An earlier version recorded no time, but a finished build is never changed:
// then it is that of its manifest's file.
TimeMs built_at(const std::string& build);

}  // namespace muster
