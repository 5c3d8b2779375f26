// NCCL over several nodes: every member starts muster-accept-gpu on its node, passes it the address at which
// the GPU ranks rendezvous, and rank 0 combines their output. Loads: nccl, the collectives
// of all GPUs at once; gpu-training, transformer blocks on the GPUs of 1, 2, 4 ... and all nodes, in groups
// of nodes in parallel.
//
// Rationale:   muster-accept-gpu needs no group and this program needs no CUDA, so that neither depends on
//              the other's libraries.
// Failure:     a node that could not take part would leave the others waiting inside NCCL. So while the
//              programs run, the members exchange a few bytes five times a second: if one ended without a
//              result, the others end theirs, and the report names the one that failed.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/json_dump.h"
#include "kernels/common/kernels.h"
#include "kernels/link/link.h"
#include "kernels/together/loads.h"
#include "kernels/together/training_load.h"

namespace muster::together {
namespace {

constexpr int kMomentMilliseconds = 200;
constexpr size_t kMostStrong = 256;  // sequences

// --- the program on this node
struct Child {
  pid_t pid = -1;
  int out = -1;
  std::string text = {};
};

std::string library_path(const std::string& libs) {
  const char* known = std::getenv("LD_LIBRARY_PATH");
  return libs + (known && *known ? ":" + std::string(known) : "");
}

Child start(const std::vector<std::string>& words, const std::string& libs) {
  Child child;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return child;
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string path = library_path(libs);
  const pid_t parent = ::getpid();
  child.pid = ::fork();
  if (child.pid == 0) {
    // The program must not outlive this rank, however the rank ends.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    if (!libs.empty()) ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  child.out = ends[0];
  return child;
}

// Waits briefly for output; false if the program has closed it.
bool read_some(Child& child) {
  pollfd ready{child.out, POLLIN, 0};
  if (::poll(&ready, 1, kMomentMilliseconds) <= 0) return true;
  char buffer[65536];
  const ssize_t n = ::read(child.out, buffer, sizeof buffer);
  if (n > 0) child.text.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

Json missing(const std::string& outcome, const std::string& error) {
  return {{"check", ""},    {"version", 1},           {"outcome", outcome},
          {"error", error}, {"blame", Json::array()}, {"metrics", Json::object()}};
}

// Returns the measurement that the program printed; if it is invalid, one that reports this as its error.
Json finish(Child& child, const std::string& program) {
  int status = 0;
  ::close(child.out);
  ::waitpid(child.pid, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 127 && child.text.empty()) {
    Json out = missing("unavailable", program + " is not on this node");
    out["detail"]["missing"] = "muster-accept-gpu";
    return out;
  }
  const auto json = parse_json(child.text);
  if (json.ok() && json->is_object() && json->contains("outcome") && (*json)["outcome"].is_string())
    return *json;
  return missing("failed",
                 WIFSIGNALED(status)
                     ? "the GPU program was ended by signal " + std::to_string(WTERMSIG(status))
                     : "the GPU program printed no measurement and exited with " + std::to_string(code));
}

bool took_part(const Json& result) {
  const std::string outcome = result.value("outcome", "");
  return outcome == "measured" || outcome == "corrupt";
}

// Runs the program until it ends or another member's program fails; then "stopped" marks its result. An
// error: the group is over.
Result<Json> run_here(const std::vector<std::string>& words, const std::string& libs, Group& group) {
  Child child = start(words, libs);
  bool runs = child.pid > 0;
  Json result = runs ? Json() : missing("failed", "cannot start a process");
  std::array<double, 2> somewhere = {};  // on any node: a program still runs; one ended without a result
  Status status = Ok{};
  do {
    if (runs && !read_some(child)) {
      runs = false;
      result = finish(child, words.front());
    }
    somewhere = {runs ? 1.0 : 0.0, !runs && !took_part(result) ? 1.0 : 0.0};
    status = group.max(somewhere);
  } while (status.ok() && somewhere[0] > 0 && somewhere[1] == 0);
  if (runs) {
    ::kill(child.pid, SIGKILL);
    finish(child, words.front());
    result = missing("unavailable", "stopped, because another node could not take part");
    result["detail"]["stopped"] = true;
  }
  TRY_(std::move(status));
  return result;
}

// --- together
Result<std::vector<Json>> gather_results(const Json& mine, Group& group) {
  TRY(const auto texts, group.gather(dump_json(mine), 0));
  std::vector<Json> out;
  for (const auto& text : texts) {
    Json json = parse_json(text).value_or(nullptr);
    const bool whole = json.is_object() && json.contains("outcome") && json["outcome"].is_string() &&
                       json.contains("blame") && json["blame"].is_array() && json.contains("metrics") &&
                       json["metrics"].is_object();
    out.push_back(whole ? std::move(json) : missing("failed", "the load's output is not a measurement"));
  }
  return out;
}

// Bus bandwidth is the slowest node's. The program's `ranks` become `gpus`: a load's `ranks` are its nodes.
void add_metrics(Json& out, const Json& result) {
  for (const auto& [name, metric] : result["metrics"].items()) {
    if (!metric.is_object() || !metric.contains("value") || !metric["value"].is_number()) continue;
    const std::string key = name == "ranks" ? "gpus" : name;
    Json& known = out["metrics"][key];
    if (known.is_null() || metric["value"].get<double>() < known["value"].get<double>()) known = metric;
  }
}

int how_bad(const Json& result) {
  static const std::map<std::string, int> kWorse = {
      {"measured", 0}, {"unavailable", 1}, {"refused", 2}, {"failed", 3}, {"corrupt", 4}};
  const auto found = kWorse.find(result["outcome"].get<std::string>());
  return found == kWorse.end() ? 3 : found->second;
}

// True if this node's program was stopped because of another node, and so has no result.
bool was_stopped(const Json& result) {
  const auto detail = result.find("detail");
  return detail != result.end() && detail->is_object() && detail->value("stopped", false);
}

std::string error_of(const Json& result, const char* fallback) {
  const auto error = result.find("error");
  return error != result.end() && error->is_string() ? error->get<std::string>() : fallback;
}

// Adds the errors of these nodes, and why some have no result.
void add_verdicts(Json& out, const std::vector<Json>& results, const std::vector<std::string>& hosts) {
  for (size_t r = 0; r < results.size(); ++r) {
    const Json& one = results[r];
    if (was_stopped(one)) continue;
    for (const auto& who : one["blame"]) {
      const Json named = who.is_string() ? who.get<std::string>() + " on " + hosts[r] : hosts[r];
      if (std::find(out["blame"].begin(), out["blame"].end(), named) == out["blame"].end())
        out["blame"].push_back(named);
    }
    if (how_bad(one) > how_bad(out))
      out["outcome"] = one["outcome"], out["error"] = hosts[r] + ": " + error_of(one, "no reason given");
  }
}

// Returns the rails that NCCL uses between nodes, for the node with the lowest total rate.
Json least_rails(const std::vector<Json>& results) {
  Json least = nullptr;
  double least_sum = 0;
  for (const Json& one : results) {
    const auto detail = one.find("detail");
    if (detail == one.end() || !detail->is_object() || !detail->contains("rails") ||
        !(*detail)["rails"].is_array())
      continue;
    double sum = 0;
    for (const Json& rail : (*detail)["rails"])
      if (const Json rate = rail.is_object() ? rail.value("rate_gbps", Json()) : Json(); rate.is_number())
        sum += rate.get<double>();
    if (least.is_null() || sum < least_sum) least = (*detail)["rails"], least_sum = sum;
  }
  return least;
}

Json merge(const char* load, const std::string& algorithm, const std::vector<Json>& results,
           const std::vector<std::string>& hosts) {
  Json out = missing("measured", "");
  out["check"] = load;
  out["metrics"]["ranks"] = {{"value", hosts.size()}, {"unit", "ranks"}};
  out["detail"] = {{"hosts", hosts},
                   {"algorithm", algorithm.empty() ? "NCCL's choice" : algorithm},
                   {"nodes", Json::array()}};
  if (Json rails = least_rails(results); !rails.is_null()) out["detail"]["rails"] = std::move(rails);
  add_verdicts(out, results, hosts);
  for (size_t r = 0; r < results.size(); ++r) {
    const Json& one = results[r];
    add_metrics(out, one);
    out["detail"]["nodes"].push_back({{"host", hosts[r]},
                                      {"outcome", one["outcome"]},
                                      {"error", error_of(one, "")},
                                      {"detail", one.value("detail", Json())}});
  }
  return out;
}

// Selects the same number of GPUs on every node: with different numbers the ranks would not match.
std::string gpu_list(int gpus) {
  std::string out = "0";
  for (int i = 1; i < gpus; ++i) out += "," + std::to_string(i);
  return out;
}

// Runs the program on all nodes of a group together.
Result<Json> run_group(const LoadOptions& options, const GpuHere& here, Group& group,
                       std::vector<std::string> more) {
  const auto own = group.rank() == 0 ? here.root() : Result<std::string>(std::string());
  // The first character distinguishes an address from an error.
  const std::string reported = own.ok() ? "@" + *own : "!" + own.error().message;
  TRY(const auto all, group.allgather(reported));
  if (all.front().empty() || all.front()[0] != '@')
    return missing("refused", all.front().empty() ? "no address" : all.front().substr(1));
  std::vector<std::string> words = {here.program, more.front()};
  words.insert(words.end(), {"--nodes", std::to_string(group.size()), "--node", std::to_string(group.rank()),
                             "--root", all.front().substr(1), "--gpus", gpu_list(options.gpus)});
  if (!options.algorithm.empty()) words.insert(words.end(), {"--algorithm", options.algorithm});
  words.insert(words.end(), more.begin() + 1, more.end());
  return run_here(words, here.libs, group);
}

double metric_of(const Json& result, const std::string& name) {
  const auto it = result["metrics"].find(name);
  return it != result["metrics"].end() && it->is_object() && it->contains("value") &&
                 (*it)["value"].is_number()
             ? (*it)["value"].get<double>()
             : 0;
}

// Adds a point of the scaling study: the median over groups of n nodes. `groups`: the result of each group's
// first node. `one`: for each kind, operations per second of a GPU on one node.
void add_point(Json& out, int gpus, const std::string& kind, int n, const std::vector<const Json*>& groups,
               std::map<std::string, double>& one) {
  std::vector<double> seconds, rates;
  for (const Json* group : groups)
    if (const double took = metric_of(*group, kind + "_seconds"), rate = metric_of(*group, kind + "_tflops");
        took > 0 && rate > 0)
      seconds.push_back(took), rates.push_back(rate);
  if (seconds.empty()) return;
  const double rate = kernels::median(rates);
  one.try_emplace(kind, rate);
  const double efficiency = rate / one[kind];
  out["detail"]["scaling"].push_back({{"kind", kind},
                                      {"nodes", n},
                                      {"groups", seconds.size()},
                                      {"seconds", kernels::median(seconds)},
                                      {"slowest_seconds", *std::max_element(seconds.begin(), seconds.end())},
                                      {"gflops_per_node", rate * 1e3 * gpus},
                                      {"efficiency", efficiency}});
  if (n > 1) out["metrics"][kind + "_efficiency"] = {{"value", efficiency}, {"unit", "ratio"}};
}

Result<Json> measure_nccl(Group& group, const LoadOptions& options, const GpuHere& here) {
  std::vector<std::string> more = {"nccl", "--mib",
                                   std::to_string(std::max<size_t>(options.max_bytes >> 20, 1)), "--seconds",
                                   std::to_string(options.seconds)};
  if (group.rank() == options.flip_rank) more.insert(more.end(), {"--inject-flip", "0:0:0"});
  TRY(Json mine, run_group(options, here, group, std::move(more)));
  if (!mine.contains("detail") || !mine["detail"].is_object()) mine["detail"] = Json::object();
  mine["detail"]["rails"] = kernels::active_rails(Files("/"));
  TRY(const auto results, gather_results(mine, group));
  return group.rank() == 0 ? merge("nccl", options.algorithm, results, names(group)) : mine;
}

// Runs and evaluates one number of nodes n: all groups of n nodes in parallel.
Result<Json> measure_side_by_side(Group& group, const LoadOptions& options, const GpuHere& here, int n) {
  const auto& shape = options.shape;
  // One sequence for each GPU of all nodes, but no more than a single node can compute in time.
  const size_t strong =
      std::min(kMostStrong, static_cast<size_t>(options.gpus) * static_cast<size_t>(group.size()));
  const auto sizes = static_cast<double>(node_counts(group.size()).size());
  std::vector<std::string> more = {"training"};
  const std::pair<const char*, std::string> numbers[] = {
      {"--model", std::to_string(shape.model)},
      {"--heads", std::to_string(shape.heads)},
      {"--sequence", std::to_string(shape.sequence)},
      {"--layers", std::to_string(shape.layers)},
      {"--strong-sequences", std::to_string(strong)},
      {"--seconds", std::to_string(options.seconds / 4 / sizes)}};
  for (const auto& [name, value] : numbers) more.insert(more.end(), {name, value});
  if (group.rank() == options.flip_rank) more.insert(more.end(), {"--inject-flip", "0:0:0"});
  const bool full = (group.rank() / n + 1) * n <= group.size();  // the others wait
  TRY(const auto side, group.split(full ? group.rank() / n : -1));
  return side ? run_group(options, here, *side, std::move(more)) : Result<Json>(missing("measured", ""));
}

Result<Json> measure_gpu_training(Group& group, const LoadOptions& options, const GpuHere& here) {
  const auto hosts = names(group);
  Json out, verdicts = missing("measured", ""), scaling = Json::array();
  std::map<std::string, double> one;
  for (const int n : node_counts(group.size())) {
    TRY(const Json mine, measure_side_by_side(group, options, here, n));
    TRY(const auto results, gather_results(mine, group));
    if (group.rank() != 0) continue;
    out = merge("gpu-training", options.algorithm, results, hosts);
    add_verdicts(verdicts, results, hosts);
    out["detail"]["scaling"] = scaling;
    std::vector<const Json*> groups;
    for (size_t first = 0; first + static_cast<size_t>(n) <= results.size(); first += static_cast<size_t>(n))
      groups.push_back(&results[first]);
    for (const char* kind : {"weak", "strong", "pipeline"})
      add_point(out, options.gpus, kind, n, groups, one);
    scaling = out["detail"]["scaling"];
    for (const char* key : {"outcome", "error", "blame"})
      out[key] = verdicts[key];  // of all numbers of nodes
  }
  return out;
}

using Measure = Result<Json> (*)(Group&, const LoadOptions&, const GpuHere&);
kernels::Measurement carry_out(const char* check, Measure measure, Group& group, const LoadOptions& options,
                               const GpuHere& here) {
  // Members that are left over when groups are formed wait while the others compute.
  group.within(options.patience + options.seconds);
  const auto result = measure(group, options, here);
  if (!result.ok()) return lost_measurement(check, group.lost(), result.error());
  if (group.rank() == 0) return measurement_from_json(*result);
  kernels::Measurement out;
  out.check = check;
  out.detail = {{"rank", group.rank()}, {"took_part", true}};
  return out;
}

}  // namespace

kernels::Measurement run_nccl(Group& group, const LoadOptions& options, const GpuHere& here) {
  return carry_out("nccl", measure_nccl, group, options, here);
}

kernels::Measurement run_gpu_training(Group& group, const LoadOptions& options, const GpuHere& here) {
  return carry_out("gpu-training", measure_gpu_training, group, options, here);
}

}  // namespace muster::together
