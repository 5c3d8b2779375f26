#include "agent/image/blobs.h"

#include <fmt/format.h>

#include "base/digest.h"

namespace muster {

std::string folder_of_path(const std::string& path) { return path.substr(0, path.find_last_of('/') + 1); }

Result<ImageManifest> fetch_manifest(const wire::ImageJob& job, BlobSource& source) {
  TRY(const std::string text, source.whole(job.manifest_path));
  TRY(ImageManifest manifest, manifest_from_text(text));
  if (manifest.digest != job.digest)
    return fail(Code::corrupt, fmt::format("the controller serves image {}, but the plan names {}",
                                           manifest.digest, job.digest));
  return manifest;
}

Result<std::map<std::string, std::string>> fetch_files(const wire::ImageJob& job,
                                                       const ImageManifest& manifest, BlobSource& source) {
  std::map<std::string, std::string> out;
  for (const auto& f : manifest.files) {
    TRY(std::string bytes, source.whole(folder_of_path(job.manifest_path) + f.name));
    if (bytes.size() != f.size || sha256(bytes) != f.sha256)
      return fail(Code::corrupt, f.name + " does not match the manifest");
    out[f.role] = std::move(bytes);
  }
  for (const char* role : {"kernel", "bootloader"})
    if (!out.count(role)) return fail(Code::invalid, std::string("the image does not contain a ") + role);
  return out;
}

}  // namespace muster
