// Mark: a small file next to the database with the number of the last transaction, by which an older copy put
// in the database's place is recognised.
// Every start of the controller has a name, and every transaction a number; both are in the database and in
// the mark. A copy made before the last start has the name of an earlier start, a later copy a lower number.
// Timestamps cannot show this: a copy made during a run and restored half an hour later looks like a
// controller that was down for half an hour. The mark is written in place, within one sector, after each
// commit, so it is never ahead of what is durable. After a power loss it may be behind, which is harmless.
// Thread: that of the database connection.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "controller/store/sqlite.h"

namespace muster {

class Mark {
 public:
  struct Reading {
    // `next`: the name of a new start while it is being entered in the database; else equal to `start`
    std::string start, next;
    int64_t commits = 0;
  };
  // Creates the file if it is missing.
  static Result<Mark> open(const std::string& path);
  Mark(Mark&& other) noexcept : path_(std::move(other.path_)), fd_(other.fd_) { other.fd_ = -1; }
  Mark& operator=(Mark&&) = delete;
  ~Mark();

  std::optional<Reading> read() const;  // none: the content is missing or invalid
  Status write(const Reading& reading, bool sync);

 private:
  Mark(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

std::string mark_path(const std::string& database);

// Enters a start of the controller in the database and in the mark. Returns "" if this is the database that
// the controller last used, else why it is not: then its running runs are ended as cancelled, in the same
// transaction, and a new history begins.
Result<std::string> enter_start(sqlite::Connection& db, Mark& mark, TimeMs now, Mark::Reading& entered);

}  // namespace muster
