// Training load and scaling study: transformer blocks across 1, 2, 4 ... N nodes, one member each, every
// gradient checked exactly.
//
// Loads:       strong    data parallel, the same sequences on n nodes: gradients all-reduced
//              weak      data parallel, the same number of sequences per node
//              tensor    each layer over n nodes: activations all-reduced four times per layer (forward and
//                        backward)
//              pipeline  layers over n nodes: activations sent on, micro-batches, all forward and then all
//                        backward (GPipe)
//              For each n all nodes work, in parallel groups of n (remaining nodes wait), so that a slow
//              group stands out among its siblings. strong stops when there are fewer sequences than nodes;
//              tensor and pipeline run on one number of nodes, the largest power of two that divides heads or
//              layers.
// Reference:   every member computes the same gradients alone; those that most of them agree on are right, to
//              the bit (kernels/training/block.h says why bits may be compared). Each partition must then
//              give the same ones.
// Time:        of the slowest member of a group, median of kRepetitions. Work is sized by a probe to
//              `seconds` in all.
// Operations:  72 D^2 + 12 S D per token and layer. MFU = operations / time / (cores x operations per cycle
//              x base clock, single precision), where sysfs shows the clock.
// Energy:      joules per step, summed over the nodes of a group if all of them can read the same meter
//              (kernels/counters/energy.h); over all repetitions, which must take long enough for the meter.
// Expected:    one node 60-90 % of twice the rate of muster-accept dgemm (single precision is twice as fast);
//              losses with more nodes are due to the network.
#include "kernels/together/training_load.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

namespace muster::together {
namespace {

using kernels::EnergyMeter;
using kernels::Joules;
using kernels::kEnergySourceCount;
using kernels::seconds_now;
using training::Activations;
using training::Network;
using training::Part;
using training::Shape;

constexpr int kRepetitions = 3;
// The largest number of terms in a sum: each term is at most 1 in magnitude, and floats are exact up to 2^24.
constexpr size_t kMostTokens = size_t{1} << 23;
constexpr size_t kMostSplit = 16;  // largest number of sequences in a tensor or pipeline step
constexpr size_t kReasonsListed = 8;

uint64_t digest(const std::vector<float>& values) {  // FNV-1a over the bits
  uint64_t out = 0xcbf29ce484222325;
  for (const float v : values) out = (out ^ std::bit_cast<uint32_t>(v)) * 0x100000001b3;
  return out;
}

template <typename T>
std::string text_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <typename T>
T value_of(const std::string& text) {
  T out = {};
  std::memcpy(&out, text.data(), std::min(text.size(), sizeof out));
  return out;
}

// Parallel groups of n members; members that are left over wait.
struct Side {
  int size = 1;
  std::unique_ptr<Group> group = {};  // null: this member waits
  size_t index() const { return group ? static_cast<size_t>(group->rank()) : 0; }
};

// Results for this member's group: seconds per step on its slowest member (-1 if it waited), and the energy
// that this node consumed per step.
struct Timed {
  double seconds = -1;
  Joules joules = {};
};

// The root of the files from which this member reads energy meters.
Files files_of(const LoadOptions& options, int rank) {
  if (options.root.empty()) return Files();
  const std::string own = options.root + "/" + std::to_string(rank);
  return Files(Files().is_directory(own) ? own : options.root);
}

int largest_power(int most, size_t dividing) {
  int n = 1;
  while (n * 2 <= most && dividing % (static_cast<size_t>(n) * 2) == 0) n *= 2;
  return n;
}

size_t differences(const std::vector<float>& got, const std::vector<float>& reference, float factor) {
  size_t out = 0;
  for (size_t i = 0; i < got.size(); ++i)
    out += std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(factor * reference[i]);
  return out;
}

class Study {
 public:
  Study(Group& group, const LoadOptions& options)
      : group_(group),
        options_(options),
        shape_(options.shape),
        threads_(options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency())),
        whole_(shape_, 0, shape_.layers, Part{}, threads_),
        // GPUs are idle in this load, and a driver with a lost GPU may hang: they are not read.
        meter_(files_of(options, group.rank()), "") {
    study_.shape = shape_;
    study_.hosts = names(group);
    study_.simulated = !options.root.empty();
  }

