// Sends files, never from outside the given folder.
#include <filesystem>

#include "controller/api/handlers.h"

namespace muster::api {
namespace fs = std::filesystem;

void send_file(const CallPtr& call, const std::string& path) {
  std::error_code error;
  const auto real = fs::canonical(path, error);  // the server does not follow links itself
  if (path.empty() || error || !fs::is_regular_file(real, error))
    return call->error(fail(Code::not_found, "no such file"));
  HttpResponse response;
  response.file = real.string();
  response.headers["Content-Type"] = "application/octet-stream";
  call->responder->respond(std::move(response));
}

void send_below(const CallPtr& call, const std::string& folder, const std::string& name) {
  std::error_code error;
  const auto root = fs::canonical(folder, error);
  if (error) return call->error(fail(Code::not_found, "no such file"));
  const auto real = fs::canonical(root / fs::path(name).relative_path(), error);
  if (error) return call->error(fail(Code::not_found, "no such file"));
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  if (end != root.end()) return call->error(fail(Code::not_found, "no such file"));
  send_file(call, real.string());
}

}  // namespace muster::api
