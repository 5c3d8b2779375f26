// NCCL over several nodes: every MPI rank starts muster-accept-gpu on its node, hands it the address at
// which the GPUs find each other, and rank 0 puts together what all of them printed. Loads: nccl, the
// collectives of all GPUs at once; gpu-training, transformer blocks on the GPUs of 1, 2, 4 ... and all
// nodes, in groups of nodes side by side.
//
// How to run:  mpirun -np 2 --host a,b muster-mpi-check --load nccl --gpus 8 --network 10.20.0.0/24
// --program /usr/lib/muster/muster-accept-gpu Why so:      muster-accept-gpu needs no MPI and this program
// needs no CUDA, so each runs where the other's libraries are not. One fails:   whoever could not take part
// would leave the others waiting inside NCCL. So a rank whose program ended without a result
//              tells the others, and they end theirs; the report names the one that ended by itself.
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/json_dump.h"
#include "kernels/kernels.h"
#include "kernels/mpi_check.h"

namespace muster::mpi {
namespace {

constexpr int kStop = 2;  // tag: the sender's program ended without a result
constexpr int kPollMilliseconds = 20;
constexpr int kRootLength = 64;
constexpr size_t kMostStrong = 256;  // sequences

// --- where rank 0 listens
struct Network {
  uint32_t address = 0, mask = 0;  // host order; mask 0: any
};
bool parse_network(const std::string& text, Network& out) {
  if (text.empty()) return true;
  const size_t slash = text.find('/');
  in_addr address = {};
  const int bits = slash == std::string::npos ? 32 : std::atoi(text.c_str() + slash + 1);
  if (::inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1 || bits < 1 || bits > 32)
    return false;
  out.mask = ~uint32_t{0} << (32 - bits);
  out.address = ntohl(address.s_addr) & out.mask;
  return true;
}

// This machine's address in the network; without one given, the first that is not the loopback's.
in_addr own_address(const Network& network) {
  in_addr out = {};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* i = list; i && out.s_addr == 0; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
    const in_addr found = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
    const uint32_t host = ntohl(found.s_addr);
    const bool fits = network.mask != 0 ? (host & network.mask) == network.address : host >> 24 != 127;
    if (fits) out = found;
  }
  ::freeifaddrs(list);
  return out;
}

// "address:port", free a moment ago; "" when this machine has no such address.
std::string free_root(const Options& options) {
  Network network;
  if (!parse_network(options.network, network)) return "";
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr = own_address(network);
  if (at.sin_addr.s_addr == 0) return "";
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof at;
  const bool bound = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  if (fd >= 0) ::close(fd);
  char text[INET_ADDRSTRLEN] = {};
  if (!bound || !::inet_ntop(AF_INET, &at.sin_addr, text, sizeof text)) return "";
  return std::string(text) + ":" + std::to_string(ntohs(at.sin_port));
}

// --- the program on this node
struct Child {
  pid_t pid = -1;
  int out = -1;
  std::string text = {};
};

Child start(const std::vector<std::string>& words) {
  Child child;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return child;
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  child.pid = ::fork();
  if (child.pid == 0) {
    // It must not outlive this rank: mpirun ends only what it started itself.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  child.out = ends[0];
  return child;
}

// Waits a moment for output; false when the program has closed it.
bool read_some(Child& child) {
  pollfd ready{child.out, POLLIN, 0};
  if (::poll(&ready, 1, kPollMilliseconds) <= 0) return true;
  char buffer[65536];
  const ssize_t n = ::read(child.out, buffer, sizeof buffer);
  if (n > 0) child.text.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

Json missing(const std::string& outcome, const std::string& error) {
  return {{"check", ""},    {"version", 1},           {"outcome", outcome},
          {"error", error}, {"blame", Json::array()}, {"metrics", Json::object()}};
}

// What it printed; where that is no measurement, one that says so.
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
  return missing("failed", WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                               : "no measurement, exit " + std::to_string(code));
}

bool took_part(const Json& result) {
  const std::string outcome = result["outcome"];
  return outcome == "measured" || outcome == "corrupt";
}

bool told_to_stop(MPI_Comm comm) {
  int there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, kStop, comm, &there, MPI_STATUS_IGNORE);
  return there != 0;
}

// Runs it to its end, or to that of another rank's. "stopped" says that the end was not its own.
Json run_here(const std::vector<std::string>& words, MPI_Comm comm) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  Child child = start(words);
  if (child.pid < 0) return missing("failed", "cannot start a process");
  bool stopped = false;
  while (read_some(child)) {
    if (!told_to_stop(comm)) continue;
    ::kill(child.pid, SIGKILL);
    stopped = true;
    break;
  }
  Json result = finish(child, words.front());
  if (stopped) {
    result = missing("unavailable", "ended, because another node could not take part");
    result["detail"]["stopped"] = true;
  } else if (!took_part(result)) {
    for (int other = 0; other < ranks; ++other)
      if (other != rank) MPI_Send(nullptr, 0, MPI_CHAR, other, kStop, comm);
  }
  MPI_Barrier(comm);
  while (told_to_stop(comm)) MPI_Recv(nullptr, 0, MPI_CHAR, MPI_ANY_SOURCE, kStop, comm, MPI_STATUS_IGNORE);
  return result;
}

