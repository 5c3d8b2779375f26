// The packages of an image, as recorded when it was built, and the differences between two such lists.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace muster {

using PackageList = std::map<std::string, std::string>;  // name -> version

// Parses dpkg's status file; returns the installed packages. Pure.
PackageList installed_packages(const std::string& status);
// The package that brings NVIDIA's kernel module, as Debian, Ubuntu and NVIDIA name it ("nvidia-kernel-dkms",
// "nvidia-dkms-570-open", "linux-modules-nvidia-570-server-generic"); "": none. A driver that an installer
// (.run) put there is no package. Pure.
std::string nvidia_driver_in(const PackageList& packages);
// Returns {added: {name: version}, removed: {name: version}, changed: {name: {from, to}}}. Pure.
Json package_changes(const PackageList& before, const PackageList& after);
// Returns the packages of the image with this digest, under any name; not_found if it is not stored on this
// controller, or was built by a version that recorded none. Blocking.
Result<PackageList> packages_of_image(const std::string& state_dir, const std::string& digest);

}  // namespace muster
