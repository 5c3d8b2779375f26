// The packages of an image, as recorded when it was built, and how those of another image differ.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace muster {

using PackageList = std::map<std::string, std::string>;  // name -> version

// Those that are installed, of the text of dpkg's status file. Pure.
PackageList installed_packages(const std::string& status);
// {added: {name: version}, removed: {name: version}, changed: {name: {from, to}}}. Pure.
Json package_changes(const PackageList& before, const PackageList& after);
// Of the image with this digest, whatever its name; not_found where it is not stored on this controller, or
// was built by a version that recorded none. Blocking.
Result<PackageList> packages_of_image(const std::string& state_dir, const std::string& digest);

}  // namespace muster
