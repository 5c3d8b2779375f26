#include "controller/api/user_names.h"

#include <memory>

#include "sys/account_files.h"

namespace muster::api {

void UserNames::find(uint32_t uid, Then then) {
  if (const std::string name = user_of_id(files_, uid); !name.empty()) return then(name);
  const auto known = known_.find(uid);
  if (known != known_.end() && reactor_.steady() - known->second.since < kKept)
    return then(known->second.name);
  const auto running = searches_.find(uid);
  if (running == searches_.end() && searches_.size() >= kMostSearches) return then("");
  if (running != searches_.end() && running->second.late) return then("");
  Search& search = searches_[uid];
  search.waiting.push_back(std::move(then));
  if (running == searches_.end()) begin(uid, search);
}

void UserNames::begin(uint32_t uid, Search& search) {
  search.deadline = reactor_.after(kDeadline, alive_.wrap([this, uid] { give_up(uid); }));
  const auto name = std::make_shared<std::string>();
  offload_([lookup = lookup_, uid, name] { *name = lookup(uid); },
           alive_.wrap([this, uid, name] { found(uid, *name); }));
}

void UserNames::give_up(uint32_t uid) {
  Search& search = searches_[uid];
  search.late = true;
  for (const Then& then : std::exchange(search.waiting, {})) then("");
}

void UserNames::found(uint32_t uid, const std::string& name) {
  const auto search = searches_.extract(uid);
  reactor_.cancel(search.mapped().deadline);
  if (!name.empty()) known_[uid] = {name, reactor_.steady()};
  for (const Then& then : search.mapped().waiting) then(name);
}

}  // namespace muster::api
