#include "controller/locate/fabric.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace muster::locate {
namespace {

size_t z(int number) { return static_cast<size_t>(number); }
bool has(const std::vector<Part>& path, Part part) {
  return std::find(path.begin(), path.end(), part) != path.end();
}

// One round in the making: hosts and cables that are taken.
class Taken {
 public:
  Taken(const Fabric& fabric, const Cover& cover)
      : fabric_(fabric), cover_(cover), hosts_(z(fabric.hosts)), parts_(fabric.parts.size()) {}
  bool fits(size_t flow) const {
    const Flow& f = fabric_.flows[flow];
    return !hosts_[z(f.from)] && !hosts_[z(f.to)] &&
           std::none_of(cover_.path[flow].begin(), cover_.path[flow].end(),
                        [&](Part p) { return parts_[z(p)]; });
  }
  void take(size_t flow) {
    hosts_[z(fabric_.flows[flow].from)] = hosts_[z(fabric_.flows[flow].to)] = true;
    for (const Part p : cover_.path[flow])
      if (!cover_.shared[z(p)]) parts_[z(p)] = true;
    flows_.push_back(flow);
  }
  std::vector<size_t> release() { return std::move(flows_); }

 private:
  const Fabric& fabric_;
  const Cover& cover_;
  std::vector<bool> hosts_, parts_;
  std::vector<size_t> flows_;
};

// Parts, but for the accused and what holds it, that flows `a` and `b` have in common.
int common(const Cover& cover, size_t a, size_t b, Part accused) {
  int count = 0;
  for (const Part p : cover.path[a])
    count += p != accused && has(cover.path[b], p) && !has(cover.within[z(accused)], p);
  return count;
}

class Coverer {
 public:
  Coverer(const Fabric& fabric, Cover& cover, int times, uint64_t seed)
      : fabric_(fabric), cover_(cover), times_(z(times)), numbers_(seed), on_(fabric.parts.size()) {
    for (size_t p = 0; p < fabric.parts.size(); ++p)
      if (!cover.through[p].empty()) open_.push_back(static_cast<Part>(p));
  }

  void run() {
    while (!open_.empty()) {
      Taken round(fabric_, cover_);
      numbers_.shuffle(open_);
      std::stable_sort(open_.begin(), open_.end(),
                       [&](Part a, Part b) { return on_[z(a)].size() < on_[z(b)].size(); });
      for (const Part part : open_) add_flow(round, part);
      cover_.rounds.push_back(round.release());
      for (const size_t flow : cover_.rounds.back())
        for (const Part p : cover_.path[flow]) on_[z(p)].push_back(flow);
      // A part with fewer flows than asked for is done when all of them are taken.
      std::erase_if(
          open_, [&](Part p) { return on_[z(p)].size() >= std::min(times_, cover_.through[z(p)].size()); });
    }
  }

 private:
  static constexpr size_t kSamples = 48;  // flows looked at for one part

  void add_flow(Taken& round, Part part) {
    const auto& flows = cover_.through[z(part)];
    const size_t start = numbers_.below(flows.size());
    const size_t step = flows.size() > kSamples ? flows.size() / kSamples : 1;
    std::optional<size_t> best;
    int best_score = 0;
    for (size_t k = 0; k < flows.size(); k += step) {
      const size_t flow = flows[(start + k) % flows.size()];
      if (!round.fits(flow)) continue;
      const int s = score(flow, part);
      if (!best || s > best_score) best = flow, best_score = s;
    }
    if (best) round.take(*best);
  }

  // Flows that serve many open parts, and share nothing else with what the part was already tested by.
  int score(size_t flow, Part part) const {
    int out = 0;
    for (const Part p : cover_.path[flow]) out += on_[z(p)].size() < times_ ? 1 : 0;
    for (const size_t earlier : on_[z(part)])
      out -= 4 * common(cover_, flow, earlier, part) + (flow == earlier ? 100 : 0);
    return out;
  }

