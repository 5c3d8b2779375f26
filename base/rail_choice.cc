#include "base/rail_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <set>

#include "base/pci_address.h"
#include "base/split.h"

namespace muster {
namespace {

using Indexes = std::vector<size_t>;

bool is_host_bridge(const std::string& part) {
  return part.size() >= 10 && part.starts_with("pci") && part[part.size() - 3] == ':';
}

bool is_function(const std::string& part) { return is_pci_address(part); }

size_t in_common(const std::string& one, const std::string& other) {
  const auto a = split(one, '/'), b = split(other, '/');
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + static_cast<long>(most), b.begin()).first -
                             a.begin());
}

// Returns none if no port shares a part of the GPU's path.
Indexes nearest(const RailQuestion& q, const Indexes& ports, const std::string& gpu) {
  size_t best = 1;
  Indexes out;
  for (const size_t i : ports) {
    const size_t near = in_common(q.ports[i].path, gpu);
    if (near < best) continue;
    if (near > best) out.clear();
    best = near;
    out.push_back(i);
  }
  return out;
}

template <class Keep>
Indexes those(const Indexes& ports, Keep keep) {
  Indexes out;
  std::copy_if(ports.begin(), ports.end(), std::back_inserter(out), keep);
  return out;
}

// Not yet ordered.
Result<Indexes> choose(const RailQuestion& q) {
  Indexes all(q.ports.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() == q.count) return all;
  const auto has_link = [&](size_t i) { return q.ports[i].link; };
  std::set<size_t> beside;
  for (const auto& gpu : q.gpus)
    for (const size_t i : nearest(q, all, gpu)) beside.insert(i);
  const Indexes near(beside.begin(), beside.end()), near_linked = those(near, has_link),
                                                    linked = those(all, has_link);
  int64_t best = 0;
  for (const size_t i : linked) best = std::max(best, q.ports[i].speed_mbps);
  const auto fastest = those(linked, [&](size_t i) { return best > 0 && q.ports[i].speed_mbps == best; });
  for (const auto* some : {&near, &near_linked, &linked, &fastest})
    if (some->size() == q.count) return *some;
  return fail(
      Code::conflict,
      fmt::format("{} ports match, {} of them near a GPU and {} with a link ({}): name the ports in the spec",
                  all.size(), near.size(), linked.size(), list_of_ports(q.ports)));
}

// As many rails as GPUs: one each. GPUs with the fewest candidate ports come first: the sets of nearest ports
// are nested or disjoint, so this finds an assignment whenever there is one.
Result<Indexes> one_each(const RailQuestion& q, const Indexes& ports) {
  std::vector<Indexes> near;
  for (const auto& gpu : q.gpus) near.push_back(nearest(q, ports, gpu));
  Indexes turn(near.size());
  std::iota(turn.begin(), turn.end(), size_t{0});
  const auto choice = [&](size_t gpu) { return near[gpu].empty() ? ports.size() + 1 : near[gpu].size(); };
  std::stable_sort(turn.begin(), turn.end(), [&](size_t a, size_t b) { return choice(a) < choice(b); });
  Indexes out(near.size());
  std::set<size_t> used;
  for (const size_t gpu : turn) {
    const Indexes& from = near[gpu].empty() ? ports : near[gpu];
    const auto free = std::find_if(from.begin(), from.end(), [&](size_t i) { return !used.count(i); });
    if (free == from.end())
      return fail(Code::conflict, fmt::format("the ports nearest to GPU {} are also nearest to other GPUs, "
                                              "and there are more such GPUs than ports ({}): name the ports "
                                              "in the spec",
                                              gpu, list_of_ports(q.ports)));
    used.insert(*free);
    out[gpu] = *free;
  }
  return out;
}

// Fewer rails than GPUs, or more: ordered by the first GPU that each port is nearest to.
Indexes by_first_gpu(const RailQuestion& q, Indexes ports) {
  std::map<size_t, int> first;
  for (const size_t i : ports) {
    size_t best = 1;
    first[i] = INT_MAX;
    for (size_t g = 0; g < q.gpus.size(); ++g)
      if (const size_t near = in_common(q.ports[i].path, q.gpus[g]);
          near > best || (near == best && first[i] == INT_MAX)) {
        best = near;
        first[i] = static_cast<int>(g);
      }
  }
  std::stable_sort(ports.begin(), ports.end(), [&](size_t a, size_t b) { return first[a] < first[b]; });
  return ports;
}

}  // namespace

std::string list_of_ports(const std::vector<RailPort>& ports) {
  std::string out;
  for (const auto& port : ports)
    out += (out.empty() ? "" : ", ") + port.said + (port.link ? " with a link" : " without a link");
  return out.empty() ? "none" : out;
}

Result<RailAnswer> choose_rails(const RailQuestion& q) {
  if (q.ports.size() < q.count)
    return fail(Code::not_found,
                fmt::format("only {} port{} left besides the provisioning port and the named ports: {}",
                            q.ports.size(), q.ports.size() == 1 ? "" : "s", list_of_ports(q.ports)));
  if (!q.gpus.empty() && q.gpus_declared > 0 && static_cast<int>(q.gpus.size()) != q.gpus_declared)
    return fail(Code::conflict,
                fmt::format("rails are numbered by the nearest GPUs, but there are {} GPUs "
                            "instead of {}: repair the GPUs first, or name the ports in the spec",
                            q.gpus.size(), q.gpus_declared));
  TRY(const Indexes chosen, choose(q));
  const bool any = std::any_of(q.gpus.begin(), q.gpus.end(),
                               [&](const std::string& gpu) { return !nearest(q, chosen, gpu).empty(); });
  if (!any) return RailAnswer{chosen, false};
  if (q.gpus.size() != q.count) return RailAnswer{by_first_gpu(q, chosen), true};
  TRY(auto ordered, one_each(q, chosen));
  return RailAnswer{std::move(ordered), true};
}

std::string pci_path(const std::string& link) {
  std::string out, last;
  for (const auto& part : split(link, '/')) {
    if (part.starts_with("usb")) return "";
    if (!is_host_bridge(part) && !is_function(part)) continue;
    if (!last.empty()) out += (out.empty() ? "" : "/") + last;
    last = part;
  }
  return is_function(last) ? out : "";
}

}  // namespace muster
