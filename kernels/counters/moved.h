// What the error counters of one machine did between two readings, as kernels/counters/ collects it. Thread
// safety: value types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/counter_table.h"
#include "base/json.h"

namespace muster::kernels {

// By metric or counter, then by part. What is saved before the load.
using Counts = std::map<std::string, std::map<std::string, uint64_t>>;

// Null: it was not saved.
inline const uint64_t* saved_count(const Counts& counts, const std::string& what, const std::string& part) {
  const auto parts = counts.find(what);
  if (parts == counts.end()) return nullptr;
  const auto found = parts->second.find(part);
  return found == parts->second.end() ? nullptr : &found->second;
}
inline uint64_t count_of(const Counts& counts, const std::string& what, const std::string& part) {
  const uint64_t* saved = saved_count(counts, what, part);
  return saved ? *saved : 0;
}

struct Moved {
  std::map<std::string, uint64_t> sums = {};  // by metric, over all parts
  Json parts = Json::object();                // {part: {metric: by how much}}
  Json absent = Json::array();                // metrics that this machine does not count

  // For counters that the kernel or the driver starts at 0.
  void add(const char* metric, const Counts& now, const Counts& before) {
    const auto found = now.find(metric);
    if (found == now.end() || found->second.empty()) return absent.push_back(metric);
    for (const auto& [part, count] : found->second) {
      const uint64_t by = rise_from(count_of(before, metric, part), count);
      if (by > 0) parts[part][metric] = by;
      sums[metric] += by;
    }
  }
};

}  // namespace muster::kernels