  const Fabric& fabric_;
  Cover& cover_;
  size_t times_;
  Numbers numbers_;
  std::vector<std::vector<size_t>> on_;  // by part: flows chosen so far
  std::vector<Part> open_;
};

// Flows that take each suspect, and each of `unseen`, through parts that nothing is held against.
std::vector<size_t> retest(const Fabric& fabric, const Cover& cover, const std::vector<FabricTested>& tested,
                           const FabricProgress& so_far, const std::vector<Part>& unseen, Numbers& numbers) {
  // How bad each part looks: the share of its tests that failed.
  std::vector<double> failed(fabric.parts.size()), seen(fabric.parts.size());
  for (const FabricTested& t : tested)
    for (const Part p : cover.path[t.flow]) ++seen[z(p)], failed[z(p)] += t.failed;
  const auto doubt = [&](Part p) { return seen[z(p)] > 0 ? failed[z(p)] / seen[z(p)] : 1; };
  std::vector<bool> suspect(fabric.parts.size());
  std::vector<Part> suspects;
  const auto add = [&](Part p) {
    if (!suspect[z(p)]) suspect[z(p)] = true, suspects.push_back(p);
  };
  for (const size_t i : so_far.unexplained)
    for (const Part p : cover.path[tested[i].flow]) add(p);
  for (const Part p : unseen) add(p);
  numbers.shuffle(suspects);
  // Cables before switches: a cable that passes speaks for its switch too.
  std::stable_sort(suspects.begin(), suspects.end(),
                   [&](Part a, Part b) { return cover.shared[z(a)] < cover.shared[z(b)]; });
  Taken round(fabric, cover);
  for (const Part part : suspects) {
    const auto& flows = cover.through[z(part)];
    const size_t start = numbers.below(flows.size());
    std::optional<size_t> best;
    double best_score = 0;
    for (size_t k = 0; k < flows.size(); k += flows.size() / 64 + 1) {
      const size_t flow = flows[(start + k) % flows.size()];
      if (!round.fits(flow)) continue;
      double score = 0;
      for (const Part p : cover.path[flow]) score -= p == part ? 0 : doubt(p);
      for (const FabricTested& t : tested) score -= t.flow == flow ? 2 : 0;
      if (!best || score > best_score) best = flow, best_score = score;
    }
    if (best) round.take(*best);
  }
  return round.release();
}

// Parts that were tested and never passed, and are not guilty: whatever they did was explained by others.
std::vector<Part> never_passed(const Cover& cover, const std::vector<FabricTested>& tested,
                               const std::vector<bool>& guilty) {
  std::vector<bool> seen(guilty.size()), passed(guilty.size());
  for (const FabricTested& t : tested)
    for (const Part p : cover.path[t.flow]) seen[z(p)] = true, passed[z(p)] = passed[z(p)] || !t.failed;
  std::vector<Part> out;
  for (size_t p = 0; p < guilty.size(); ++p)
    if (seen[p] && !passed[p] && !guilty[p]) out.push_back(static_cast<Part>(p));
  return out;
}

// Whether a flow takes this part past everybody that is guilty.
bool can_be_reached(const Cover& cover, Part part, const std::vector<bool>& guilty) {
  const auto& flows = cover.through[z(part)];
  return std::any_of(flows.begin(), flows.end(), [&](size_t flow) {
    return std::none_of(cover.path[flow].begin(), cover.path[flow].end(),
                        [&](Part p) { return guilty[z(p)]; });
  });
}

}  // namespace

