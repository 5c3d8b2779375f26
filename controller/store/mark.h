// Mark: a few bytes beside the database that hold the number of its last transaction, so that an older copy
// put in its place is recognized.
//
// Every start of the controller has a name, and every transaction a number; both are in the database and in
// the mark. A copy that was taken before the last start holds a different start, and one taken since then a
// lower number. A time would not do: a copy taken in the middle of a run and put back half an hour later
// looks like a controller that was away for half an hour. The mark is written in place, within one sector,
// after each commit: it is never ahead of what is durable. When power is lost it may lag behind, which is
// harmless. Thread: the connection's.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "controller/store/sqlite.h"

namespace muster {

class Mark {
 public:
  struct Reading {
    // `next`: the start that is being entered in the database, as `start` before and after that
    std::string start, next;
    int64_t commits = 0;
  };
  // Opens or makes it.
  static Result<Mark> open(const std::string& path);
  Mark(Mark&& other) noexcept : path_(std::move(other.path_)), fd_(other.fd_) { other.fd_ = -1; }
  Mark& operator=(Mark&&) = delete;
  ~Mark();

  std::optional<Reading> read() const;  // none: it is missing or not a mark
  Status write(const Reading& reading, bool sync);

 private:
  Mark(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

// The mark's name beside a database.
std::string mark_path(const std::string& database);

// One start of the controller, entered in both. Returns "" if the database is the one that the controller
// last used, else why it is not: then its running runs are ended as cancelled, in the same transaction, and a
// new history begins.
Result<std::string> enter_start(sqlite::Connection& db, Mark& mark, TimeMs now, Mark::Reading& entered);

}  // namespace muster
