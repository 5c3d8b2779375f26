#include "controller/locate/decode.h"

#include <algorithm>

namespace muster::locate {
namespace {

bool has(const std::vector<Part>& path, Part part) {
  return std::find(path.begin(), path.end(), part) != path.end();
}

class Decoder {
 public:
  Decoder(size_t parts, const std::vector<Probe>& probes)
      : probes_(probes), passed_(parts), failed_(parts), faulty_(parts, false), open_(probes.size(), false) {
    for (size_t i = 0; i < probes.size(); ++i) {
      open_[i] = probes[i].failed;
      for (const Part part : probes[i].path)
        (probes[i].failed ? failed_ : passed_)[static_cast<size_t>(part)].push_back(i);
    }
  }

  Decoded run() {
    Decoded out;
    for (LocatedFault found = next(); !found.against.empty(); found = next()) {
      const auto part = static_cast<size_t>(found.part);
      faulty_[part] = true;
      for (const size_t i : failed_[part]) open_[i] = false;
      out.faulty.push_back(std::move(found));
    }
    for (size_t i = 0; i < open_.size(); ++i)
      if (open_[i]) out.unexplained.push_back(i);
    return out;
  }

 private:
  enum class Tester { spotless, mostly_passed };

  LocatedFault next() const {
    if (std::find(open_.begin(), open_.end(), true) == open_.end()) return {};
    LocatedFault found = strongest(Tester::spotless);
    return found.against.empty() ? strongest(Tester::mostly_passed) : found;
  }

  // Returns the conviction with the most failed probes; if equal, the part with the fewest passes, because a
  // part that always fails is more likely to be bad than one that sometimes passes.
  LocatedFault strongest(Tester kind) const {
    LocatedFault best;
    for (size_t part = 0; part < failed_.size(); ++part) {
      if (faulty_[part] || failed_[part].size() < 2) continue;
      const size_t failures = open_failures(part), passes = passed_[part].size();
      if (failures < 2) continue;
      if (kind == Tester::mostly_passed && failures < 3 * passes) continue;
      LocatedFault found = evidence(static_cast<Part>(part), kind);
      if (found.against.size() > best.against.size() ||
          (found.against.size() == best.against.size() && !best.against.empty() &&
           passed_[part].size() < passed_[static_cast<size_t>(best.part)].size()))
        best = std::move(found);
    }
    return best;
  }

  LocatedFault evidence(Part part, Tester kind) const {
    LocatedFault out{part, {}};
    for (const size_t i : failed_[static_cast<size_t>(part)])
      if (open_[i] && std::all_of(probes_[i].path.begin(), probes_[i].path.end(),
                                  [&](Part other) { return other == part || credible(other, part, kind); }))
        out.against.push_back(i);
    for (const size_t i : out.against)
      for (const size_t j : out.against)
        if (i < j && meet_only_in(i, j, part)) return out;
    return {};
  }

  bool credible(Part tester, Part suspect, Tester kind) const {
    const auto w = static_cast<size_t>(tester);
    if (faulty_[w]) return false;
    size_t passes = 0, failures = 0;
    for (const size_t p : passed_[w]) passes += !has(probes_[p].path, suspect);
    for (const size_t f : failed_[w]) failures += open_[f] && !has(probes_[f].path, suspect);
    if (passes == 0) return false;
    return kind == Tester::spotless ? failures == 0 : failures <= passes;
  }

  size_t open_failures(size_t part) const {
    return static_cast<size_t>(
        std::count_if(failed_[part].begin(), failed_[part].end(), [&](size_t i) { return open_[i]; }));
  }

  bool meet_only_in(size_t i, size_t j, Part part) const {
    return std::none_of(probes_[i].path.begin(), probes_[i].path.end(),
                        [&](Part other) { return other != part && has(probes_[j].path, other); });
  }

  const std::vector<Probe>& probes_;
  std::vector<std::vector<size_t>> passed_, failed_;  // by part
  std::vector<bool> faulty_;                          // by part
  std::vector<bool> open_;                            // by probe: failed and not yet explained
};

}  // namespace

Decoded decode(size_t parts, const std::vector<Probe>& probes) { return Decoder(parts, probes).run(); }

}  // namespace muster::locate
