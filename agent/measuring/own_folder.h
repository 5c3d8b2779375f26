// OwnFolder: a folder for files that the steps of one session share, below a folder where other users may
// write (/dev/shm, /tmp).
//
// Its name is random and chosen in this process, so no other process can have it first; once it exists, none
// can replace it in a sticky folder. It is made and removed below an open descriptor of the folder above
// it, so no link at any place of its path leads elsewhere. Removes only a real directory of this user. Used
// before and after a fork: the child makes the folder, its parent removes it. Thread: one at a time.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

class OwnFolder {
 public:
  // Next to `path`, whose own name may be known to others. Without a slash in it: none, make() fails.
  explicit OwnFolder(const std::string& path);
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }  // "": none
  Status make() const;
  // Removes it, with the files, links and empty folders in it. No error if it was never made.
  void remove() const;

 private:
  std::string name_, path_;
  int above_ = -1;
};

}  // namespace muster
