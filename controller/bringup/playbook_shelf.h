// PlaybookShelf: the shipped playbooks, read and parsed once for each state of their folder, and combined
// with a spec's own playbooks and overlays, once for each set of them. Every call looks at the folder: if a
// file's name, size, times or inode has changed, all files are read again. Thread: the reactor's; what it
// returns never changes and may be used on other threads.
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
  std::map<std::string, std::string> digests;  // of their texts, by the same names
};

class PlaybookShelf {
 public:
  using Shared = std::shared_ptr<const Playbooks>;

  // `folder` empty: there are none. `now`: wall clock.
  PlaybookShelf(std::string folder, std::function<TimeMs()> now);

  // not_found: no folder was given; invalid: the first error of a file, with its path.
  Result<Shared> shipped();
  // invalid: the first error of the spec's own.
  Result<Shared> with(const std::vector<OwnPlaybook>& own);

 private:
  // Name, size, times of content and inode in nanoseconds, inode.
  using FileState = std::tuple<std::string, int64_t, int64_t, int64_t, uint64_t>;
  using Listing = std::vector<FileState>;
  Listing look() const;
  Status load(const std::string& below, const std::string& prefix, Playbooks& into) const;

  const std::string folder_;
  const std::function<TimeMs()> now_;
  Listing seen_;          // as shipped_ was read
  bool settled_ = false;  // none of the files had been changed just before
  Shared shipped_;
  std::vector<OwnPlaybook> own_;  // of with_own_
  Shared below_own_, with_own_;
};

}  // namespace muster
