// What a counter did between two readings, and that table, shipped profiles and documentation agree.
#include "base/counter_table.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

const PortCounter& row(const char* file) {
  const PortCounter* found = find_rdma_counter(file);
  REQUIRE(found != nullptr);
  return *found;
}

std::vector<PortCounter> all_counters() {
  std::vector<PortCounter> out(rdma_port_counters().begin(), rdma_port_counters().end());
  out.insert(out.end(), priority_counters().begin(), priority_counters().end());
  return out;
}

std::string text_in(const std::string& path) {
  std::ifstream in(source_dir() + "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a counter's rise is exact only between two readings of which neither is its end", "[counters]") {
  const PortCounter &symbols = row("counters/symbol_error"), &wait = row("counters/port_xmit_wait"),
                    &timeouts = row("hw_counters/local_ack_timeout_err"),
                    &soft = row("hw_counters/retry_exceeded_err");
  CHECK(rise_of(symbols, 7, 12).by == 5);
  CHECK(rise_of(symbols, 7, 12).at_least.empty());
  CHECK(rise_of(symbols, 65534, 65535).by == 1);
  CHECK_FALSE(rise_of(symbols, 65534, 65535).at_least.empty());
  CHECK(rise_of(symbols, 65535, 65535).by == 0);
  CHECK_FALSE(rise_of(symbols, 65535, 65535).at_least.empty());
  CHECK(rise_of(wait, 65535, 65536).at_least.empty());
  CHECK_FALSE(rise_of(wait, 65535, 4294967295).at_least.empty());
  // A driver may count further than the standard.
  CHECK(rise_of(symbols, 65000, 70009).by == 5009);
  CHECK(rise_of(symbols, 65000, 70009).at_least.empty());
  // Reset in between, and past its end.
  CHECK(rise_of(symbols, 65535, 3).by == 3);
  CHECK_FALSE(rise_of(symbols, 65535, 3).at_least.empty());
  CHECK(rise_of(timeouts, 4294967290, 4).by == 10);
  CHECK(rise_of(timeouts, 4294967290, 4).at_least.empty());
  CHECK(rise_of(timeouts, 900, 4).by == 4);
  CHECK_FALSE(rise_of(timeouts, 900, 4).at_least.empty());
  CHECK(rise_of(soft, ~uint64_t{0}, 4).by == 4);
  // Of what was not there before nothing is known.
  CHECK(rise_of(symbols, std::nullopt, 900).by == 0);
  CHECK_FALSE(rise_of(symbols, std::nullopt, 900).at_least.empty());
}

TEST_CASE("every counter is part of one metric, and flow control has no limit", "[counters]") {
  std::set<std::string_view> files, metrics;
  for (const PortMetric& metric : rdma_port_metrics()) {
    INFO(metric.name);
    CHECK(metrics.insert(metric.name).second);
    CHECK(metric.source.empty() == !metric.most_per_hour);
    if (metric.proves == Proves::flow_control || metric.proves == Proves::congestion)
      CHECK_FALSE(metric.most_per_hour);
  }
  for (const PortCounter& counter : all_counters()) {
    INFO(counter.file);
    CHECK(files.insert(counter.file).second);
    CHECK(metrics.contains(counter.metric));
    CHECK_FALSE(counter.meaning.empty());
  }
  // Soft-RoCE's name for retries that were exceeded is nearly mlx5's for ones that were not.
  CHECK(row("hw_counters/retry_rnr_exceeded_err").metric == "rdma_software_retries");
  CHECK(row("hw_counters/rnr_nak_retry_err").metric == "rdma_rnr_errors");
}

TEST_CASE("the shipped profiles' limits of RDMA counters are the table's", "[counters]") {
  for (const char* profile : {"standard", "burn"}) {
    CAPTURE(profile);
    size_t looked = 0;
    for (const auto& step :
         parse_playbook(text_in(std::string("playbooks/acceptance/") + profile + ".yaml")).playbook.steps) {
      if (step.name != "rdma counters") continue;
      for (const PortMetric& metric : rdma_port_metrics()) {
        INFO(metric.name);
        const auto limit = step.expect.find(std::string(metric.name));
        REQUIRE((limit != step.expect.end()) == metric.most_per_hour.has_value());
        if (!metric.most_per_hour) continue;
        ++looked;
        CHECK(limit->value("degraded_above", limit->value("max", -1.0)) == *metric.most_per_hour);
      }
      CHECK(step.expect.size() == looked);
    }
    CHECK(looked > 0);
  }
}

TEST_CASE("the documentation has every counter with its metric", "[counters]") {
  const std::string page = text_in("docs/acceptance.md");
  for (const PortMetric& metric : rdma_port_metrics()) {
    std::string files;
    for (const PortCounter& counter : all_counters()) {
      std::string name(counter.name());
      if (const size_t at = name.find("{}"); at != std::string::npos) name.replace(at, 2, "N");
      if (counter.metric != metric.name || files.find("`" + name + "`") != std::string::npos) continue;
      files += fmt::format("{}`{}`", files.empty() ? "" : ", ", name);
    }
    const std::string line = fmt::format("| `{}` | {} | {} |", metric.name, to_string(metric.proves), files);
    INFO(line);
    CHECK(page.find(line) != std::string::npos);
  }
}
