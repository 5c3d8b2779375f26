// MetricsService: the text that Prometheus scrapes, from what the controller has in memory. It is made at
// most once a second, however many scrape at once, and nothing is requested of a node or a BMC for it.
// Thread: the reactor's, which it holds for a few milliseconds at 2,000 nodes, and as long as CurrentCauses.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/time.h"
#include "controller/bringup/nodes_view.h"
#include "controller/causes/cause.h"
#include "controller/executor/executor.h"
#include "controller/metrics/controller_metrics.h"
#include "controller/ports/store.h"
#include "controller/rollout/rollout_record.h"
#include "sys/fresh.h"
#include "sys/reactor.h"

namespace muster {

class MetricsService {
 public:
  struct Parts {
    const Reactor& reactor;
    NodesView nodes;
    Store& store;
    const Executor& executor;
    std::function<std::map<std::string, TimeMs>()> certificates;  // ControllerMetrics::certificates
    std::function<const rollout::Record*()> rollout;              // null: nothing was approved yet
    std::function<std::vector<ImageMetrics>()> images;
    std::function<std::map<CauseKind, int64_t>()> causes;  // ControllerMetrics::causes
    std::function<NoticeMetrics()> notices;
  };
  explicit MetricsService(Parts parts) : parts_(std::move(parts)), started_(parts_.reactor.now()) {}

  static constexpr DurationMs kFresh = kSecond;
  const std::string& text();

  // The agent of this node, not of an undeclared machine, used a certificate that ends then.
  void saw_certificate(const NodeName& node, TimeMs ends) { certificate_ends_[node] = ends; }

 private:
  ControllerMetrics gather() const;
  std::vector<NodeMetrics> nodes() const;

  Parts parts_;
  const TimeMs started_;
  std::map<NodeName, TimeMs> certificate_ends_;
  Fresh<std::string> text_{parts_.reactor, kFresh};
};

}  // namespace muster
