// Sends files, never from outside the given folder.
#pragma once

#include <string>

#include "controller/api/api.h"

namespace muster::api {

// Sends the file at `path`, or responds with 404.
void send_file(const CallPtr& call, const std::string& path);
// Sends `name` below `folder`; 404 if it is not a regular file, contains "..", or is a link to the outside.
void send_below(const CallPtr& call, const std::string& folder, const std::string& name);

}  // namespace muster::api
