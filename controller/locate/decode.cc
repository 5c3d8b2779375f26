#include "controller/locate/decode.h"

#include <algorithm>
#include <map>

namespace muster::locate {
namespace {

// Failures per pass above which a part that holds others is the cause itself. Two bad uplinks of eight make a
// switch fail in nearly half of its flows, three in two thirds.
constexpr size_t kHolderFails = 7;

bool has(const std::vector<Part>& path, Part part) {
  return std::find(path.begin(), path.end(), part) != path.end();
}

class Decoder {
 public:
  Decoder(size_t parts, const std::vector<Probe>& probes, const std::vector<std::vector<Part>>& within)
      : probes_(probes),
        within_(within),
        passed_(parts),
        failed_(parts),
        guilty_(parts, false),
        holds_(parts, false),
        open_(probes.size(), false) {
    for (const auto& holders : within)
      for (const Part holder : holders) holds_[static_cast<size_t>(holder)] = true;
    for (size_t i = 0; i < probes.size(); ++i) {
      open_[i] = probes[i].failed;
      for (const Part part : probes[i].path)
        (probes[i].failed ? failed_ : passed_)[static_cast<size_t>(part)].push_back(i);
    }
  }

  Decoded run() {
    Decoded out;
    for (Conviction found = next(); !found.against.empty(); found = next()) {
      const auto part = static_cast<size_t>(found.part);
      guilty_[part] = true;
      for (const size_t i : failed_[part]) open_[i] = false;
      out.guilty.push_back(std::move(found));
    }
    for (size_t i = 0; i < open_.size(); ++i)
      if (open_[i]) out.unexplained.push_back(i);
    return out;
  }

 private:
  enum class Witness { spotless, mostly_passed };

  Conviction next() const {
    if (std::find(open_.begin(), open_.end(), true) == open_.end()) return {};
    Conviction found = strongest(Witness::spotless);
    return found.against.empty() ? strongest(Witness::mostly_passed) : found;
  }

  // Most witnesses first, then the fewer passes: a part that always fails rather than one that also passes.
  Conviction strongest(Witness kind) const {
    Conviction best;
    for (size_t part = 0; part < failed_.size(); ++part) {
      if (guilty_[part] || failed_[part].size() < 2) continue;
      const size_t failures = open_failures(part), passes = passed_[part].size();
      if (failures < 2 || (holds_[part] && failures < kHolderFails * passes)) continue;
      if (kind == Witness::mostly_passed && failures < 3 * passes) continue;
      Conviction found = evidence(static_cast<Part>(part), kind);
      if (found.against.size() > best.against.size() ||
          (found.against.size() == best.against.size() && !best.against.empty() &&
           passed_[part].size() < passed_[static_cast<size_t>(best.part)].size()))
        best = std::move(found);
    }
    return best;
  }

  Conviction evidence(Part part, Witness kind) const {
    Conviction out{part, {}};
    for (const size_t i : failed_[static_cast<size_t>(part)])
      if (open_[i] && std::all_of(probes_[i].path.begin(), probes_[i].path.end(), [&](Part other) {
            return other == part || lies_within(other, part) || credible(other, part, kind);
          }))
        out.against.push_back(i);
    for (const size_t i : out.against)
      for (const size_t j : out.against)
        if (i < j && meet_only_in(i, j, part)) return out;
    return {};
  }

  bool credible(Part witness, Part accused, Witness kind) const {
    const auto w = static_cast<size_t>(witness);
    if (guilty_[w]) return false;
    size_t passes = 0, failures = 0;
    for (const size_t p : passed_[w]) passes += !has(probes_[p].path, accused);
    for (const size_t f : failed_[w]) failures += open_[f] && !has(probes_[f].path, accused);
    if (passes == 0) return false;
    if (kind == Witness::spotless) return failures == 0;
    // What holds several bad parts fails often without being bad.
    return failures <= passes * (holds_[w] ? kHolderFails : 1);
  }

  size_t open_failures(size_t part) const {
    return static_cast<size_t>(
        std::count_if(failed_[part].begin(), failed_[part].end(), [&](size_t i) { return open_[i]; }));
  }

  bool lies_within(Part part, Part holder) const {
    return !within_.empty() && has(within_[static_cast<size_t>(part)], holder);
  }

  // But for what holds the part, which is on every probe of it.
  bool meet_only_in(size_t i, size_t j, Part part) const {
    return std::none_of(probes_[i].path.begin(), probes_[i].path.end(), [&](Part other) {
      return other != part && has(probes_[j].path, other) && !lies_within(part, other);
    });
  }

  const std::vector<Probe>& probes_;
  const std::vector<std::vector<Part>>& within_;
  std::vector<std::vector<size_t>> passed_, failed_;  // by part
  std::vector<bool> guilty_, holds_;                  // by part; holds_: others lie within it
  std::vector<bool> open_;                            // by probe: failed and not explained
};

}  // namespace

Decoded decode(size_t parts, const std::vector<Probe>& probes, const std::vector<std::vector<Part>>& within) {
  return Decoder(parts, probes, within).run();
}

std::vector<int> distinguishable(size_t parts, const std::vector<std::vector<Part>>& paths) {
  std::vector<std::vector<size_t>> on(parts);
  for (size_t i = 0; i < paths.size(); ++i)
    for (const Part part : paths[i]) on[static_cast<size_t>(part)].push_back(i);
  std::map<std::vector<size_t>, int> first;
  std::vector<int> out(parts);
  for (size_t part = 0; part < parts; ++part)
    out[part] = on[part].empty() ? static_cast<int>(part)
                                 : first.emplace(on[part], static_cast<int>(part)).first->second;
  return out;
}

}  // namespace muster::locate
