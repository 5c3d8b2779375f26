#include "kernels/rdma/rdma_job.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <fmt/format.h>

#include "base/json_dump.h"
#include "base/record.h"
#include "host/rails.h"

namespace muster::kernels::rdma {
namespace {

constexpr int kMostSeconds = 3600, kMostIterations = 1000000;

struct JobText {
  bool latency = false;
  Job job = {};
};
MUSTER_RECORD(JobText, lenient, latency, flat(job))

}  // namespace

MUSTER_RECORD(Job::Item, label, rail)
MUSTER_RECORD(Job, seconds, iterations, gpu, items)

NodeLock::NodeLock(const Files& files)
    : fd_(::open(files.real(kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
NodeLock::~NodeLock() {
  if (fd_ >= 0) ::close(fd_);
}
bool NodeLock::take() { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }
void NodeLock::release() { ::flock(fd_, LOCK_UN); }

Ability look(const Files& files, Process& process) {
  Ability out;
  for (auto& port : rail_ports(files)) {
    if (port.active)
      out.rails.push_back(std::move(port));
    else
      out.inactive.push_back(
          fmt::format("{} is {}", port.label, port.state.empty() ? "in an unknown state" : port.state));
  }
  if (const auto record = read_networks_record(files); record.ok())
    for (const auto& rail : record->rails()) out.declared.push_back(rail.rail);
  // The exit status is ignored, since --help fails in perftest 4.5: it only matters that the program runs.
  const auto help = process.run({.argv = {"ib_write_bw", "--help"}});
  if (!help.ok()) out.perftest_problem = "perftest (ib_write_bw) is not installed";
  out.gpu = gpu_direct(files, help.ok() ? help->out + help->err : "");
  out.setpriv = files.exists("/usr/bin/setpriv");
  return out;
}

std::string rail_problem(const RdmaPort& port) {
  return port.ethernet && port.gid < 0 ? fmt::format("{} has no RoCE v2 GID with an IPv4 address", port.label)
                                       : "";
}

Json to_json(const Ability& ability) {
  Json rails = Json::array();
  for (const auto& port : ability.rails) {
    rails.push_back({{"label", port.label}, {"problem", rail_problem(port)}});
    if (port.rail >= 0) rails.back()["number"] = port.rail;
  }
  return {{"rails", rails},
          {"inactive", ability.inactive},
          {"perftest_problem", ability.perftest_problem},
          {"gpu_problem", ability.gpu.problem}};
}

double longest(const Job& job) {
  return static_cast<double>(
             perftest_command({.test = job.test, .seconds = job.seconds, .iterations = job.iterations})
                 .deadline) /
         kSecond;
}

Json to_json(const Job& job, const char* op, bool labels_of_partner, const std::vector<Rail>& rails) {
  Json items = Json::array();
  for (const auto& rail : rails)
    items.push_back({{"label", labels_of_partner ? rail.there : rail.here}, {"rail", rail.number}});
  return {{"op", op},
          {"latency", job.test == PerfTest::latency},
          {"seconds", job.seconds},
          {"iterations", job.iterations},
          {"gpu", job.gpu},
          {"items", items}};
}

Result<Job> job_from_json(const Json& json) {
  TRY(auto read, read_record<JobText>(json, "job"));
  Job& job = read.job;
  job.test = read.latency ? PerfTest::latency : PerfTest::bandwidth;
  if (job.seconds < 1 || job.seconds > kMostSeconds || job.iterations < 10 ||
      job.iterations > kMostIterations || job.items.size() > kMostRails)
    return fail(Code::invalid, "a value in the job is out of range");
  for (const Job::Item& item : job.items)
    if (item.rail >= kMostRails) return fail(Code::invalid, "a rail number is out of range");
  return std::move(job);
}

Status say(Connection& link, uint32_t type, const Json& json) {
  const std::string text = dump_json(json);
  return link.send(type, 0, text.data(), std::min(text.size(), kLargestFrame));
}
Result<Json> receive_json(Connection& link, uint32_t type) {
  TRY(const Header header, link.receive(type));
  return parse_json({link.body(), header.length});
}
Result<Json> request(Connection& link, const Json& question) {
  TRY_(say(link, question_type, question));
  TRY(Json out, receive_json(link, answer));
  if (out.contains("error") && out["error"].is_string())
    return fail(Code::failed, "the partner: " + out["error"].get<std::string>());
  return out;
}

}  // namespace muster::kernels::rdma
