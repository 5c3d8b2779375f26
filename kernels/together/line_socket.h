// A connection that carries lines of text: each ends with a line feed and has a bounded length.
//
// Reading never blocks; writing blocks up to a given time. Owned by a group's leader or one of its servers.
// Used by one thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/together/socket.h"

namespace muster::together {

class LineSocket {
 public:
  LineSocket(Socket socket, size_t longest) : socket_(std::move(socket)), longest_(longest) {}

  int fd() const { return socket_.fd(); }
  // Sends the whole line within this many seconds; unavailable: the other end has closed or does not read.
  Status send(const std::string& line, double seconds);
  // Reads what has arrived. Returns false if no more will come: the other end has closed, or sent a line that
  // is too long.
  bool read();
  // Returns the next complete line, without the line feed; nothing if there is none yet.
  std::optional<std::string> take();
  // Returns the first byte that has arrived and was not taken; '{' (how each line begins) if there is none.
  char first() const { return text_.empty() ? '{' : text_.front(); }
  // Returns the other end's numeric address; "" if it has disconnected.
  std::string peer() const;

 private:
  Socket socket_;
  size_t longest_;
  std::string text_ = {};
};

}  // namespace muster::together
