// Rollouts over nights, builds and approvals: what is remembered of nodes, and what one of them decides.
#include <map>
#include <set>
#include <sstream>

#include "controller/rollout/next.h"
#include "controller/rollout/rollout_record.h"
#include "controller/rollout/service/rollout_window.h"
#include "tests/field/case.h"

namespace muster::tests {

using namespace rollout;

namespace {

using Names = std::set<std::string>;

// A case's cluster ("node role words..."), its images, which are named like the roles, and its nights:
// windows of three hours, in which a batch takes one, or two if jobs of a node do not end.
class Site {
 public:
  explicit Site(const std::string& name) {
    std::istringstream lines(field_input(name, "cluster.txt"));
    for (std::string line; std::getline(lines, line);) add(line);
    REQUIRE_FALSE(seen_.view.nodes.empty());
    for (const auto& [image, build] : builds_) {
      seen_.view.policy.roles.push_back(image);
      seen_.now.images[image] = {image + "0", "recipe"};
    }
    seen_.now.roles = seen_.view.policy.roles;
    seen_.now.rebuilt_images = true;
    seen_.rollout.window = 180 * kMinute;
  }

  View& view() { return seen_.view; }
  const Record& record() const { return *record_; }
  void build(const std::string& image) {
    const std::string digest = image + std::to_string(++builds_[image]);
    seen_.now.images[image] = {digest, "recipe"};
    for (Node& node : seen_.view.nodes)
      if (node.role == image) node.image_wanted = digest;
  }
  void approve() { record_ = approved(record_.value_or(Record{}), seen_.now); }

  // Returns the nodes that were updated; "refused" if no window opened.
  Names night() {
    canaries.clear();
    auto next_record = opened(record_, seen_, {});
    if (!next_record.ok()) return {"refused"};
    record_ = std::move(next_record).value();
    Names updated;
    for (int hours = 3; hours > 0;) {
      seen_.view.target = record_->row->target;
      recall(seen_.view, *record_, 0);
      answer = next(seen_.view, *record_->row);
      if (answer.what != Do::run) break;
      hours -= run(updated);
    }
    record_->row = with_answer(std::move(*record_->row), answer);
    return updated;
  }
  Reason left(const std::string& name) const {
    for (const Left& one : answer.left)
      if (seen_.view.nodes[one.node].name == name) return one.reason;
    return Reason::none;
  }

  Names canaries;  // of the last night
  Answer answer;   // its last

 private:
  void add(const std::string& line) {
    std::istringstream in(line);
    Node node;
    in >> node.name >> node.role;
    node.image_now = node.image_wanted = node.role + "0";
    builds_[node.role] = 0;
    node.state = NodeState::accepted;
    node.online = node.has_bmc = true;
    for (std::string word; in >> word; words_[node.name].insert(word)) {
      if (word == "endless" || word == "jobs") node.idle = false;
      if (word == "no-bmc") node.has_bmc = false;
      if (word == "no-way") node.way = Way::none;
    }
    seen_.view.nodes.push_back(node);
  }
  bool is(const std::string& node, const char* word) const { return words_.at(node).count(word) > 0; }

  int run(Names& updated) {
    record_ = with_batch(*record_, seen_.view, answer);
    record_->row = with_run(*record_->row, ++runs_).value();
    RunEnd end{runs_, 0, false, {}};
    int hours = 1;
    for (const size_t at : answer.batch.nodes) {
      Node& node = seen_.view.nodes[at];
      if (answer.batch.canary) canaries.insert(node.name);
      NodeEnd& outcome = end.nodes[node.name] = {Outcome::accepted, ""};
      if (is(node.name, "broken")) outcome = {Outcome::returned, "1 of 8 GPUs is missing"};
      if (is(node.name, "endless")) outcome = {Outcome::jobs, "job 12"}, hours = 2;
      if (outcome.outcome == Outcome::accepted) node.image_now = node.image_wanted, updated.insert(node.name);
    }
    record_ = judged(*record_, end, 0).value();
    return hours;
  }

  SeenCluster seen_;
  std::optional<Record> record_;
  std::map<std::string, int> builds_;  // by image
  std::map<std::string, std::set<std::string>> words_;
  int64_t runs_ = 0;
};

}  // namespace

FIELD_CASE("rebuilt-nightly-starves") {
  Site site("rebuilt-nightly-starves");
  site.view().policy.max_unavailable.count = 2;
  site.build("gpu");
  site.approve();
  CHECK(site.night() == Names{"n0"});
  std::map<std::string, int> updates;
  for (int night = 2; night <= 32; ++night) {
    site.build("gpu");
    const Names updated = site.night();
    for (const auto& node : updated) ++updates[node];
    if (night == 2) CHECK(updated == Names{"n0", "n3", "n4", "n5"});
  }
  for (const char* node : {"n3", "n4", "n5"}) CHECK(updates[node] > 25);  // of 31
}

FIELD_CASE("undrainable-node-first") {
  Site site("undrainable-node-first");
  site.view().policy.max_unavailable.count = 1;
  for (int week = 1; week <= 2; ++week) {
    site.build("gpu");
    site.approve();
    const Names canary = week == 1 ? Names{"n0", "n1"} : Names{"n2"};
    site.night();
    CHECK(site.canaries == canary);
  }
  CHECK(site.record().row->done.size() == 2);
  CHECK(site.record().past.at("n0").postponed == 2);
  CHECK(site.record().past.at("n0").reason == "job 12");
}

FIELD_CASE("same-canary-again") {
  Site site("same-canary-again");
  site.view().policy.max_unavailable.count = 5;
  site.build("gpu");
  site.approve();
  CHECK(site.night().empty());
  CHECK(site.canaries == Names{"n0"});
  CHECK(site.answer.stop == StopReason::canary_failed);
  CHECK(site.night() == Names{"refused"});
  for (int day = 2; day <= 4; ++day) {
    site.build("gpu");
    site.approve();
    CHECK(site.night() == Names{"n1", "n2", "n3", "n4", "n5"});
    CHECK_FALSE(site.canaries.contains("n0"));
  }
}

FIELD_CASE("no-canary-ends-all-nights") {
  Site site("no-canary-ends-all-nights");
  site.view().policy.max_unavailable.count = 4;
  site.build("login");
  site.approve();
  CHECK(site.night().empty());
  CHECK(site.answer.what == Do::done);
  CHECK(site.left("login1") == Reason::no_canary);
  CHECK(site.left("login0") == Reason::no_way);
  site.build("gpu");
  CHECK(site.night() == Names{"gpu0", "gpu1", "gpu2", "gpu3"});
  CHECK(site.answer.what == Do::done);
}

FIELD_CASE("failing-node-stops-the-group") {
  Site site("failing-node-stops-the-group");
  for (int week = 1; week <= 3; ++week) {
    site.build("gpu");
    site.approve();
    const Names updated = site.night();
    for (int night = 2; night <= 3; ++night) site.night();
    if (week == 1) continue;  // n1 had not failed before
    for (const char* node : {"n0", "n2", "n3", "n4"}) CHECK(site.record().row->done.contains(node));
    CHECK(site.answer.stop == StopReason::budget);
  }
}

}  // namespace muster::tests
