// Published image files over plain HTTP; the caller checks their content by digest.
#include <fmt/format.h>

#include "agent/image/blobs.h"
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

Result<std::unique_ptr<BlobSource>> http_source(const std::string& base_url) {
  HttpClientOptions options;
  options.base = base_url;
  TRY(auto client, make_http_client(std::move(options)));
  return std::unique_ptr<BlobSource>(std::make_unique<HttpSource>(std::move(client)));
}

}  // namespace muster
