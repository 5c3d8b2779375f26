// Finds the node whose link is bad, from bandwidths measured between pairs of nodes: one slow link makes
// every pair with its node slow, and it would be wrong to report all of those nodes.
//
// The controller calls locate_links() with what the link step measured (one entry per direction of each
// session), and reports only the suspects: if a suspect explains a slow pair, the node at the other end is
// not at fault. Thread safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::locate {

struct LinkMeasurement {
  std::string from = {}, to = {};  // node names; data was sent from `from` to `to`
  // nullopt: the measurement failed (refused, hung, wrong data), which counts against the link.
  std::optional<double> mbps = {};
  // A limit was set and the measurement reaches it: not a failure, however much faster other links are.
  bool as_expected = false;
};

struct LinkSuspect {
  enum class Kind {
    node,  // this node's own network link (NIC, cable, switch port): slow with at least two credible partners
    pair,  // slow only between these two nodes; each is fast with other nodes
    undecided,  // at least one of these nodes; the measurements do not show which
  };
  Kind kind = Kind::node;
  std::vector<std::string> nodes = {};     // one node for Kind::node, else both ends
  std::string direction = {};              // "sends" or "receives" if only one direction is slow, else ""
  std::string summary = {};                // one line: which end, how slow, compared with what
  std::vector<std::string> evidence = {};  // the bad measurements, then the partners' good ones; a line each
  std::optional<double> share =
      {};  // median of its bad measurements / reference; 0 if no bandwidth could be measured
};
std::string_view to_string(LinkSuspect::Kind kind);

struct LinkFindings {
  std::optional<double> reference = {};  // MB/s of a healthy pair; absent if nothing was measured
  std::optional<double> floor = {};      // measurements below it are bad: floor_ratio x reference
  std::string derivation = {};           // how the floor was derived, as text
  std::vector<LinkSuspect> suspects = {};
  // Returns the ends that explain a bad measurement between these two nodes; empty if the measurement was
  // good or has no suspect.
  std::vector<std::string> faults_on(const std::string& from, const std::string& to) const;
};

struct LinkRule {
  double floor_ratio = 0.85;  // halfway between healthy and 30 % slow
  std::optional<double> expected =
      {};  // MB/s that a healthy link must reach, if known: lower bound of the reference
};
LinkFindings locate_links(const std::vector<LinkMeasurement>& measured, const LinkRule& rule = {});

// Returns the rate of a healthy test. Takes the best rate of each end and the upper quartile of these, then
// the median of all tests near that value. Correct if at least a quarter of the ends were tested with a
// healthy partner, even if most tests include a bad end.
struct Rate {
  int a = 0, b = 0;
  double value = 0;
};
std::optional<double> healthy_rate(size_t ends, const std::vector<Rate>& rates);

}  // namespace muster::locate
