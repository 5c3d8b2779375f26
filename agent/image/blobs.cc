#include "agent/image/blobs.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "sys/http/http.h"

namespace muster {
namespace {

class HttpSource : public BlobSource {
 public:
  explicit HttpSource(std::unique_ptr<HttpClient> client) : client_(std::move(client)) {}

  Result<std::string> whole(const std::string& path) override { return get(path, {}, 200); }
  Result<std::string> range(const std::string& path, uint64_t offset, uint64_t size) override {
    return get(path, {{"Range", fmt::format("bytes={}-{}", offset, offset + size - 1)}}, 206);
  }

 private:
  Result<std::string> get(const std::string& path, Headers headers, int wanted) {
    HttpRequest request;
    request.target = path;
    request.headers = std::move(headers);
    TRY(HttpResponse response, client_->request(std::move(request), 2 * kMinute));
    if (response.status == wanted) return std::move(response.body);
    const Code code = response.status == 404                             ? Code::not_found
                      : response.status >= 500 || response.status == 429 ? Code::unavailable
                                                                         : Code::failed;
    return fail(code, fmt::format("GET {}: HTTP status {}", path, response.status));
  }

  std::unique_ptr<HttpClient> client_;
};

}  // namespace

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

Result<std::unique_ptr<BlobSource>> http_source(const std::string& base_url) {
  HttpClientOptions options;
  options.base = base_url;
  TRY(auto client, make_http_client(std::move(options)));
  return std::unique_ptr<BlobSource>(std::make_unique<HttpSource>(std::move(client)));
}

}  // namespace muster
