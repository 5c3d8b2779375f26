// Sending files: never from outside the given folder.
#pragma once

#include <string>

#include "controller/api/api.h"

namespace muster::api {

// That very file, or 404.
void send_file(const CallPtr& call, const std::string& path);
// `name` below `folder`; 404 for anything that is not a plain file there, "..", and links that lead out.
void send_below(const CallPtr& call, const std::string& folder, const std::string& name);

}  // namespace muster::api
