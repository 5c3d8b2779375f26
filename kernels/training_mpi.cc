// Training-shaped load and scaling study: transformer blocks over 1, 2, 4 ... N nodes, one rank each, every
// gradient checked exactly.
//
// Loads:       strong    data parallel, the same sequences on n nodes: gradients all-reduced
//              weak      data parallel, the same number of sequences per node
//              tensor    each layer over n nodes: activations all-reduced four times per layer (forward and
//                        backward)
//              pipeline  layers over n nodes: activations sent on, micro-batches, all forward and then all
//                        backward (GPipe)
//              For each n all nodes work, in groups of n side by side (what is left over waits): a group far
//              below its siblings shows. strong stops where there is no sequence for each node; tensor and
//              pipeline run on one number of nodes, the largest that divides heads or layers.
// Reference:   every rank computes the same gradients alone; those that most ranks agree on are right, to
//              the bit (kernels/training/block.h says why bits may be compared). Each partition must then
//              give the same ones.
// Time:        of the slowest rank of a group, median of kRepetitions. Work is sized by a probe to `seconds`
//              in all.
// Operations:  72 D^2 + 12 S D per token and layer. MFU = operations / time / (cores x operations per cycle
//              x base clock, single precision), where sysfs tells the clock.
// Energy:      joules per step, summed over the nodes of a group, where every rank has a node to itself and
//              all of a group can read the same meter (kernels/energy.h); of the repetitions together, which
//              must be long against the meter. Operations per joule with it.
// Expected:    one node 60-90 % of what muster-accept dgemm does, twice over (single precision); what is
//              lost on more is the network's.
#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "kernels/energy.h"
#include "kernels/kernels.h"
#include "kernels/mpi_check.h"

namespace muster::mpi {
namespace {

using kernels::EnergyMeter;
using kernels::GroupEnergy;
using kernels::Joules;
using kernels::kEnergySourceCount;
using training::Activations;
using training::Network;
using training::Part;
using training::Shape;

constexpr int kRepetitions = 3;
constexpr size_t kFloatsAtOnce = size_t{1} << 28;  // MPI counts in int
constexpr size_t kGroupsListed = 64;
constexpr size_t kMostTokens =
    size_t{1} << 23;  // of one sum: each is at most 1 from zero, and 2^24 is the last exact whole number
constexpr size_t kMostSplit = 16;  // sequences of a tensor or pipeline step
constexpr int kTag = 1;
constexpr size_t kReasonLength = 400, kReasonsListed = 8;

void add_up(float* values, size_t count, MPI_Comm comm) {
  for (size_t at = 0; at < count; at += kFloatsAtOnce)
    MPI_Allreduce(MPI_IN_PLACE, values + at, static_cast<int>(std::min(kFloatsAtOnce, count - at)), MPI_FLOAT,
                  MPI_SUM, comm);
}
void spread(float* values, size_t count, int from) {
  for (size_t at = 0; at < count; at += kFloatsAtOnce)
    MPI_Bcast(values + at, static_cast<int>(std::min(kFloatsAtOnce, count - at)), MPI_FLOAT, from,
              MPI_COMM_WORLD);
}
void send(const std::vector<float>& values, int to, MPI_Comm comm) {
  MPI_Send(values.data(), static_cast<int>(values.size()), MPI_FLOAT, to, kTag, comm);
}
void receive(std::vector<float>& values, size_t count, int from, MPI_Comm comm) {
  values.resize(count);
  MPI_Recv(values.data(), static_cast<int>(count), MPI_FLOAT, from, kTag, comm, MPI_STATUS_IGNORE);
}

uint64_t digest(const std::vector<float>& values) {  // FNV-1a over the bits
  uint64_t out = 0xcbf29ce484222325;
  for (const float v : values) out = (out ^ std::bit_cast<uint32_t>(v)) * 0x100000001b3;
  return out;
}

// Ranks side by side in groups of n; those that make no full group wait.
struct Groups {
  int size = 1;
  MPI_Comm comm = MPI_COMM_NULL;  // null: this rank waits
  int index = 0;                  // of this rank in its group