Fabric fat_tree(const FatTree& shape) {
  Fabric out;
  out.hosts = shape.leaves * shape.hosts_per_leaf;
  const auto add = [&](std::string name) {
    out.parts.push_back(std::move(name));
    return static_cast<Part>(out.parts.size() - 1);
  };
  std::vector<Part> leaf, spine;
  for (int l = 0; l < shape.leaves; ++l) leaf.push_back(add(fmt::format("leaf{}", l + 1)));
  for (int s = 0; s < shape.spines; ++s) spine.push_back(add(fmt::format("spine{}", s + 1)));
  std::vector<std::vector<Part>> host, up;  // the parts of each host's link, and of each uplink
  for (int h = 0; h < out.hosts; ++h) {
    const int l = h / shape.hosts_per_leaf, port = h % shape.hosts_per_leaf + 1;
    host.push_back({add(fmt::format("host{} nic", h + 1)),
                    add(fmt::format("cable host{} - leaf{}", h + 1, l + 1)),
                    add(fmt::format("leaf{} port {}", l + 1, port))});
  }
  for (int l = 0; l < shape.leaves; ++l)
    for (int s = 0; s < shape.spines; ++s) {
      up.push_back({add(fmt::format("leaf{} port {}", l + 1, shape.hosts_per_leaf + s + 1)),
                    add(fmt::format("cable leaf{} - spine{}", l + 1, s + 1)),
                    add(fmt::format("spine{} port {}", s + 1, l + 1))});
    }
  for (int a = 0; a < out.hosts; ++a)
    for (int b = 0; b < out.hosts; ++b) {
      if (a == b) continue;
      const int x = a / shape.hosts_per_leaf, y = b / shape.hosts_per_leaf, s = b % shape.spines;
      Flow flow{a, b, host[z(a)]};
      const auto append = [&](const std::vector<Part>& parts) {
        flow.path.insert(flow.path.end(), parts.begin(), parts.end());
      };
      flow.path.push_back(leaf[z(x)]);
      if (x != y) {
        append(up[z(x * shape.spines + s)]);
        flow.path.push_back(spine[z(s)]);
        append(up[z(y * shape.spines + s)]);
        flow.path.push_back(leaf[z(y)]);
      }
      append(host[z(b)]);
      out.flows.push_back(std::move(flow));
    }
  return out;
}

Cover edge_cover(const Fabric& fabric, int times, uint64_t seed) {
  Cover out;
  std::vector<std::vector<Part>> paths;
  for (const Flow& flow : fabric.flows) paths.push_back(flow.path);
  out.class_of = distinguishable(fabric.parts.size(), paths);
  out.through.resize(fabric.parts.size());
  out.shared.resize(fabric.parts.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    std::vector<Part> path;
    for (const Part p : paths[i])
      if (out.class_of[z(p)] == p) path.push_back(p), out.through[z(p)].push_back(i);
    out.path.push_back(std::move(path));
  }
  out.within.resize(fabric.parts.size());
  for (size_t p = 0; p < out.through.size(); ++p) {
    if (out.through[p].empty()) continue;
    std::vector<Part> always = out.path[out.through[p].front()];
    for (const size_t flow : out.through[p])
      std::erase_if(always,
                    [&](Part other) { return other == static_cast<Part>(p) || !has(out.path[flow], other); });
    for (const Part holder : always) out.shared[z(holder)] = true;
    out.within[p] = std::move(always);
  }
  Coverer(fabric, out, times, seed).run();
  return out;
}

FabricProgress proceed(const Fabric& fabric, const Cover& cover, const std::vector<FabricTested>& tested,
                       int extra, uint64_t seed) {
  FabricProgress out;
  std::vector<Probe> probes;
  int round = 0;
  for (const FabricTested& t : tested) {
    probes.push_back({cover.path[t.flow], t.failed});
    round = std::max(round, t.round + 1);
  }
  const Decoded decoded = decode(fabric.parts.size(), probes, cover.within);
  std::vector<bool> guilty(fabric.parts.size());
  for (const auto& conviction : decoded.guilty) {
    guilty[z(conviction.part)] = true;
    out.guilty.emplace_back();
    for (size_t p = 0; p < fabric.parts.size(); ++p)
      if (cover.class_of[p] == conviction.part) out.guilty.back().push_back(static_cast<Part>(p));
  }
  out.unexplained = decoded.unexplained;
  if (z(round) < cover.rounds.size()) {
    out.next = cover.rounds[z(round)];
    return out;
  }
  std::vector<Part> unseen;
  for (const Part p : never_passed(cover, tested, guilty)) {
    out.hidden.push_back(p);
    if (can_be_reached(cover, p, guilty)) unseen.push_back(p);
  }
  Numbers numbers(seed + static_cast<uint64_t>(round));
  if ((!out.unexplained.empty() || !unseen.empty()) && z(round) < cover.rounds.size() + z(extra))
    out.next = retest(fabric, cover, tested, out, unseen, numbers);
  return out;
}

}  // namespace muster::locate
