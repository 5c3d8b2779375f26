// What a rollout may and must do, said a second time and without the product's code: holds every answer, and
// every row, against the model's truth and what happened so far.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/unit/rollout/model.h"

namespace muster::rollout::sim {

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model), view_(model.view) {}

  void new_rollout(int64_t id);
  // A run of the rollout ended, and the row that says so is durable.
  void judged(const ModelRun& run);
  void paused(bool by_operator) { paused_ = by_operator; }
  void answer(const Row& row, const Answer& answer);
  // The row has of every node what happened to it.
  void row(const Row& row);

  std::string bad;  // the first violation; empty: none
  int batches = 0, canaries = 0, updated = 0, largest = 0, prefetched = 0;

 private:
  void fail(const std::string& what, size_t node = SIZE_MAX);
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
  void reasons(const Answer& answer);
  bool reason_holds(const Left& left, const Answer& answer) const;

  bool scope(const Node& node) const;
  bool away(const Node& node) const;
  bool under_way(const Node& node) const;
  bool stops_a_group(const Node& node) const;
  bool eligible(const Node& node) const;
  // Needs the update, and nothing of its own keeps it from being taken in this night.
  bool ready(size_t at) const;
  bool groups_allow(const Node& node, const std::vector<int>& taken) const;
  // 0: it goes to canaries only; 1: proven; -1: nothing can prove it.
  int proof(const std::string& image) const;
  int proof_now(const std::string& image) const;
  int most() const;

  const Model& model_;
  const View& view_;
  // Of this rollout:
  int64_t id_ = 0;
  std::string target_;
  bool paused_ = false;
  int failures_ = 0;
  bool canary_failed_ = false, canary_batch_ = false;
  std::vector<char> failed_, done_;
  std::vector<int64_t> postponed_;  // the last night; 0: never
  std::map<std::string, int> accepted_canaries_;
  // Of this step:
  int scope_ = 0, away_ = 0;
  std::vector<int> missing_, taken_;
  std::vector<size_t> chosen_;                                     // the batch, or those that would be in it
  const std::map<std::string, std::string>* under_way_ = nullptr;  // the nodes of the row's batch
  bool canary_under_way_ = false;
  mutable std::map<std::string, int> proofs_;
};

}  // namespace muster::rollout::sim