  Groups(int n, int rank, int ranks) : size(n) {
    const bool full = (rank / n + 1) * n <= ranks;
    MPI_Comm_split(MPI_COMM_WORLD, full ? rank / n : MPI_UNDEFINED, rank, &comm);
    if (full) MPI_Comm_rank(comm, &index);
  }
  ~Groups() {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
};

// Of this rank's group: seconds of one step on its slowest rank; -1 when it waited. What this node consumed
// for one step.
struct Timed {
  double seconds = -1;
  Joules joules = {};
};
template <typename Step>
Timed timed(const Groups& groups, EnergyMeter& meter, const Step& step) {
  std::vector<double> all;
  Timed out;
  if (groups.comm != MPI_COMM_NULL) {
    MPI_Barrier(groups.comm);
    const auto before = meter.now();
    for (int i = 0; i < kRepetitions; ++i) {
      MPI_Barrier(groups.comm);
      const double start = MPI_Wtime();
      step();
      double mine = MPI_Wtime() - start, slowest = 0;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, groups.comm);
      all.push_back(slowest);
    }
    out.joules = meter.since(before);
    for (auto& joules : out.joules)
      if (joules) *joules /= kRepetitions;
    out.seconds = median(std::move(all));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return out;
}

// Where rank `rank` looks for meters.
Files files_of(const Options& options, int rank) {
  if (options.root.empty()) return Files();
  const std::string own = options.root + "/" + std::to_string(rank);
  return Files(Files().is_directory(own) ? own : options.root);
}

// What each rank's node consumed, on rank 0; none where nothing was read.
std::vector<Joules> gather_joules(const Joules& mine, int ranks) {
  constexpr int kCount = static_cast<int>(kEnergySourceCount);
  std::array<double, kEnergySourceCount> numbers;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = mine[i].value_or(-1);
  std::vector<double> all(static_cast<size_t>(ranks) * kEnergySourceCount);
  MPI_Gather(numbers.data(), kCount, MPI_DOUBLE, all.data(), kCount, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  std::vector<Joules> out(static_cast<size_t>(ranks));
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] >= 0) out[i / kEnergySourceCount][i % kEnergySourceCount] = all[i];
  return out;
}

int largest_power(int most, size_t dividing) {
  int n = 1;
  while (n * 2 <= most && dividing % (static_cast<size_t>(n) * 2) == 0) n *= 2;
  return n;
}

class Study {
 public:
  Study(const Options& options, int rank, int ranks)
      : options_(options),
        shape_(options.shape),
        rank_(rank),
        ranks_(ranks),
        threads_(options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency())),
        whole_(shape_, 0, shape_.layers, Part{}, threads_),
        // GPUs are idle in this load, and a driver whose GPU is gone may hang: they are not asked.
        meter_(files_of(options, rank), "") {
    // Whatever decides how much is sent must be the same on every rank, also where nodes have different
    // numbers of cores.
    uint64_t at_once = std::max<size_t>(1, threads_ * 16 / shape_.sequence);
    MPI_Allreduce(MPI_IN_PLACE, &at_once, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    at_once_ = at_once;
  }

  Json run() {
    size_work();
    const auto strong = alone("strong", strong_sequences_), weak = alone("weak", weak_sequences_);
    for (const int n :
         node_counts(static_cast<int>(std::min<size_t>(static_cast<size_t>(ranks_), strong_sequences_))))
      if (n > 1) data_parallel("strong", n, strong);
    for (const int n : node_counts(ranks_))
      if (n > 1) data_parallel("weak", n, weak);
    // whole_ keeps these, as what the parts are compared with.
    whole_.set_gradients(alone("", split_sequences_));
    if (const int n = largest_power(ranks_, shape_.heads); n > 1) tensor_parallel(n);
    if (const int n = largest_power(ranks_, shape_.layers); n > 1) pipeline(n);
    return report();
  }

 private:
  // Sequences [first, first + count) through a network, gradients added up.
  void pass(Network& network, size_t first, size_t count, const Network::Sum& sum) {
    const size_t per_sequence = shape_.sequence * shape_.model;
    for (size_t done = 0; done < count; done += at_once_) {
      const size_t now = std::min(at_once_, count - done);
      std::vector<float> x(now * per_sequence), grad;
      for (size_t s = 0; s < now; ++s) training::fill_input(shape_, first + done + s, &x[s * per_sequence]);
      network.forward(x, now, kept_, sum);
      training::start_backward(shape_, first + done, kept_, grad);
      network.backward(kept_, grad, sum);
    }
  }

  // A strong study has work for all repetitions on one node, half of it on two, ...: about twice the first in
  // all.
  void size_work() {
    double took = 0, slowest = 0;
    for (int i = 0; i < 2; ++i) {  // the first one fills caches and page tables
      const double start = MPI_Wtime();
      pass(whole_, 0, at_once_, nullptr);
      took = MPI_Wtime() - start;
    }
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double possible = options_.seconds / kRepetitions / (slowest / static_cast<double>(at_once_));
    // Sums over all tokens must stay exact in a float.
    const size_t most = kMostTokens / shape_.sequence;
    uint64_t sizes[] = {
        std::bit_floor(std::clamp<size_t>(static_cast<size_t>(possible * 0.35 / 2), 2, most)),
        std::clamp<size_t>(
            static_cast<size_t>(possible * 0.4 / static_cast<double>(node_counts(ranks_).size() + 2)), 1,
            most / static_cast<size_t>(ranks_)),
        0};
    // A pipeline keeps what its forward pass left of all of them, and tensor parallel layers send all of it
    // four times.
    sizes[2] = std::min<uint64_t>(sizes[1], kMostSplit);
    MPI_Bcast(sizes, 3, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    strong_sequences_ = sizes[0];
    weak_sequences_ = sizes[1];
    split_sequences_ = sizes[2];
  }

  // What every rank computes by itself: the time on one node, and the gradients that most ranks agree on.
  std::vector<float> alone(const std::string& kind, size_t sequences) {
    const Groups groups(1, rank_, ranks_);
    const auto step = [&] {
      whole_.clear();
      pass(whole_, 0, sequences, nullptr);
    };
    Timed time;
    if (kind.empty())
      step();
    else
      time = timed(groups, meter_, step);
    std::vector<float> mine = whole_.gradients();
    if (kind == "strong" && rank_ == options_.flip_rank) {
      float& hit = mine[mine.size() / 2];
      hit = std::bit_cast<float>(std::bit_cast<uint32_t>(hit) ^ 1U);
    }
    uint64_t own = digest(mine);
    std::vector<uint64_t> all(static_cast<size_t>(ranks_));
    MPI_Allgather(&own, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    std::map<uint64_t, int> votes;
    for (const uint64_t d : all) ++votes[d];
    const auto most = std::max_element(votes.begin(), votes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    // Without a majority nobody knows who is right: all who disagree are named.
    const bool decided = 2 * most->second > ranks_;
    std::vector<float> right = mine;
    spread(right.data(), right.size(),
           static_cast<int>(std::find(all.begin(), all.end(), most->first) - all.begin()));
    const size_t wrong = differences(mine, right, 1);
    wrong_ += static_cast<long long>(decided || wrong > 0 ? wrong : votes.size() > 1);
    if (!kind.empty()) add(kind, 1, time);
    return right;
  }

  static size_t differences(const std::vector<float>& got, const std::vector<float>& reference,
                            float factor) {
    size_t out = 0;
    for (size_t i = 0; i < got.size(); ++i)
      out += std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(factor * reference[i]);
    return out;
  }

  void data_parallel(const char* kind, int n, const std::vector<float>& reference) {
    const bool strong = kind[0] == 's';
    const Groups groups(n, rank_, ranks_);
    const size_t all = strong_sequences_, i = static_cast<size_t>(groups.index),
                 nodes = static_cast<size_t>(n);
    const size_t first = strong ? all * i / nodes : 0,
                 last = strong ? all * (i + 1) / nodes : weak_sequences_;
    std::vector<float> sums;
    const Timed time = timed(groups, meter_, [&] {
      whole_.clear();
      pass(whole_, first, last - first, nullptr);
      sums = whole_.gradients();
      add_up(sums.data(), sums.size(), groups.comm);
    });
    wrong_ += static_cast<long long>(differences(sums, reference, strong ? 1.0F : static_cast<float>(n)));
    add(kind, n, time);
  }

  void tensor_parallel(int n) {
    const Groups groups(n, rank_, ranks_);
    Network mine(shape_, 0, shape_.layers, Part{static_cast<size_t>(groups.index), static_cast<size_t>(n)},
                 threads_);
    const Timed time = timed(groups, meter_, [&] {
      mine.clear();
      pass(mine, 0, split_sequences_,
           [&](float* values, size_t count) { add_up(values, count, groups.comm); });
    });
    if (groups.comm != MPI_COMM_NULL) wrong_ += static_cast<long long>(mine.wrong(whole_, 1));
    add("tensor", n, time);
  }

  void pipeline(int n) {
    const Groups groups(n, rank_, ranks_);
    const size_t layers = shape_.layers / static_cast<size_t>(n), stage = static_cast<size_t>(groups.index);
    Network mine(shape_, layers * stage, layers, Part{}, threads_);
    const Timed time = timed(groups, meter_, [&] { pipeline_step(mine, groups); });
    if (groups.comm != MPI_COMM_NULL) wrong_ += static_cast<long long>(mine.wrong(whole_, 1));
    add("pipeline", n, time);
  }

  void pipeline_step(Network& mine, const Groups& groups) {
    const size_t per_sequence = shape_.sequence * shape_.model;
    const bool first = groups.index == 0, last = groups.index + 1 == groups.size;
    const size_t micro =
        std::clamp<size_t>(split_sequences_ / (2 * static_cast<size_t>(groups.size)), 1, at_once_);
    std::vector<Activations>& kept = kept_of_stage_;
    kept.resize((split_sequences_ + micro - 1) / micro);
    mine.clear();
    for (size_t m = 0; m < kept.size(); ++m) {
      const size_t count = std::min(micro, split_sequences_ - m * micro);
      std::vector<float> x(count * per_sequence);
      if (first)
        for (size_t s = 0; s < count; ++s) training::fill_input(shape_, m * micro + s, &x[s * per_sequence]);
      else
        receive(x, x.size(), groups.index - 1, groups.comm);
      mine.forward(x, count, kept[m], nullptr);
      if (!last) send(kept[m].out, groups.index + 1, groups.comm);
    }
    std::vector<float> grad;
    for (size_t m = 0; m < kept.size(); ++m) {
      if (last)
        training::start_backward(shape_, m * micro, kept[m], grad);
      else
        receive(grad, kept[m].out.size(), groups.index + 1, groups.comm);
      mine.backward(kept[m], grad, nullptr);
      if (!first) send(grad, groups.index - 1, groups.comm);
    }
  }

  struct Entry {
    std::string kind;
    int nodes;
    std::vector<double> seconds;        // of each group, on rank 0
    std::optional<GroupEnergy> energy;  // of one step
  };
  void add(const std::string& kind, int n, const Timed& time) {
    std::vector<double> all(static_cast<size_t>(ranks_));
    MPI_Gather(&time.seconds, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const std::vector<Joules> joules = gather_joules(time.joules, ranks_);
    Entry entry{kind, n, {}, {}};
    std::vector<std::optional<GroupEnergy>> groups;
    for (size_t r = 0; r < all.size(); r += static_cast<size_t>(n)) {
      if (!(all[r] > 0)) continue;
      entry.seconds.push_back(all[r]);
      groups.push_back(kernels::energy_of_group(
          {joules.begin() + static_cast<long>(r), joules.begin() + static_cast<long>(r) + n}));
    }
    entry.energy = kernels::energy_of_groups(groups);
    entries_.push_back(std::move(entry));
  }

  // A meter counts all ranks of its node: with several of them nobody knows which one consumed what.
  bool own_nodes(const std::vector<std::string>& hosts) const {
    return !options_.root.empty() || std::set<std::string>(hosts.begin(), hosts.end()).size() == hosts.size();
  }

  void add_energy(Json& point, const GroupEnergy& energy, double operations) const {
    point["joules"] = energy.joules;
    point["gflop_per_joule"] = operations / energy.joules / 1e9;
    point["energy"] = (options_.root.empty() ? "" : "SIMULATED: ") + energy.covers;
  }

  // What is not read, by reason: on which hosts.
  Json gather_absent(const std::vector<std::string>& hosts) {
    std::string mine;
    for (const auto& why : meter_.absent()) mine += (mine.empty() ? "" : "; ") + why;
    const auto all = gather_texts(mine, kReasonLength, ranks_);
    Json absent = Json::object();
    for (size_t r = 0; r < all.size(); ++r)
      if (!all[r].empty() && (absent.contains(all[r]) || absent.size() < kReasonsListed))
        absent[all[r]].push_back(hosts[r]);
    Json out = {{"absent", absent}};
    if (!own_nodes(hosts)) out["none"] = "several ranks share a node";
    return out;
  }

  Json report() {
    const auto hosts = gather_hosts(ranks_);
    const auto energy_absent = gather_absent(hosts);
    Json out = envelope("training", hosts, gather_counts(wrong_, ranks_), "has {} wrong gradients");
    const std::string variant = training::product_variants().front();
    const auto machine = kernels::look_at_machine(Files(), kernels::usable_cpus());
    const int per_cycle = 2 * kernels::flops_per_cycle(variant, machine);  // single precision
    const double peak = static_cast<double>(machine.physical_cores) * per_cycle * machine.cpu_mhz * 1e6;
    const double per_sequence = training::operations(shape_);
    std::map<std::string, double> one;
    Json points = Json::array();
    for (const auto& entry : entries_) {
      const double seconds = median(entry.seconds);
      if (!(seconds > 0)) continue;
      const bool strong = entry.kind == "strong";
      const size_t done = strong                 ? strong_sequences_
                          : entry.kind == "weak" ? weak_sequences_ * static_cast<size_t>(entry.nodes)
                                                 : split_sequences_;
      const double sequences = static_cast<double>(done);
      const double rate = sequences * per_sequence / seconds / entry.nodes;
      if (entry.nodes == 1) one[entry.kind] = rate;
      const double efficiency = rate / one[strong ? "strong" : "weak"];
      const auto slowest = std::max_element(entry.seconds.begin(), entry.seconds.end());
      const auto slowest_rank = static_cast<size_t>((slowest - entry.seconds.begin()) * entry.nodes);
      points.push_back({{"kind", entry.kind},
                        {"nodes", entry.nodes},
                        {"groups", entry.seconds.size()},
                        {"seconds", seconds},
                        {"slowest_seconds", *slowest},
                        {"slowest_from", hosts[slowest_rank]},
                        {"gflops_per_node", rate / 1e9},
                        {"efficiency", efficiency}});
      if (entry.seconds.size() > 1 && entry.seconds.size() <= kGroupsListed)
        points.back()["each_seconds"] = entry.seconds;
      if (entry.energy && own_nodes(hosts))
        add_energy(points.back(), *entry.energy, sequences * per_sequence);
      Json& metrics = out["metrics"];
      if (entry.nodes > 1) metrics[entry.kind + "_efficiency"] = {{"value", efficiency}, {"unit", "ratio"}};
      if (entry.kind != "weak") continue;
      metrics["gflops_per_node"] = {{"value", rate / 1e9}, {"unit", "GFLOP/s"}};
      if (points.back().contains("gflop_per_joule"))
        metrics["gflop_per_joule"] = {{"value", points.back()["gflop_per_joule"]}, {"unit", "GFLOP/J"}};
      else
        metrics.erase("gflop_per_joule");  // the last number of nodes counts, as above
      if (peak > 0) metrics["mfu"] = {{"value", rate / peak}, {"unit", "ratio"}};
    }
    out["detail"]["scaling"] = points;
    out["detail"]["model"] = {{"width", shape_.model},
                              {"heads", shape_.heads},
                              {"sequence", shape_.sequence},
                              {"layers", shape_.layers}};
    out["detail"]["sequences"] = {{"strong", strong_sequences_},
                                  {"weak_per_node", weak_sequences_},
                                  {"tensor_and_pipeline", split_sequences_}};
    out["detail"]["energy"] = energy_absent;
    out["detail"]["threads"] = threads_;
    out["detail"]["variant"] = variant;
    out["detail"]["physical_cores"] = machine.physical_cores;
    out["detail"]["cpu_mhz"] = machine.cpu_mhz;
    out["detail"]["flops_per_cycle"] = per_cycle;
    out["detail"]["verified"] = "every gradient of every partition, bit by bit, against one node's own";
    return out;
  }

  const Options options_;
  const Shape shape_;
  const int rank_, ranks_;
  const size_t threads_;
  size_t at_once_ = 1;  // sequences of one pass: enough rows for every thread
  size_t strong_sequences_ = 0, weak_sequences_ = 0, split_sequences_ = 0;
  Network whole_;
  Activations kept_;
  std::vector<Activations> kept_of_stage_;
  long long wrong_ = 0;
  std::vector<Entry> entries_;
  EnergyMeter meter_;
};

}  // namespace

Json run_training(const Options& options, int rank, int ranks) {
  if (options.shape.sequence * static_cast<size_t>(ranks) > kMostTokens)
    return {
        {"check", "training"},       {"version", 1},
        {"outcome", "failed"},       {"blame", Json::array()},
        {"metrics", Json::object()}, {"error", "sequence x ranks is above 2^23: sums would not be exact"}};
  return Study(options, rank, ranks).run();
}

}  // namespace muster::mpi
