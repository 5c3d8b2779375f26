// CurrentCauses: the causes of what is wrong now, for status, `why`, metrics and notices. Remembers what it
// found last, so that a cause lasts until the last of its nodes is well (controller/causes/cause.h), over a
// restart too. Reads only rows, the active run, agents' reports in memory, and the times at which images that
// a window did not build were built: no SSH, no power call. Thread: the reactor's, which it may block for
// 100 ms at 1,000 nodes. A look goes over the nodes once, without a copy of their rows; it compares places
// only while something is wrong, and looks for causes only when that or a place changed.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/steady.h"
#include "controller/bringup/current_problems.h"
#include "controller/bringup/nodes_view.h"
#include "controller/causes/cause.h"
#include "controller/image/service/image_service.h"
#include "controller/trust/authority.h"
#include "sys/fresh.h"

namespace muster {

class CurrentCauses {
 public:
  struct Parts {
    NodesView::Parts nodes;
    const ImageService& images;
    const Authority& authority;
  };
  // `rollout` returns the newest rollout, or null; `recalled` the causes of before a restart, as long as they
  // count (NoticeService::recalled()). All that is referred to must outlive this object.
  CurrentCauses(const Parts& parts, std::function<const rollout::Record*()> rollout,
                std::function<std::vector<Cause>()> recalled)
      : parts_(parts.nodes),
        images_(parts.images),
        authority_(parts.authority),
        rollout_(std::move(rollout)),
        recalled_(std::move(recalled)) {}
  CurrentCauses(const CurrentCauses&) = delete;
  CurrentCauses& operator=(const CurrentCauses&) = delete;

  // Valid until the next call. For a second all callers get what the first of them found, unless changed().
  const std::vector<Cause>& look();
  // To be called when an operator changes something: the next look() is a new one.
  void changed() { found_.expire(); }
  // To be called when an operator has a node switched: it is expected away, unless it was silent already.
  // `goes_away`: false for "on", which takes no node away, and only prolongs that one is expected away.
  void switched(const NodeName& node, bool goes_away);
  // To be called when that failed.
  void not_switched(const NodeName& node) { switched_.erase(node); }
  // Reads some more inventories, which takes up to 20 ms; true: others were never read. look() does so, too,
  // and knows no model and no firmware before all were read: among few nodes, what the whole cluster has in
  // common seems to explain their problems.
  bool read_inventories();

 private:
  struct Machine {  // what a node's inventory says, which is read only when there is a newer one
    TimeMs facts_time = 0;
    std::string model, firmware;
  };
  struct Wrong {
    std::vector<Problem> problems;
    std::map<NodeName, NodePlace> places;  // of all nodes that count; none while there is no problem
    bool operator==(const Wrong&) const = default;
  };
  ClusterNow cluster_now();
  bool is_expected(const NodeName& node, const std::string& boot_id) const;
  std::map<NodeName, NodePlace> places_of(const ClusterNow& now, bool unread);

  const NodesView::Parts parts_;
  const ImageService& images_;
  const Authority& authority_;
  const std::function<const rollout::Record*()> rollout_;
  const std::function<std::vector<Cause>()> recalled_;
  std::map<NodeName, Machine> machines_;
  StorageProblems lasting_;                  // lasting_problems()
  std::map<std::string, SteadyMs> healing_;  // healing_sections()
  std::map<NodeName, Boot> boots_;           // boots_seen()
  std::map<NodeName, Boot> switched_;        // from which boot an operator had it switched, and when
  Wrong wrong_;                              // what the last causes are of
  Fresh<std::vector<Cause>> found_{parts_.reactor, kSecond};
};

}  // namespace muster
