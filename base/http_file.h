// A file as the body of a response: the part still to be sent. Thread: one at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/http.h"

namespace muster::http_server {

struct OpenFile {
  int fd = -1;  // while there is a file to be sent
  uint64_t at = 0;
  uint64_t left = 0;

  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(); }
  void close();
};

// Opens response.file. Turns `response` into the head of its content, or of the part that `range` (a Range
// header, may be empty) requests; or into an error if the file does not exist.
void open_file(OpenFile& file, HttpResponse& response, std::string_view range);

}  // namespace muster::http_server
