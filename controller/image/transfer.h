// Transfers a built image from one controller to another as one file, so that it need not be built twice.
//
// The file is a tar archive: muster-image.json first (kTransferFormat, name, digest, the tree of the RAM
// system entry by entry with its SHA-256, how the image was built), then manifest.json, frames.zst, the files
// that the manifest names, and ram/. It may be compressed in any way that tar supports. The image's digest
// does not cover the tree of the RAM system; muster-image.json does, but is not signed, so an archive is only
// as trustworthy as its source. Not included: the packed RAM system, which every controller makes with its
// own agent. Thread: blocking (as long as reading and hashing the image takes); for worker threads.
#pragma once

#include <string>

#include "base/result.h"
#include "controller/image/image.h"
#include "sys/os.h"

namespace muster {

constexpr int kTransferFormat = 1;

// Writes the current image of that name to `path` (absolute; Code::conflict if it exists). Everything is
// verified while it is written: a damaged image is not exported (Code::corrupt). On failure no file is left
// in the folder of `path`.
Result<ImageInfo> export_image(const std::string& state_dir, const std::string& name, const std::string& path,
                               Process& process, const ImageProgress& progress);

// Imports the image in `path` (absolute: an exported file, or a folder it was unpacked into) and makes it the
// current version of its name. Every frame and file is first compared with its digest. `reused` if this
// version is already complete: then only the link `current` changes. Code::invalid: not such an archive, or
// of another version; Code::corrupt: it, or the existing version, is damaged; Code::unavailable: not enough
// disk space. On failure the images are as before.
Result<ImageInfo> import_image(const std::string& state_dir, const std::string& path, Process& process,
                               const ImageProgress& progress);

}  // namespace muster