  Result<kernels::Measurement> run() {
    TRY_(size_work());
    TRY(const auto strong, alone("strong", work().strong));
    TRY(const auto weak, alone("weak", work().weak_per_node));
    for (const int n : node_counts(static_cast<int>(std::min<uint64_t>(ranks(), work().strong))))
      if (n > 1) TRY_(data_parallel("strong", n, strong));
    for (const int n : node_counts(group_.size()))
      if (n > 1) TRY_(data_parallel("weak", n, weak));
    TRY(const auto split, alone("", work().split));
    whole_.set_gradients(split);  // the parts' gradients are compared with these
    if (const int n = largest_power(group_.size(), shape_.heads); n > 1) TRY_(tensor_parallel(n));
    if (const int n = largest_power(group_.size(), shape_.layers); n > 1) TRY_(pipeline(n));
    TRY(const Json energy, absent_meters());
    TRY(kernels::Measurement out, envelope(group_, "training", wrong_, "has {} wrong gradients"));
    if (group_.rank() != 0) return out;
    out.detail["energy"] = energy;
    out.detail["threads"] = threads_;
    out.detail["network"] = "TCP";
    report(out, study_);
    return out;
  }

 private:
  SequenceCounts& work() { return study_.work; }
  size_t ranks() const { return static_cast<size_t>(group_.size()); }

  Result<Side> side_by_side(int n) {
    const int rank = group_.rank();
    const bool full = (rank / n + 1) * n <= group_.size();
    Side out;
    out.size = n;
    TRY(out.group, group_.split(full ? rank / n : -1));
    return out;
  }

  template <typename Step>
  Result<Timed> timed(Group* group, const Step& step) {
    Timed out;
    if (group) {
      std::vector<double> all;
      TRY_(group->barrier());
      const auto before = meter_.now();
      for (int i = 0; i < kRepetitions; ++i) {
        TRY_(group->barrier());
        const double start = seconds_now();
        TRY_(step());
        double slowest = seconds_now() - start;
        TRY_(group->max({&slowest, 1}));
        all.push_back(slowest);
      }
      out.joules = meter_.since(before);
      for (auto& joules : out.joules)
        if (joules) *joules /= kRepetitions;
      out.seconds = kernels::median(std::move(all));
    }
    TRY_(group_.barrier());
    return out;
  }

  // Runs sequences [first, first + count) through a network and sums the gradients.
  void pass(Network& network, size_t first, size_t count, const Network::Sum& sum) {
    const size_t per_sequence = shape_.sequence * shape_.model;
    for (size_t done = 0; done < count; done += at_once_) {
      const size_t now = std::min<size_t>(at_once_, count - done);
      std::vector<float> x(now * per_sequence), grad;
      for (size_t s = 0; s < now; ++s) training::fill_input(shape_, first + done + s, &x[s * per_sequence]);
      network.forward(x, now, kept_, sum);
      training::start_backward(shape_, first + done, kept_, grad);
      network.backward(kept_, grad, sum);
    }
  }

  Status size_work();
  Result<std::vector<float>> alone(const std::string& kind, size_t sequences);
  Status data_parallel(const char* kind, int n, const std::vector<float>& reference);
  Status tensor_parallel(int n);
  Status pipeline(int n);
  Status pipeline_step(Network& mine, const Side& side);
  Status forward(Network& mine, const Side& side, size_t micro);
  Status backward(Network& mine, const Side& side, size_t micro);
  Status add(const std::string& kind, int n, const Timed& time);
  Result<Json> absent_meters();