// --- together
std::vector<Json> gather_results(const Json& mine, int rank, int ranks) {
  const std::string text = dump_json(mine);
  int length = static_cast<int>(text.size());
  std::vector<int> lengths(static_cast<size_t>(ranks)), starts(static_cast<size_t>(ranks));
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  int all = 0;
  for (size_t r = 0; r < lengths.size(); ++r) starts[r] = all, all += lengths[r];
  std::string texts(static_cast<size_t>(all), '\0');
  MPI_Gatherv(text.data(), length, MPI_CHAR, texts.data(), lengths.data(), starts.data(), MPI_CHAR, 0,
              MPI_COMM_WORLD);
  std::vector<Json> out;
  for (size_t r = 0; rank == 0 && r < lengths.size(); ++r)
    out.push_back(parse_json(std::string_view(texts).substr(static_cast<size_t>(starts[r]),
                                                            static_cast<size_t>(lengths[r])))
                      .value_or(nullptr));
  return out;
}

// Bus bandwidth is that of the slowest node; the ranks of the whole are the nodes, as for every load over
// MPI.
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

// Somebody else is the reason why it gave no result.
bool was_stopped(const Json& result) {
  const auto detail = result.find("detail");
  return detail != result.end() && detail->is_object() && detail->value("stopped", false);
}

// Adds what these nodes saw wrong, and why they gave no result.
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
      out["outcome"] = one["outcome"], out["error"] = hosts[r] + ": " + one.value("error", "no reason given");
  }
}

// What NCCL goes over between the nodes, of the node that has least of it.
Json least_rails(const std::vector<Json>& results) {
  Json least = nullptr;
  double least_sum = 0;
  for (const Json& one : results) {
    const auto detail = one.find("detail");
    if (detail == one.end() || !detail->is_object() || !detail->contains("rails") ||
        !(*detail)["rails"].is_array())
      continue;
    double sum = 0;
    for (const Json& rate : (*detail)["rails"]) sum += rate.is_number() ? rate.get<double>() : 0;
    if (least.is_null() || sum < least_sum) least = (*detail)["rails"], least_sum = sum;
  }
  return least;
}

Json merge(const Options& options, const std::vector<Json>& results, const std::vector<std::string>& hosts) {
  Json out = missing("measured", "");
  out["check"] = options.load;
  out["metrics"]["ranks"] = {{"value", hosts.size()}, {"unit", "ranks"}};
  out["detail"] = {{"hosts", hosts},
                   {"algorithm", options.algorithm.empty() ? "NCCL's choice" : options.algorithm},
                   {"nodes", Json::array()}};
  if (Json rails = least_rails(results); !rails.is_null()) out["detail"]["rails"] = std::move(rails);
  add_verdicts(out, results, hosts);
  for (size_t r = 0; r < results.size(); ++r) {
    const Json& one = results[r];
    add_metrics(out, one);
    out["detail"]["nodes"].push_back({{"host", hosts[r]},
                                      {"outcome", one["outcome"]},
                                      {"error", one.value("error", "")},
                                      {"detail", one.value("detail", Json())}});
  }
  return out;
}

// The first GPUs of each node, where some have more: with other numbers the ranks would not add up.
std::string gpu_list(int gpus) {
  std::string out = "0";
  for (int i = 1; i < gpus; ++i) out += "," + std::to_string(i);
  return out;
}

// Runs the program on all nodes of a communicator together. Rank 0 of all has every node's result in
// `results`, of this group and the others.
Json run_group(const Options& options, MPI_Comm comm, const char* kernel,
               const std::vector<std::string>& more) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  char root[kRootLength] = {};
  if (rank == 0) std::snprintf(root, sizeof root, "%s", free_root(options).c_str());
  MPI_Bcast(root, kRootLength, MPI_CHAR, 0, comm);
  if (root[0] == '\0')
    return missing("refused", "the first node has no address in " +
                                  (options.network.empty() ? "any network" : options.network));
  std::vector<std::string> words = {
      options.program, kernel, "--nodes", std::to_string(ranks), "--node", std::to_string(rank),
      "--root",        root,   "--gpus",  gpu_list(options.gpus)};
  if (!options.algorithm.empty()) words.insert(words.end(), {"--algorithm", options.algorithm});
  words.insert(words.end(), more.begin(), more.end());
  return run_here(words, comm);
}

