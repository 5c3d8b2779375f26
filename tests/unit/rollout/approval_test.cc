// The standing approval: what it covers, what voids it, and which plans lie within it.
#include "controller/rollout/approval.h"

#include "controller/rollout/rollout_record.h"
#include "controller/rollout/serving.h"
#include "tests/catch.h"
#include "tests/unit/rollout/rollout_fixture.h"

using namespace muster;
using namespace muster::rollout;

namespace {

Approval approval() {
  Approval a;
  a.by = "ada";
  a.time = 5;
  a.spec_revision = 3;
  a.spec_digest = "sha256:spec";
  a.roles = {"gpu"};
  a.images["gpu"] = {"sha256:new", "sha256:recipe"};
  return a;
}

Plan plan_of(const std::string& node, ActionKind kind) {
  Plan plan;
  plan.kind = PlanKind::reimage;
  plan.spec_revision = 3;
  plan.images["gpu"] = "sha256:new";
  plan.nodes = {node};
  plan.actions.push_back({node + "/x", NodeName(node), kind, "image", "x"});
  return plan;
}

const BatchNodes kBatch{{"n1"}, {"n2"}};

}  // namespace

TEST_CASE("approval: another spec voids it, whatever is in it", "[rollout][approval]") {
  Approval now = approval();
  CHECK(not_covered(approval(), now).empty());
  now.spec_digest = "sha256:other";
  CHECK_FALSE(not_covered(approval(), now).empty());
  now = approval();
  ++now.spec_revision;  // the same text again, with another one between
  CHECK_FALSE(not_covered(approval(), now).empty());
}

TEST_CASE(
    "approval: an image that was built again is covered where the spec says so, from the same recipe only",
    "[rollout][approval]") {
  Approval given = approval(), now = approval();
  now.images["gpu"].digest = "sha256:newer";
  CHECK_FALSE(not_covered(given, now).empty());
  given.rebuilt_images = true;
  CHECK(not_covered(given, now).empty());
  now.images["gpu"].built_from = "sha256:other";
  CHECK_FALSE(not_covered(given, now).empty());
  now.images["gpu"].built_from = given.images["gpu"].built_from = "";  // not recorded
  CHECK_FALSE(not_covered(given, now).empty());
  now = approval();
  now.images["cpu"] = {"sha256:x", "sha256:y"};
  CHECK_FALSE(not_covered(given, now).empty());
}

TEST_CASE("approval: builds of the night are said to be covered, and are part of what is approved",
          "[rollout][approval]") {
  Approval a = approval(), b = approval();
  a.rebuilt_images = b.rebuilt_images = true;
  b.rebuild = Rebuild::daily;
  CHECK(digest_of(a) != digest_of(b));
  CHECK(effects_of(a) != effects_of(b));
  CHECK(approval_from_json(to_json(b)).value().rebuild == Rebuild::daily);
  CHECK_FALSE(to_json(a).contains("rebuild"));  // as earlier versions wrote it
  RolloutSpec declared;
  declared.rebuild = Rebuild::weekly;
  Spec spec;
  spec.rollout = declared;
  CHECK(to_approve({1, "sha256:spec", spec, {}}).value().rebuild == Rebuild::weekly);
}

TEST_CASE("approval: a plan within it is a re-image of the batch, with its images, that destroys nothing",
          "[rollout][approval]") {
  const Approval a = approval();
  for (const auto kind : {ActionKind::write_slot, ActionKind::boot_slot, ActionKind::netboot,
                          ActionKind::image, ActionKind::steps, ActionKind::check, ActionKind::return_slot})
    CHECK(beyond(a, plan_of("n1", kind), kBatch).empty());
  CHECK_FALSE(beyond(a, plan_of("n1", ActionKind::power_off), kBatch).empty());
  CHECK_FALSE(beyond(a, plan_of("n3", ActionKind::steps), kBatch).empty());
  Plan plan = plan_of("n1", ActionKind::write_slot);
  plan.kind = PlanKind::install;
  CHECK_FALSE(beyond(a, plan, kBatch).empty());
  plan = plan_of("n1", ActionKind::write_slot);
  plan.spec_revision = 4;
  CHECK_FALSE(beyond(a, plan, kBatch).empty());
  plan = plan_of("n1", ActionKind::write_slot);
  plan.images["gpu"] = "sha256:other";
  CHECK_FALSE(beyond(a, plan, kBatch).empty());
  plan = plan_of("n1", ActionKind::write_slot);
  plan.destroys.emplace_back();
  CHECK_FALSE(beyond(a, plan, kBatch).empty());
}

