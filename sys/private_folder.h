// PrivateFolder: a new folder, ".muster." with eight digits, that only this user can enter, below a folder
// that others may be able to write to; and the removal of those that a killed process left there.
//
// Others can swap what was made for something else before it is opened, also for another folder of root's
// that they have there. So only an empty one of this user's with mode 0700 is taken. In it is a file that its
// process holds locked. Only a folder with such a file, which others cannot put into it, is removed with its
// content, and only while no process holds the file. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/open_fd.h"

namespace muster {

struct PrivateFolder {
  OpenFd fd, mark;
  std::string name;
};

// Removes what a killed process left in `folder`, and makes one. denied: others swap all that is made there.
Result<PrivateFolder> make_private_folder(int folder, const std::string& path);
// With its content; no error when others have moved it away.
Status remove_private_folder(int folder, const PrivateFolder& own, const std::string& path);

// True if it can be the one that this process has made with mode 0700 and not yet used: another may have been
// put into its place, but then one that is as empty and as closed to others.
bool is_new_folder(int folder);
// The refusal where it is not.
Error swapped(const std::string& path);

}  // namespace muster
