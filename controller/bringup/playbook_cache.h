// PlaybookCache: a cache of the shipped playbooks, read and parsed once for each state of their folder and
// combined once with each set of a spec's own playbooks and overlays. Every call lists the folder: if a
// file's name, size, mtime, ctime or inode has changed, all files are read again. Thread: the reactor's; what
// it returns is immutable and may be used on other threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "controller/spec/playbook.h"
#include "controller/spec/spec.h"

namespace muster {

struct Playbooks {
  std::map<std::string, Playbook> all;         // by name; acceptance profiles as "acceptance/<profile>"
  std::map<std::string, std::string> digests;  // digests of their texts, by the same names
};

class PlaybookCache {
 public:
  using Shared = std::shared_ptr<const Playbooks>;

  // `folder` empty: there are no shipped playbooks. `now`: wall clock.
  PlaybookCache(std::string folder, std::function<TimeMs()> now);

  // Returns the shipped playbooks. not_found: no folder; invalid: the first error in a file, with its path.
  Result<Shared> shipped();
  // Returns the shipped playbooks combined with the spec's own. invalid: the first error in the spec's.
  Result<Shared> with(const std::vector<OwnPlaybook>& own);

 private:
  // Name, size, mtime and ctime in nanoseconds, inode number.
  using FileState = std::tuple<std::string, int64_t, int64_t, int64_t, uint64_t>;
  using Listing = std::vector<FileState>;
  Listing look() const;
  Status load(const std::string& below, const std::string& prefix, Playbooks& into) const;

  const std::string folder_;
  const std::function<TimeMs()> now_;
  Listing seen_;          // state of the folder when shipped_ was read
  bool settled_ = false;  // no file had been modified just before the read
  Shared shipped_;
  std::vector<OwnPlaybook> own_;  // input of with_own_
  Shared below_own_, with_own_;
};

}  // namespace muster
