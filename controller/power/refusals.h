// RefusedSecrets: which BMCs refused their node's user and password, so that they are not asked with them
// again and again: after three to five failed logins a BMC locks the account, and then refuses the right
// password, too.
//
// A refusal is forgotten after ten minutes, when the node's secret or address changes, and by clear().
// Thread: one at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "controller/power/power.h"

namespace muster {

class RefusedSecrets {
 public:
  explicit RefusedSecrets(std::function<TimeMs()> monotonic) : now_(std::move(monotonic)) {}

  void add(const PowerTarget& target);
  // What to answer instead of asking; none when the BMC may be asked.
  std::optional<Error> find(const PowerTarget& target) const;
  void clear() { by_node_.clear(); }

 private:
  struct Refusal {
    std::string digest;  // of address, user and password: the secret itself is kept nowhere
    TimeMs at = 0;
  };
  std::function<TimeMs()> now_;
  std::map<std::string, Refusal> by_node_;
};

}  // namespace muster