double metric_of(const Json& result, const std::string& name) {
  const auto it = result["metrics"].find(name);
  return it != result["metrics"].end() && it->is_object() && it->contains("value") &&
                 (*it)["value"].is_number()
             ? (*it)["value"].get<double>()
             : 0;
}

// A point of the scaling study: the median over groups of n nodes, whose first nodes' results these are.
// `one`: of each kind, operations per second of a GPU on one node.
void add_point(Json& out, const Options& options, const std::string& kind, int n,
               const std::vector<const Json*>& groups, std::map<std::string, double>& one) {
  std::vector<double> seconds, rates;
  for (const Json* group : groups)
    if (const double took = metric_of(*group, kind + "_seconds"), rate = metric_of(*group, kind + "_tflops");
        took > 0 && rate > 0)
      seconds.push_back(took), rates.push_back(rate);
  if (seconds.empty()) return;
  const double rate = median(rates);
  one.try_emplace(kind, rate);
  const double efficiency = rate / one[kind];
  out["detail"]["scaling"].push_back({{"kind", kind},
                                      {"nodes", n},
                                      {"groups", seconds.size()},
                                      {"seconds", median(seconds)},
                                      {"slowest_seconds", *std::max_element(seconds.begin(), seconds.end())},
                                      {"gflops_per_node", rate * 1e3 * options.gpus},
                                      {"efficiency", efficiency}});
  if (n > 1) out["metrics"][kind + "_efficiency"] = {{"value", efficiency}, {"unit", "ratio"}};
}

}  // namespace

Json run_nccl(const Options& options, int rank, int ranks) {
  const auto hosts = gather_hosts(ranks);
  std::vector<std::string> more = {"--mib", std::to_string(std::max<size_t>(options.max_bytes >> 20, 1)),
                                   "--seconds", std::to_string(options.seconds)};
  if (rank == options.flip_rank) more.insert(more.end(), {"--inject-flip", "0:0:0"});
  Json mine = run_group(options, MPI_COMM_WORLD, "nccl", more);
  if (mine.is_object()) {
    if (!mine.contains("detail") || !mine["detail"].is_object()) mine["detail"] = Json::object();
    mine["detail"]["rails"] = kernels::active_rails(Files("/"));
  }
  const auto results = gather_results(mine, rank, ranks);
  return rank == 0 ? merge(options, results, hosts) : mine;
}

Json run_gpu_training(const Options& options, int rank, int ranks) {
  const auto hosts = gather_hosts(ranks);
  const auto& shape = options.shape;
  // So many that at all nodes each GPU has one left, as far as that is affordable on one node.
  const size_t strong = std::min(kMostStrong, static_cast<size_t>(options.gpus) * static_cast<size_t>(ranks));
  const std::vector<int> sizes = node_counts(ranks);
  Json out, verdicts = missing("measured", "");
  Json scaling = Json::array();
  std::map<std::string, double> one;
  for (const int n : sizes) {
    std::vector<std::string> more = {"--model",
                                     std::to_string(shape.model),
                                     "--heads",
                                     std::to_string(shape.heads),
                                     "--sequence",
                                     std::to_string(shape.sequence),
                                     "--layers",
                                     std::to_string(shape.layers),
                                     "--strong-sequences",
                                     std::to_string(strong),
                                     "--seconds",
                                     std::to_string(options.seconds / 4 / static_cast<double>(sizes.size()))};
    if (rank == options.flip_rank) more.insert(more.end(), {"--inject-flip", "0:0:0"});
    const bool full = (rank / n + 1) * n <= ranks;  // who makes no full group waits
    MPI_Comm group = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, full ? rank / n : MPI_UNDEFINED, rank, &group);
    Json mine = missing("measured", "");
    if (full) mine = run_group(options, group, "training", more);
    if (full) MPI_Comm_free(&group);
    const auto results = gather_results(mine, rank, ranks);
    if (rank != 0) continue;
    out = merge(options, results, hosts);
    add_verdicts(verdicts, results, hosts);
    out["detail"]["scaling"] = scaling;
    std::vector<const Json*> groups;
    for (size_t first = 0; first + static_cast<size_t>(n) <= results.size(); first += static_cast<size_t>(n))
      groups.push_back(&results[first]);
    for (const char* kind : {"weak", "strong", "pipeline"}) add_point(out, options, kind, n, groups, one);
    scaling = out["detail"]["scaling"];
    for (const char* key : {"outcome", "error", "blame"})
      out[key] = verdicts[key];  // of all numbers of nodes
  }
  return rank == 0 ? out : missing("measured", "");
}

}  // namespace muster::mpi
