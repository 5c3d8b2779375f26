// OpenWay: the folder that a path leads to, opened part by part, and what is done to an entry of it.
//
// Below a folder of another user, that user can replace any part of a path by a link, also between a check
// and what follows it. So the path is opened part by part, without following links, and all else is done
// relative to the folder that is open then. Root follows a link on the way only if it belongs to root and
// lies where only root can have put it (sys/folder_trust.h), as /bin and /var/run do, or in a sticky folder
// of root's; any other is an Error (denied) with the link and its owner. For other users the kernel's
// permissions suffice: they follow any link. Links and ".." lead nowhere outside `root`. A walk, and not
// openat2(2): that cannot tell whose a link is.
//
// A regular file with several names in a folder that others can write to may be anybody's: owner, mode and
// content of it are not changed in place (denied).
// Thread: one at a time.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/file_state.h"
#include "sys/folder_trust.h"
#include "sys/open_fd.h"

namespace muster {

class OpenWay {
 public:
  enum class Missing { error, make };
  enum class Existing { replaced, kept };
  enum class Writers { any, ours };
  // Writes the content to the descriptor.
  using Fill = std::function<Status(int)>;

  // To the last part of `path`, which is not followed and need not exist. Folders on the way are made (0755),
  // but none of those that a link leads to: conflict, with the link.
  static Result<OpenWay> to(const std::string& root, const std::string& path,
                            Missing missing = Missing::error);
  // The same, but a link at the last part is followed under the rule above.
  static Result<OpenWay> through(const std::string& root, const std::string& path);
  // Into the folder `path`. What is missing is made, the folder itself with this mode and owner whatever the
  // umask is; an existing one stays as it is.
  static Result<OpenWay> into(const std::string& root, const std::string& path, unsigned mode,
                              FileOwner owner = {});

  // True if another user than root and this process' own can add or replace a part of the path: a program
  // that is given the path may then get to another place. Command::folder is the way for it.
  bool others_can_replace() const { return others_; }
  int folder() const { return folders_.back().fd.get(); }
  // As given: it leads to the entry while others_can_replace() is false.
  const std::string& path() const { return path_; }

  Result<FileState> look() const;  // of the entry; `exists` is false if there is none
  // To be read. conflict: not a regular file. Writers::ours: what is read stays as it is, since only root and
  // this user can write to it; any other is denied.
  Result<OpenFd> open_file(Writers writers) const;
  // conflict: not a regular file.
  Result<FileText> read() const;
  Result<std::string> read_link() const;
  // Under another name until it is complete and synced; readable to its owner only until then. conflict: it
  // exists and is kept.
  Status write(const Fill& fill, unsigned mode, FileOwner owner = {},
               Existing existing = Existing::replaced) const;
  Status append(std::string_view content) const;
  Status make_link(const std::string& target) const;
  Status set_permissions(unsigned mode, FileOwner owner) const;
  Status date_now() const;
  Status move_to(const OpenWay& to) const;
  Status remove() const;  // a file, a link or an empty folder; no error when it is already gone
  Status remove_tree() const;
  // Runs `work` with the entry `name` of a new folder beside this entry, which only this user can enter and
  // which is removed afterwards; so is first what a killed process left there (sys/private_folder.h).
  Status in_private_folder(const std::string& name, const std::function<Status(const OpenWay&)>& work) const;
  // Makes the entry a folder and opens that; for the entry of a private folder.
  Result<OpenWay> make_open(unsigned mode) const;
  // Another entry of the same folder.
  Result<OpenWay> sibling(const std::string& name) const;
  // The entry as a path that only this process can use, and while this value lives.
  std::string own_path() const;

 private:
  enum class Last { named, followed, entered };
  struct Folder {
    OpenFd fd;
    std::string path;
    FolderTrust trust;
  };
  struct Part {
    std::string name;
    bool linked;  // a link that was followed leads to it
  };
  struct Making {
    unsigned mode;
    FileOwner owner;
  };

  OpenWay() = default;
  static Result<OpenWay> start(const std::string& root, bool makes);
  static Result<OpenWay> lead(const std::string& root, const std::string& path, Last last,
                              const Making* making);
  static void push_parts(std::vector<Part>& rest, std::string_view path, bool linked);
  Status walk(const std::string& path, Last last, const Making* making);
  Status step(const Part& part, std::vector<Part>& rest, const Making* making);
  Status enter(OpenFd fd, const std::string& path);
  Status make_folder(const std::string& name, const Making& making);
  bool may_follow(const struct stat& link) const;
  Result<bool> follow(const Part& part, std::vector<Part>& rest);
  Error refusal(const std::string& part, const struct stat& link) const;
  Status keep_shared(const struct stat& file) const;
  Status sync_folder() const;
  bool is_foreign() const;  // others can change the folder that is open now
  std::string part_path(const std::string& name) const;

  std::vector<Folder> folders_;  // from the root on
  size_t base_ = 1;              // of them, those that links and ".." do not leave
  std::string name_ = ".";
  std::string path_, link_;  // for messages
  int links_ = 0;
  bool others_ = false, by_link_ = false;
};

}  // namespace muster