  Group& group_;
  const LoadOptions options_;
  const Shape shape_;
  const size_t threads_;
  uint64_t at_once_ = 1;  // sequences of one pass: enough rows for every thread
  Network whole_;
  Activations kept_ = {};
  std::vector<Activations> kept_of_stage_ = {};
  uint64_t wrong_ = 0;
  TrainingStudy study_ = {};
  EnergyMeter meter_;
};

// A strong study takes the time of all repetitions on one node, half of that on two, ...: about twice the
// first in all. Everything that determines how much is sent must be the same on every member, even if nodes
// have different numbers of cores.
Status Study::size_work() {
  at_once_ = std::max<size_t>(1, threads_ * 16 / shape_.sequence);
  TRY_(group_.min({&at_once_, 1}));
  double took = 0;
  for (int i = 0; i < 2; ++i) {  // the first pass only fills caches and page tables
    const double start = seconds_now();
    pass(whole_, 0, at_once_, nullptr);
    took = seconds_now() - start;
  }
  TRY_(group_.max({&took, 1}));
  const double possible = options_.seconds / kRepetitions / (took / static_cast<double>(at_once_));
  // Sums over all tokens must stay exact in a float.
  const size_t most = kMostTokens / shape_.sequence;
  const double for_weak = possible * 0.4 / static_cast<double>(node_counts(group_.size()).size() + 2);
  uint64_t sizes[] = {std::bit_floor(std::clamp<size_t>(static_cast<size_t>(possible * 0.35 / 2), 2, most)),
                      std::clamp<size_t>(static_cast<size_t>(for_weak), 1, most / ranks()), 0};
  // Fewer sequences: a pipeline keeps the activations of all sequences, and tensor parallel layers send all
  // of them four times.
  sizes[2] = std::min<uint64_t>(sizes[1], kMostSplit);
  TRY_(group_.broadcast(bytes_of(std::span<uint64_t>(sizes)), 0));
  work() = {sizes[0], sizes[1], sizes[2]};
  return Ok{};
}

// Every member computes by itself: gives the time on one node, and the gradients that most members agree on.
Result<std::vector<float>> Study::alone(const std::string& kind, size_t sequences) {
  const auto step = [&]() -> Status {
    whole_.clear();
    pass(whole_, 0, sequences, nullptr);
    return Ok{};
  };
  Timed time;
  if (kind.empty()) {
    TRY_(step());
  } else {
    TRY(const Side side, side_by_side(1));
    TRY(time, timed(side.group.get(), step));
  }
  std::vector<float> mine = whole_.gradients();
  if (kind == "strong" && group_.rank() == options_.flip_rank) {
    float& hit = mine[mine.size() / 2];
    hit = std::bit_cast<float>(std::bit_cast<uint32_t>(hit) ^ 1U);
  }
  TRY(const auto texts, group_.allgather(text_of(digest(mine))));
  std::vector<uint64_t> all;
  for (const auto& text : texts) all.push_back(value_of<uint64_t>(text));
  std::map<uint64_t, int> votes;
  for (const uint64_t d : all) ++votes[d];
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  // Without a majority it is unknown which result is right: all ranks that disagree are named.
  const bool decided = 2 * most->second > group_.size();
  std::vector<float> right = mine;
  TRY_(group_.broadcast(bytes_of(std::span<float>(right)),
                        static_cast<int>(std::find(all.begin(), all.end(), most->first) - all.begin())));
  const size_t wrong = differences(mine, right, 1);
  wrong_ += decided || wrong > 0 ? wrong : static_cast<size_t>(votes.size() > 1);
  if (!kind.empty()) TRY_(add(kind, 1, time));
  return right;
}

Status Study::data_parallel(const char* kind, int n, const std::vector<float>& reference) {
  const bool strong = kind[0] == 's';
  TRY(const Side side, side_by_side(n));
  const size_t all = work().strong, i = side.index(), nodes = static_cast<size_t>(n);
  const size_t first = strong ? all * i / nodes : 0,
               last = strong ? all * (i + 1) / nodes : work().weak_per_node;
  std::vector<float> sums;
  TRY(const Timed time, timed(side.group.get(), [&]() -> Status {
        whole_.clear();
        pass(whole_, first, last - first, nullptr);
        sums = whole_.gradients();
        return side.group->sum(std::span<float>(sums));
      }));
  wrong_ += differences(sums, reference, strong ? 1.0F : static_cast<float>(n));
  return add(kind, n, time);
}

Status Study::tensor_parallel(int n) {
  TRY(const Side side, side_by_side(n));
  Network mine(shape_, 0, shape_.layers, Part{side.index(), static_cast<size_t>(n)}, threads_);
  TRY(const Timed time, timed(side.group.get(), [&]() -> Status {
        // A sum cannot abort the pass, since its threads wait for each other. Once the group is over, every
        // call returns immediately, so the pass ends soon, with results that are discarded.
        Status status = Ok{};
        mine.clear();
        pass(mine, 0, work().split, [&](float* values, size_t count) {
          if (status.ok()) status = side.group->sum(std::span<float>(values, count));
        });
        return status;
      }));
  if (side.group) wrong_ += mine.wrong(whole_, 1);
  return add("tensor", n, time);
}

Status Study::pipeline(int n) {
  TRY(const Side side, side_by_side(n));
  const size_t layers = shape_.layers / static_cast<size_t>(n);
  Network mine(shape_, layers * side.index(), layers, Part{}, threads_);
  TRY(const Timed time, timed(side.group.get(), [&] { return pipeline_step(mine, side); }));
  if (side.group) wrong_ += mine.wrong(whole_, 1);
  return add("pipeline", n, time);
}

Status Study::pipeline_step(Network& mine, const Side& side) {
  const size_t micro = std::clamp<size_t>(work().split / (2 * static_cast<size_t>(side.size)), 1, at_once_);
  kept_of_stage_.resize((work().split + micro - 1) / micro);
  mine.clear();
  TRY_(forward(mine, side, micro));
  return backward(mine, side, micro);
}

Status Study::forward(Network& mine, const Side& side, size_t micro) {
  Group& group = *side.group;
  const size_t per_sequence = shape_.sequence * shape_.model;
  for (size_t m = 0; m < kept_of_stage_.size(); ++m) {
    const size_t count = std::min<size_t>(micro, work().split - m * micro);
    std::vector<float> x(count * per_sequence);
    if (group.rank() == 0)
      for (size_t s = 0; s < count; ++s) training::fill_input(shape_, m * micro + s, &x[s * per_sequence]);
    else
      TRY_(group.receive(bytes_of(std::span<float>(x)), group.rank() - 1));
    mine.forward(x, count, kept_of_stage_[m], nullptr);
    if (group.rank() + 1 == group.size()) continue;
    TRY_(group.send(bytes_of(std::span<const float>(kept_of_stage_[m].out)), group.rank() + 1));
  }
  return Ok{};
}

Status Study::backward(Network& mine, const Side& side, size_t micro) {
  Group& group = *side.group;
  std::vector<float> grad;
  for (size_t m = 0; m < kept_of_stage_.size(); ++m) {
    grad.resize(kept_of_stage_[m].out.size());
    if (group.rank() + 1 == group.size())
      training::start_backward(shape_, m * micro, kept_of_stage_[m], grad);
    else
      TRY_(group.receive(bytes_of(std::span<float>(grad)), group.rank() + 1));
    mine.backward(kept_of_stage_[m], grad, nullptr);
    if (group.rank() == 0) continue;
    TRY_(group.send(bytes_of(std::span<const float>(grad)), group.rank() - 1));
  }
  return Ok{};
}

Status Study::add(const std::string& kind, int n, const Timed& time) {
  struct Reported {
    double seconds;
    double joules[kEnergySourceCount];  // -1: not read
  } reported = {time.seconds, {}};
  for (size_t i = 0; i < kEnergySourceCount; ++i) reported.joules[i] = time.joules[i].value_or(-1);
  TRY(const auto all, group_.gather(text_of(reported), 0));
  TrainingEntry entry{kind, n, {}, {}};
  std::vector<std::optional<kernels::GroupEnergy>> groups;
  for (size_t first = 0; first + static_cast<size_t>(n) <= all.size(); first += static_cast<size_t>(n)) {
    std::vector<Joules> joules(static_cast<size_t>(n));
    for (size_t r = 0; r < joules.size(); ++r) {
      const auto one = value_of<Reported>(all[first + r]);
      for (size_t i = 0; i < kEnergySourceCount; ++i)
        if (one.joules[i] >= 0) joules[r][i] = one.joules[i];
    }
    entry.seconds.push_back(value_of<Reported>(all[first]).seconds);
    groups.push_back(kernels::energy_of_group(joules));
  }
  entry.energy = kernels::energy_of_groups(groups);
  study_.entries.push_back(std::move(entry));
  return Ok{};
}

// Lists the energy sources that cannot be read, by reason, with the hosts.
Result<Json> Study::absent_meters() {
  std::string mine;
  for (const auto& why : meter_.absent()) mine += (mine.empty() ? "" : "; ") + why;
  TRY(const auto all, group_.gather(mine, 0));
  Json absent = Json::object();
  for (size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty() && (absent.contains(all[r]) || absent.size() < kReasonsListed))
      absent[all[r]].push_back(study_.hosts[r]);
  return Json{{"absent", absent}};
}

kernels::Measurement refused(const char* why) {
  kernels::Measurement out;
  out.check = "training";
  out.outcome = kernels::Outcome::refused;
  out.error = why;
  return out;
}

}  // namespace

kernels::Measurement run_training(Group& group, const LoadOptions& options) {
  if (const char* why = training::unfit(options.shape); *why) return refused(why);
  if (options.shape.sequence * static_cast<size_t>(group.size()) > kMostTokens)
    return refused("sequence x ranks exceeds 2^23, so sums would not be exact");
  // Members that are left over when groups are formed wait while the others compute.
  group.within(options.patience + 4 * options.seconds);
  const auto result = Study(group, options).run();
  return result.ok() ? *result : lost_measurement("training", group.lost(), result.error());
}

}  // namespace muster::together
