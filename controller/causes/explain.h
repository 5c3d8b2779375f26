// Which property of nodes explains that some of them have a problem: a value that covers the bad nodes
// clearly better than the healthy ones. Pure, and the same on every machine; nodes are numbered from 0.
// Thread safety: plain values; a Chances may be used by several threads at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace muster {

struct BadOf {
  size_t bad = 0, all = 0;
};

class Chances {
 public:
  explicit Chances(size_t nodes);
  // True if a value that `with` nodes have explains the bad ones among `all`:
  //   - at least two of its nodes are bad, and there are nodes without it;
  //   - the share of bad nodes is at least four times that among the others; and
  //   - either all of its nodes are bad, or at least three, so many that with bad nodes drawn blindly one
  //     of the property's `values` would be hit as hard at most once in a hundred times.
  // Of 400 nodes in racks of 20, one bad node in a rack explains nothing, nor do two; three do.
  bool explains(const BadOf& with, const BadOf& all, size_t values) const;
  // ln of the chance that at least `with.bad` of `all.bad` nodes that are drawn blindly are among the
  // `with.all` (hypergeometric). Only where there are more of them than among the others.
  double log_of(const BadOf& with, const BadOf& all) const;

 private:
  double log_choose(size_t n, size_t k) const;
  std::vector<double> log_factorials_;
};

// One property, as a number per node: an index into `values`, -1 where it is unknown.
struct NodeProperty {
  std::string name = {};
  std::vector<std::string> values = {};
  std::vector<int> of_node = {};
};

enum class Health { left_out, well, bad };

struct Explanation {
  size_t property = 0;
  int value = 0;
  size_t of = 0;      // nodes that have the value, without those left out
  double chance = 0;  // log_of()
};
// Returns the explanation that chance would give least; of equal ones, that of the earlier property.
std::optional<Explanation> best_explanation(const std::vector<NodeProperty>& properties,
                                            const std::vector<Health>& nodes, const Chances& chances);

}  // namespace muster