TEST_CASE("approval: of the next batch only the slot is written, and servers only let nodes mount",
          "[rollout][approval]") {
  const Approval a = approval();
  CHECK(beyond(a, plan_of("n2", ActionKind::write_slot), kBatch).empty());
  CHECK(beyond(a, plan_of("n2", ActionKind::inventory), kBatch).empty());
  CHECK_FALSE(beyond(a, plan_of("n2", ActionKind::boot_slot), kBatch).empty());
  CHECK_FALSE(beyond(a, plan_of("n2", ActionKind::steps), kBatch).empty());
  Plan plan = plan_of("n3", ActionKind::steps);
  plan.serving = {"n3"};
  CHECK(beyond(a, plan, kBatch).empty());
  plan.actions[0].kind = ActionKind::write_slot;
  CHECK_FALSE(beyond(a, plan, kBatch).empty());
}

TEST_CASE("approval: its digest is of what is shown, not of who approves it when", "[rollout][approval]") {
  Approval other = approval();
  other.by = "bob";
  other.time = 6;
  CHECK(digest_of(other) == digest_of(approval()));
  other.rebuilt_images = true;
  CHECK(digest_of(other) != digest_of(approval()));
}

TEST_CASE("rollout record: the store gives back what it was given", "[rollout][approval]") {
  Record record;
  record.id = 4;
  record.approval = approval();
  CHECK(to_text(record_from_text(to_text(record)).value()) == to_text(record));
  CHECK(state_of(record) == "approved");
  record.row = proven_row();
  record.row->paused = true;
  record.why_paused = "by ada";
  record.night = 3;
  record.window_until = 77;
  record.runs.push_back({1, 9, true, {{"n1", "sha256:new"}}});
  record.before["n1"] = "sha256:old";
  record.left["n2"] = "needed: data";
  const Record again = record_from_text(to_text(record)).value();
  CHECK(to_text(again) == to_text(record));
  CHECK(state_of(again) == "paused");
  CHECK(again.approval.images == record.approval.images);
  CHECK(again.runs.at(0).images.at("n1") == "sha256:new");
  CHECK(record_from_text("{}").error().code == Code::corrupt);
}

TEST_CASE("rollout record: a skip ends at its time, or when an operator ends it", "[rollout][approval]") {
  Record record;
  record.skips["n1"] = {"RAM on order", "ada", 5, 100};
  record.skips["n2"] = {"customer demo", "ada", 5, 0};
  const Record again = record_from_text(to_text(record)).value();
  CHECK(is_skipped(again, "n1", 99));
  CHECK_FALSE(is_skipped(again, "n1", 100));
  CHECK(is_skipped(again, "n2", 1000));
  CHECK_FALSE(is_skipped(again, "n3", 50));
  CHECK(again.skips.at("n2").reason == "customer demo");
}

TEST_CASE("rollout record: a run is found by its tag, and by no other's", "[rollout][approval]") {
  CHECK(has_tag("rollout 3/1, approved by ada", run_tag(3, 1)));
  CHECK_FALSE(has_tag("rollout 3/12, approved by ada", run_tag(3, 1)));
  CHECK_FALSE(has_tag("ada", run_tag(3, 1)));
}

TEST_CASE("serving: groups and special nodes of a spec", "[rollout][serving]") {
  Spec spec;
  for (const char* name : {"a", "b", "c", "head"}) {
    NodeSpec node;
    node.name = NodeName(name);
    node.role = std::string(name) == "head" ? "head" : "gpu";
    if (node.role == "gpu") node.disks["fast"] = {};
    spec.nodes.push_back(node);
  }
  spec.roles = {{"gpu", {"scheduler", "storage-ceph"}}, {"head", {"scheduler", "storage-ceph"}}};
  spec.leads["scheduler"] = "head";
  StorageSpec ceph;
  ceph.name = "data";
  ceph.engine = "ceph";
  ceph.disks = "fast";
  ceph.copies = 3;
  spec.storage.push_back(ceph);
  const Serving serving = serving_of(spec);
  REQUIRE(serving.groups.size() == 2);
  CHECK(serving.groups[0].kind == GroupKind::storage);
  CHECK(serving.groups[0].can_miss == 1);
  CHECK(serving.groups[1].kind == GroupKind::quorum);
  CHECK(serving.groups[1].can_miss == 1);
  CHECK(serving.sections == std::vector<std::string>{"data", "data"});
  CHECK(serving.groups_of.at("a") == std::vector<size_t>{0, 1});
  CHECK(serving.groups_of.count("head") == 0);
  CHECK(serving.special.at("head") == Special::scheduler);
  CHECK(serving.special.count("a") == 0);
}
