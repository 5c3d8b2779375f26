#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sys/http/http_file.h"

namespace muster::http_server {

void OpenFile::close() {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

void open_file(OpenFile& file, HttpResponse& response, std::string_view range) {
  struct stat info;
  file.fd = ::open(response.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    int status = file.fd < 0 && (errno == ENOENT || errno == ENOTDIR) ? 404 : 500;
    file.close();
    response = HttpResponse::text(status, "the file cannot be read\n");
    return;
  }
  auto size = static_cast<uint64_t>(info.st_size);
  file.at = 0;
  file.left = size;
  response.headers["Accept-Ranges"] = "bytes";
  const auto part = response.status == 200 ? parse_range(range, size) : std::nullopt;
  if (!part) return;
  if (part->length == 0) {
    file.close();
    response = HttpResponse::text(416, "no such range\n");
    response.headers["Content-Range"] = fmt::format("bytes */{}", size);
    return;
  }
  file.at = part->first;
  file.left = part->length;
  response.status = 206;
  response.headers["Content-Range"] = fmt::format("bytes {}-{}/{}", file.at, file.at + file.left - 1, size);
}

}  // namespace muster::http_server
