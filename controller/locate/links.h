// Which node's link is bad, from bandwidths measured between nodes: one slow link makes every pair of its
// node slow, and naming all of them would be wrong.
//
// The controller calls locate_links() with what the link step measured (each direction of each session is one
// entry), and names only the suspects: a pair that one of them explains is not a fault of the node at its
// other end. Thread: pure functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::locate {

struct LinkMeasurement {
  std::string from = {}, to = {};  // node names; data went this way
  // nullopt: tried and not measured (refused, hung, wrong data), which is a failure.
  std::optional<double> mbps = {};
  // It had a limit to reach, and reached it: not a failure, however much faster others are.
  bool as_expected = false;
};

struct LinkSuspect {
  enum class Kind {
    node,  // this node's own network link (NIC, cable, switch port): slow with at least two credible partners
    pair,  // only between these two; both are fast with others
    undecided,  // at least one of these; the measurements cannot say which
  };
  Kind kind = Kind::node;
  std::vector<std::string> nodes = {};     // one for `node`, else the two ends
  std::string direction = {};              // "sends", "receives" when only one way is slow; "" both
  std::string summary = {};                // one line for people: which end, how slow, compared with what
  std::vector<std::string> evidence = {};  // one line per measurement: against it, then for its witnesses
  std::optional<double> share =
      {};  // median of its bad measurements / reference; 0 when none could be measured
};
std::string_view to_string(LinkSuspect::Kind kind);

struct LinkFindings {
  std::optional<double> reference = {};  // MB/s of a healthy pair; absent when nothing was measured
  std::optional<double> floor = {};      // below it a measurement is bad: floor_ratio x reference
  std::string derivation = {};           // as text
  std::vector<LinkSuspect> suspects = {};
  // Names of the ends that explain a bad measurement between these two; empty if it was good or there is no
  // suspect.
  std::vector<std::string> guilty_of(const std::string& from, const std::string& to) const;
};

struct LinkRule {
  double floor_ratio = 0.85;  // halfway between healthy and 30 % slow
  std::optional<double> expected =
      {};  // MB/s a healthy link must reach, if known: the reference is at least this
};
LinkFindings locate_links(const std::vector<LinkMeasurement>& measured, const LinkRule& rule = {});

// The rate of a healthy test: the median of the tests that come near the upper quartile, over all ends, of
// each end's best. Right while a quarter of the ends met a healthy partner, also when most tests touch a bad
// one.
struct Rate {
  int a = 0, b = 0;
  double value = 0;
};
std::optional<double> healthy_rate(size_t ends, const std::vector<Rate>& rates);

}  // namespace muster::locate
