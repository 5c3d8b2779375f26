// A file as the body of a response: the part still to be sent. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "sys/http/http.h"

namespace muster::http_server {

struct OpenFile {
  int fd = -1;  // open while there is data to send
  uint64_t at = 0;
  uint64_t left = 0;

  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(); }
  void close();
};

// Opens response.file, and sets status and headers of `response` for its whole content or for the part that
// `range` (a Range header, may be empty) requests. If it cannot be opened, `response` becomes an error.
void open_file(OpenFile& file, HttpResponse& response, std::string_view range);

}  // namespace muster::http_server
