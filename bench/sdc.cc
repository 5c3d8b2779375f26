// Counts which check for silent data corruption sees which flipped bit, on the CPU reference
// (kernels/cpu/sdc.h). Closes with one line of JSON; exits 1 when a flip that changed the output was missed,
// or a clean product was reported as faulty. usage: muster-bench-sdc [FLIPS [CLEAN TRIALS]]
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>

#include "base/json.h"
#include "base/json_dump.h"
#include "kernels/cpu/sdc.h"

namespace muster::kernels::sdc {
namespace {

constexpr size_t kEdge = 64, kCleanEdge = 32;

struct Row {
  size_t flips = 0, changed = 0, missed = 0, harmless_alarms = 0;
  std::array<size_t, kChecks.size()> seen = {}, only = {};
};

void count(Row& row, const Outcome& outcome) {
  ++row.flips;
  row.changed += outcome.changed;
  row.missed += outcome.changed && !outcome.any();
  row.harmless_alarms += !outcome.changed && outcome.any();
  const auto alarms = std::count(outcome.alarm.begin(), outcome.alarm.end(), true);
  for (size_t c = 0; c < kChecks.size(); ++c) {
    row.seen[c] += outcome.alarm[c];
    row.only[c] += outcome.alarm[c] && alarms == 1;
  }
}

int main_with(size_t flips, size_t clean) {
  std::map<std::pair<size_t, bool>, Row> rows;
  Row all;
  SplitMix random(2026);
  for (size_t i = 0; i < flips; ++i) {
    const size_t site = i % kSites.size();
    const Fault fault{kSites[site], random.next() % (kEdge * kEdge),
                      static_cast<unsigned>(random.next() % bits_of(kSites[site])),
                      random.next() % (kEdge + 1), i / kSites.size() % 2 == 1};
    const Outcome outcome = examine(kEdge, 1000 + i, &fault);
    count(rows[{site, fault.repeats}], outcome);
    count(all, outcome);
  }
  size_t accused = 0;
  for (size_t i = 0; i < clean; ++i) accused += examine(kCleanEdge, 1000000 + i).any();

  fmt::print("| flipped in | again in the repeat | flips | changed the output |");
  for (const Check check : kChecks) fmt::print(" {} |", to_string(check));
  fmt::print(" missed |\n|---|---|---|---|---|---|---|---|---|---|\n");
  Json table = Json::array();
  for (const auto& [key, row] : rows) {
    fmt::print("| {} | {} | {} | {} |", to_string(kSites[key.first]), key.second ? "yes" : "no", row.flips,
               row.changed);
    Json seen = Json::object();
    for (size_t c = 0; c < kChecks.size(); ++c) {
      fmt::print(" {} |", row.seen[c]);
      seen[to_string(kChecks[c])] = row.seen[c];
    }
    fmt::print(" {} |\n", row.missed);
    table.push_back({{"site", to_string(kSites[key.first])},
                     {"repeats", key.second},
                     {"flips", row.flips},
                     {"changed", row.changed},
                     {"missed", row.missed},
                     {"seen", seen}});
  }
  const Json summary = {{"benchmark", "sdc"},
                        {"device", "CPU reference"},
                        {"n", kEdge},
                        {"flips", all.flips},
                        {"changed", all.changed},
                        {"missed", all.missed},
                        {"alarms_without_change", all.harmless_alarms},
                        {"clean_trials", clean},
                        {"accused", accused},
                        {"rows", table}};
  fmt::print("{}\n", dump_json(summary));
  return all.missed == 0 && accused == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::kernels::sdc

int main(int argc, char** argv) {
  const long flips = argc > 1 ? std::atol(argv[1]) : 1000, clean = argc > 2 ? std::atol(argv[2]) : 10000;
  if (flips < 1 || clean < 0) {
    fmt::print(stderr, "usage: muster-bench-sdc [FLIPS [CLEAN TRIALS]]\n");
    return 2;
  }
  return muster::kernels::sdc::main_with(static_cast<size_t>(flips), static_cast<size_t>(clean));
}
