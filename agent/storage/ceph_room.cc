// Estimates whether Ceph can drain OSDs onto the others: it moves no data onto an OSD that is fuller than its
// backfillfull ratio (0.90 by default), so a move that needs more space never ends.
//
// The estimate follows Ceph's placement rules: data is placed by weight, and no host has two replicas of the
// same data. If in doubt, the answer is no.
#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::steps {
namespace {

struct Store {
  int64_t id = -1;
  std::string host;
  double size = 0, used = 0, data = 0, weight = 0;
};

double number_in(const Json& json, const char* key, double fallback) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number() ? it->get<double>() : fallback;
}

// An OSD that `df` does not list keeps size 0.
std::vector<Store> stores_of(const Json& df, const std::vector<CephOsd>& osds) {
  std::vector<Store> out;
  for (const auto& osd : osds) {
    Store store;
    store.id = osd.id;
    store.host = osd.host;
    for (const auto& node : df.value("nodes", Json::array())) {
      if (node.value("id", int64_t{-1}) != osd.id) continue;
      store.size = number_in(node, "kb", 0);
      store.data = number_in(node, "kb_used_data", 0);
      store.used = std::max(number_in(node, "kb_used", 0), store.data);
      // Weights are in TiB by default.
      store.weight = number_in(node, "crush_weight", store.size / (1 << 30)) * number_in(node, "reweight", 1);
    }
    out.push_back(store);
  }
  return out;
}

double sum(const std::vector<Store>& stores, double Store::*what) {
  double out = 0;
  for (const auto& store : stores) out += store.*what;
  return out;
}

// How much of `all`, the total data, each host has after the move: by weight, but at most one replica of each
// object. Empty if there are fewer hosts than replicas.
std::map<std::string, double> shares(const std::map<std::string, double>& weights, double all,
                                     int64_t copies) {
  const double most = all / static_cast<double>(std::max<int64_t>(copies, 1));
  std::map<std::string, double> out, open;
  for (const auto& [host, weight] : weights)
    if (weight > 0) open.emplace(host, weight);
  if (static_cast<int64_t>(open.size()) < copies) return {};
  for (bool capped = true; capped && !open.empty();) {
    capped = false;
    double weight = 0;
    for (const auto& one : open) weight += one.second;
    for (auto it = open.begin(); it != open.end();) {
      if (all * it->second / weight <= most) {
        ++it;
        continue;
      }
      out[it->first] = most;
      it = open.erase(it);
      capped = true;
    }
    if (capped) {
      all = most * static_cast<double>(copies);
      for (const auto& one : out) all -= one.second;
      continue;
    }
    for (const auto& [host, own] : open) out[host] = all * own / weight;
  }
  return out;
}

}  // namespace

std::string ceph_lacks_room(const Json& dump, const Json& df, const CephMove& move) {
  double limit = number_in(dump, "backfillfull_ratio", 0);
  if (limit <= 0) limit = 0.90;
  if (const double full = number_in(dump, "full_ratio", 0); full > 0) limit = std::min(limit, full);
  const auto leaving = stores_of(df, move.leaving), staying = stores_of(df, move.staying);
  std::map<std::string, double> weights;
  for (const auto& store : staying) {
    if (store.size <= 0)
      return fmt::format("`ceph osd df` reports no size for osd.{} on {}", store.id, store.host);
    weights[store.host] += store.weight;
  }
  const double moved = sum(leaving, &Store::data), all = moved + sum(staying, &Store::data);
  const auto share = shares(weights, all, move.copies);
  if (share.empty())
    return fmt::format("{} copies require as many other nodes with OSDs whose weight is above 0",
                       move.copies);
  const double weight = sum(staying, &Store::weight);
  for (const auto& store : staying) {
    if (store.weight <= 0) continue;
    const auto host = share.find(store.host);
    // The larger of two estimates, by weight and from current data: no placement is perfectly even.
    const double data = std::max(host->second * store.weight / weights[store.host],
                                 store.data + moved * store.weight / weight);
    const double filled = (store.used - store.data + data) / store.size;
    if (filled > limit)
      return fmt::format(
          "{:.0f} GiB do not fit on the other nodes: osd.{} on {} would be {:.0f} % full, and Ceph moves "
          "nothing onto an OSD above {:.0f} %",
          moved / (1 << 20), store.id, store.host, 100 * filled, 100 * limit);
  }
  return "";
}

}  // namespace muster::steps
