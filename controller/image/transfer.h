// Transfers a built image from one controller to another as one file, so that it need not be built twice.
//
// The file is a tar archive: muster-image.json first (kTransferFormat, name, digest, the tree of the RAM
// system entry by entry with its SHA-256, how the image was built), then manifest.json, frames.zst, the files
// that the manifest names, and ram/. It may be compressed in any way that tar supports. What the digest of
// the image does not cover, the tree of the RAM system, is covered by muster-image.json: that file is not
// signed, so an archive is only as trustworthy as its source. Not included: the packed RAM system, which
// every controller makes with its own agent. Thread: blocking (as long as reading and hashing the image
// takes); for worker threads.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"
#include "controller/image/image.h"

namespace muster {

constexpr int kTransferFormat = 1;

// Writes the present image of that name to `path` (absolute; Code::conflict when it exists). Everything is
// verified on the way: a damaged image is not passed on (Code::corrupt). On failure nothing is left at `path`
// or beside it.
Result<ImageInfo> export_image(const std::string& state_dir, const std::string& name, const std::string& path,
                               Process& process, const ImageProgress& progress);

// Takes the image in `path` (absolute: an exported file, or a folder it was unpacked into) and makes it the
// present one of its name. Every frame and file is compared with its digest first. `reused` if this version
// exists and is complete: then only the choice of the present version is written. Code::invalid: not such an
// archive, or one of another version; Code::corrupt: it, or the existing version, is damaged;
// Code::unavailable: not enough disk space. On failure the images are as they were before.
Result<ImageInfo> import_image(const std::string& state_dir, const std::string& path, Process& process,
                               const ImageProgress& progress);

}  // namespace muster
