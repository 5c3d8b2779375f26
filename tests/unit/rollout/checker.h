// What a rollout may and must do, said a second time and without the product's code: holds every answer, and
// every record, against the model's truth and what happened so far. At any time:
//   - no job is ended; no node is left drained by a run that is over, unless it counts as away;
//   - never more nodes are away than max_unavailable, no group misses more than it can;
//   - a held image, a skipped node and one that failed in this rollout are not touched; what failed before is
//     no canary, and goes last;
//   - a start is refused, and a rollout stops, only if nothing that is not held could go on;
//   - while a node could be taken, no other has its turn more than twice, over builds and approvals;
//   - one that others took out while it was under way is due as if it had not been chosen;
//   - a batch begins within the length of a window, and any time within it if the clock was right.
// In the calm, when nothing goes wrong any more:
//   - a node whose jobs end has its turn after at most as many nights with a full batch as all nodes need,
//     nodes / max_unavailable, and 2, 4, 8 ... more if it was given back; nights in which no batch was full
//     (none began, one failed, groups or jobs kept nodes from it) are not counted;
//   - in each night that has such a node, a run ends; without builds, all ends.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/rollout/model.h"

namespace muster::rollout::sim {

struct Counts {
  int batches = 0, canaries = 0, updated = 0, prefetched = 0, held = 0, named = 0, refused = 0;
  int no_canary = 0, skipped = 0;  // nodes left for that reason, each step
  int left = 0;                    // nodes given back because others had taken them out

  void add(const Counts& other) {
    for (int Counts::*one :
         {&Counts::batches, &Counts::canaries, &Counts::updated, &Counts::prefetched, &Counts::held,
          &Counts::named, &Counts::refused, &Counts::no_canary, &Counts::skipped, &Counts::left})
      this->*one += other.*one;
  }
};

class Checker {
 public:
  explicit Checker(const Model& model);

  // A new approval: nothing of the one before counts, apart from what happened to nodes, and skips.
  void approved(const std::vector<std::string>& named);
  void skips(size_t node, TimeMs until) { skips_[node] = until; }
  void unskips(size_t node) { skips_.erase(node); }
  void unskips() { skips_.clear(); }
  // A window opened, in which nothing begins before prepared(). `same`: the rollout before goes on in it, if
  // the images stay as they are.
  void opened(bool same);
  // It ended with the preparation, before its window had begun.
  void unprepared();
  // The window's images were built, or could not be; `id` is of the rollout that goes on or begins in it.
  void prepared(int64_t id);
  // A start was refused, maybe because a batch is under way.
  void refused(bool batch);
  // A run of the rollout ended, and the record that says so is durable.
  void judged(const ModelRun& run);
  void paused(bool by_operator) { paused_ = by_operator; }
  void answer(const Row& row, const Answer& answer);
  // The record has of every node what happened to it.
  void record(const Record& record);
  void dusk();
  // A night ended, in which the rollout goes on or not.
  void dawn(bool goes_on);
  // The last one did, and the rollout goes on.
  void end();
  // Per image that nothing else can prove, a node that could be its canary if it had not failed before.
  std::vector<std::string> to_name();

  std::string bad;  // the first violation; empty: none
  Counts counts;

 private:
  struct Memory {
    bool failed = false;
    int given_back = 0;
    std::string before = {};         // the image that it ran at its last turn
    int64_t image_in = 0, turn = 0;  // rollouts: the last that gave it an image, of its last turn
    int64_t due() const { return given_back ? turn + (1 << std::min(given_back, 10)) : turn; }
  };
  struct Wait {
    int turns = 0;      // of others while it could have been taken
    int nights = 0;     // calm ones with a full batch
    bool dusk = false;  // it could have been taken when the night began, and its jobs end
  };

  void fail(const std::string& what, size_t node = SIZE_MAX);
  void start();
  void forget();  // what was of another rollout
  void count_away(const Row& row);
  void run(const Answer& answer);
  void canary(const Batch& batch);
  void others(const Batch& batch);
  void special(const Batch& batch);
  void prefetch(const Batch& batch);
  void stop(const Row& row, const Answer& answer);
  // No node is left behind that could be taken.
  void no_node_forgotten(const Row& row, const Answer& answer);
  void could_be_added(const Batch& batch);
  void canaries_wait(const Batch& batch);
  void count_turns(const Batch& batch);
  void reasons(const Answer& answer);
  bool reason_holds(const Left& left, const Answer& answer) const;

  // A window is a span of time. Where the clock was wrong it may end earlier; only a machine that was
  // restarted with a wrong clock cannot know.
  bool may_be_open() const { return model_.time < opened_ + kLength || (model_.boots != boots_ && wrong_); }
  bool must_be_open() const {
    return model_.time < opened_ + kLength && !opened_wrong_ && model_.clock_off == 0 &&
           (model_.boots == boots_ || !wrong_);
  }
  bool scope(const Node& node) const;
  bool away(const Node& node) const;
  bool under_way(const Node& node) const;
  bool stops_a_group(const Node& node) const;
  bool skipped(size_t at) const;
  bool is_named(size_t at) const { return named_.count(view_.nodes[at].name) > 0; }
  bool is_held(const Node& node) const { return held_[static_cast<size_t>(image_of(node))]; }
  // What still counts: until it has another image than at its last turn, by whatever way.
  Memory past(size_t at) const;
  bool failed_before(size_t at) const { return past(at).failed; }
  bool eligible(size_t at) const;
  // Needs the update, and nothing of its own keeps it from being taken in this night.
  bool ready(size_t at) const;
  // Could be the canary of its image now, and none that an operator named comes before it.
  bool candidate(size_t at) const;
  // One of its image was given back in this window.
  bool delayed(size_t at) const;
  bool ordinary(size_t at) const;
  bool groups_allow(const Node& node, const std::vector<int>& taken) const;
  bool needs_held() const;
  // 0: it goes to canaries only; 1: proven; -1: nothing can prove it.
  int proof(const std::string& image) const;
  int proof_now(const std::string& image) const;
  int most() const;

  const Model& model_;
  const View& view_;
  std::vector<Memory> memory_;
  std::vector<Wait> waits_;
  std::map<size_t, TimeMs> skips_;  // 0: until it is ended
  TimeMs opened_ = 0;
  bool opened_wrong_ = false, wrong_ = false;  // the clock, when it was opened, and at any time since
  int64_t boots_ = 0, window_ = 0;
  bool prepares_ = false, fresh_ = false;  // a window is not prepared(); none goes on in it
  // Of this approval:
  std::set<std::string> named_;
  std::vector<char> held_ = {0, 0, 0};  // per image
  int approved_spec_ = 0;
  std::string approved_;
  // Of this rollout:
  int64_t id_ = 0, started_ = 0;
  std::string target_;
  bool paused_ = false;
  int failures_ = 0;
  bool canary_batch_ = false;
  std::vector<char> failed_, done_;
  std::vector<int64_t> postponed_;  // the last window; 0: never
  std::map<std::string, int> accepted_canaries_;
  // Of this step:
  int scope_ = 0, away_ = 0;
  std::vector<int> missing_, taken_;
  std::vector<size_t> chosen_;                                     // the batch, or those that would be in it
  const std::map<std::string, std::string>* under_way_ = nullptr;  // the nodes of the row's batch
  bool canary_under_way_ = false;
  mutable std::map<std::string, int> proofs_;
  // Of this night:
  bool full_ = false;      // a batch had max_unavailable nodes
  bool progress_ = false;  // a node was updated or failed, or a canary was given back
};

}  // namespace muster::rollout::sim
