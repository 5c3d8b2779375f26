#include "controller/metrics/service/metrics_service.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/version.h"
#include "sys/open_files.h"
#include "sys/os.h"

namespace muster {
namespace {

ProcessMetrics own_process(TimeMs started) {
  ProcessMetrics out;
  out.started = started;
  timespec used = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  out.cpu = static_cast<DurationMs>(used.tv_sec) * kSecond + used.tv_nsec / 1'000'000;
  // In pages: "size resident shared ..."
  const std::string pages = Files().read_line("/proc/self/statm");
  if (const size_t second = pages.find(' '); second != std::string::npos)
    out.resident_bytes = std::strtoll(pages.c_str() + second, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
  out.open_files = static_cast<int64_t>(open_files_now());
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) out.most_open_files = static_cast<int64_t>(limit.rlim_cur);
  return out;
}

}  // namespace

const std::string& MetricsService::text() {
  return text_.get([this](const std::string&) { return exposition_of(gather()); });
}

ControllerMetrics MetricsService::gather() const {
  ControllerMetrics out;
  out.version = kProgramVersion;
  out.process = own_process(started_);
  out.nodes = nodes();
  for (const auto& [name, row] : parts_.executor.node_rows())
    out.undeclared += row.state == NodeState::unadmitted;
  out.run_active = parts_.executor.active();
  if (const auto run = parts_.store.run(0); run.ok()) out.last_run = *run;
  out.at_work = parts_.executor.at_work();
  out.rollout = parts_.rollout();
  out.images = parts_.images();
  out.certificates = parts_.certificates();
  out.problems = parts_.nodes.problems();
  out.causes = parts_.causes();
  out.notices = parts_.notices();
  return out;
}

std::vector<NodeMetrics> MetricsService::nodes() const {
  const auto& rows = parts_.executor.node_rows();
  const TimeMs now = parts_.reactor.now();
  std::vector<NodeMetrics> out;
  for (const std::string& name : parts_.nodes.names()) {
    NodeMetrics node;
    node.name = NodeName(name);
    if (const auto row = rows.find(name); row != rows.end()) {
      node.state = row->second.state;
      // The clock may have been set back since.
      if (const TimeMs since = parts_.nodes.silent_since(row->second); since > 0)
        node.silent = std::max<DurationMs>(0, now - since);
    }
    if (const auto ends = certificate_ends_.find(node.name); ends != certificate_ends_.end())
      node.certificate_ends = ends->second;
    out.push_back(std::move(node));
  }
  return out;
}

}  // namespace muster
