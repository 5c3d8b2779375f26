// A connection on which lines are sent: text that ends with a line feed, each of bounded length.
//
// Reading never waits; writing waits as long as it is given. Owned by the leader or a server of a group.
// Thread: one.
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
  // All of it within this many seconds; unavailable: the other end is gone, or does not read.
  Status send(const std::string& line, double seconds);
  // Takes what has arrived. False: no more will come, since the other end has closed or sent a line that is
  // too long.
  bool read();
  // The next whole line, without its end.
  std::optional<std::string> take();
  // Of what has arrived and was not taken; '{', with which each line begins, where that is nothing.
  char first() const { return text_.empty() ? '{' : text_.front(); }
  // The other end's numeric address; "": it is gone.
  std::string peer() const;

 private:
  Socket socket_;
  size_t longest_;
  std::string text_ = {};
};

}  // namespace muster::together
