// md arrays with redundancy: made with what each level needs, in use while they are brought into step, and
// never created again for a lost drive.
#include "agent/core/step.h"
#include "agent/steps/disk/array_health.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

const char* const kLevels[] = {"raid1", "raid5", "raid6", "raid10"};
const char* const kSerials[] = {"A", "B", "C", "D"};

struct Four {
  FakeMachine machine;
  StepContext context = machine.context();
  std::vector<std::string> said;
  Four() {
    for (int i = 0; i < 4; ++i) machine.add_disk("nvme" + std::to_string(i + 1) + "n1", kSerials[i]);
    context.say = [this](const std::string& text) { said.push_back(text); };
  }
  Json params(const std::string& level, const std::string& policy = "format-if-blank", int disks = 4) const {
    Json list = Json::array();
    for (int i = 0; i < disks; ++i) list.push_back(machine.approved(kSerials[i], policy));
    return {{"name", "scratch"}, {"level", level}, {"disks", list}};
  }
  Result<CheckResult> check(const Json& params) { return find_step_module("raid")->check(context, params); }
  Status apply(const Json& params) { return find_step_module("raid")->apply(context, params); }
  bool says(const std::string& what) const {
    return std::any_of(said.begin(), said.end(),
                       [&](const auto& text) { return text.find(what) != std::string::npos; });
  }
};

bool names(const Error& error, const std::string& what) {
  return error.message.find(what) != std::string::npos;
}

TEST_CASE("raid: each level is made once, with a bitmap, unsynced, and is in use meanwhile") {
  for (const std::string level : kLevels) {
    INFO(level);
    Four four;
    const Json params = four.params(level);
    const auto before = four.machine.snapshot();
    const auto first = four.check(params);
    REQUIRE(first.ok());
    CHECK(first->holds == Holds::no);
    CHECK_FALSE(first->note.empty());
    CHECK(four.machine.snapshot() == before);

    const Status made = four.apply(params);
    INFO((made.ok() ? "" : made.error().message));
    REQUIRE(made.ok());
    CHECK(four.machine.called("--level=" + level));
    CHECK(four.machine.called("--bitmap=internal"));
    CHECK_FALSE(four.machine.called("--assume-clean"));
    CHECK(four.machine.called("--chunk=") == (level != "raid1"));
    CHECK(four.says(level == "raid5" ? "recover" : "resync"));

    const auto second = four.check(params);
    REQUIRE(second.ok());
    INFO(second->diff);
    CHECK(second->holds == Holds::yes);
    CHECK(second->note.find("12 %") != std::string::npos);
    const auto made_once = four.machine.snapshot();
    four.machine.calls.clear();
    CHECK(four.apply(params).ok());
    CHECK_FALSE(four.machine.called("mdadm --create"));
    CHECK(four.machine.snapshot() == made_once);

    four.machine.in_step();
    CHECK(four.check(params)->note.empty());
  }
}

TEST_CASE("raid: no bitmap without redundancy, and the same arguments as ever") {
  Four four;
  REQUIRE(four.apply(four.params("raid0", "format-if-blank", 2)).ok());
  CHECK(four.machine.called(
      "mdadm --create /dev/md/scratch --run --level=raid0 --raid-devices=2 --metadata=1.2 "
      "--homehost=any --name=scratch --chunk=512 /dev/nvme1n1 /dev/nvme2n1"));
}

TEST_CASE("raid: too few disks for the level are refused before any is looked at") {
  const std::map<std::string, int> fewest = {{"raid1", 2}, {"raid5", 3}, {"raid6", 4}, {"raid10", 4}};
  for (const auto& [level, count] : fewest) {
    INFO(level);
    Four four;
    CHECK(four.apply(four.params(level, "format-if-blank", count - 1)).error().code == Code::invalid);
    CHECK(four.machine.calls.empty());
    CHECK(four.apply(four.params(level, "format-if-blank", count)).ok());
  }
}

TEST_CASE("raid: a failed member is named by its serial, and nothing is written") {
  for (const std::string level : kLevels)
    for (const bool taken_out : {false, true}) {
      INFO(level << (taken_out ? ", taken out" : ""));
      Four four;
      const Json params = four.params(level, "format");
      REQUIRE(four.apply(params).ok());
      four.machine.in_step();
      four.machine.fail_member("nvme3n1");
      if (taken_out) four.machine.remove_member("nvme3n1");
      four.machine.calls.clear();
      const auto before = four.machine.snapshot();
      const auto seen = four.check(params);
      REQUIRE_FALSE(seen.ok());
      CHECK(seen.error().code == Code::conflict);
      CHECK(names(seen.error(), "disk C (nvme3n1)"));
      CHECK_FALSE(names(seen.error(), "disk A"));
      if (taken_out) CHECK(four.apply(params).error().code == Code::conflict);
      CHECK(four.machine.snapshot() == before);
      CHECK(four.machine.calls.empty());
    }
}

TEST_CASE("raid: a drive that is gone is named, and the array is not created again over the others") {
  Four four;
  Json params = four.params("raid5", "format");
  REQUIRE(four.apply(params).ok());
  four.machine.in_step();
  params["disks"][2]["serial"] = "GONE";
  four.machine.calls.clear();
  const auto seen = four.check(params);
  REQUIRE_FALSE(seen.ok());
  CHECK(names(seen.error(), "GONE"));
  CHECK(names(four.apply(params).error(), "GONE"));
  CHECK(four.machine.calls.empty());
}

TEST_CASE("raid: a new drive beside the members of a stopped array is not taken in, whatever is approved") {
  for (const char* policy : {"format-if-blank", "format"}) {
    Four four;
    REQUIRE(four.apply(four.params("raid5")).ok());
    REQUIRE(four.machine.run({.argv = {"mdadm", "--stop", "/dev/md127"}}).ok());
    four.machine.write_disk("nvme4n1", 4096, std::string(256, '\0'));
    const Json params =
        four.params("raid5", policy);  // with a hash for each disk, as it should not be approved
    four.machine.calls.clear();
    const auto before = four.machine.snapshot();
    const Status refused = four.apply(params);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::denied);
    CHECK(names(refused.error(), "disk D (nvme4n1)"));
    CHECK(four.machine.calls.empty());
    CHECK(four.machine.snapshot() == before);
  }
}

TEST_CASE(
    "raid: a drive that was replaced by hand is rebuilt while the array is used, and one left waiting is not "
    "fine") {
  Four four;
  const Json params = four.params("raid6");
  REQUIRE(four.apply(params).ok());
  four.machine.in_step();
  four.machine.remove_member("nvme4n1");
  REQUIRE_FALSE(four.check(params).ok());
  four.machine.add_member("nvme4n1");
  const auto rebuilding = four.check(params);
  REQUIRE(rebuilding.ok());
  CHECK(rebuilding->holds == Holds::yes);
  CHECK(rebuilding->note.find("recover") != std::string::npos);
  four.machine.put("/sys/block/md127/md/sync_action", "idle\n");
  CHECK(names(four.check(params).error(), "disk D (nvme4n1)"));
  // Assembled at boot, and not written to yet: md begins with the first write.
  four.machine.put("/sys/block/md127/md/array_state", "read-auto\n");
  CHECK(four.check(params)->holds == Holds::yes);
  four.machine.in_step();
  CHECK(four.check(params)->holds == Holds::yes);
}

TEST_CASE("raid: a creation that was interrupted is finished for each level, with no second one over data") {
  for (const std::string level : kLevels) {
    INFO(level);
    Four four;
    Json params = four.params(level);
    four.machine.loses_reply_at = static_cast<int>(four.machine.calls.size());
    CHECK(four.apply(params).error().code == Code::timeout);
    four.machine.loses_reply_at = -1;
    four.machine.calls.clear();
    for (auto& disk : params["disks"]) disk["content_hash"] = "";
    CHECK(four.apply(params).ok());
    CHECK_FALSE(four.machine.called("mdadm --create"));
    CHECK(four.check(params)->holds == Holds::yes);
  }
}

TEST_CASE("raid: disks that carry an array of another level are refused") {
  Four four;
  REQUIRE(four.apply(four.params("raid10")).ok());
  four.machine.in_step();
  CHECK(four.check(four.params("raid5")).error().code == Code::conflict);
  REQUIRE(four.machine.run({.argv = {"mdadm", "--stop", "/dev/md127"}}).ok());
  four.machine.calls.clear();
  CHECK(four.apply(four.params("raid6", "format")).ok());  // assembled and kept
  CHECK_FALSE(four.machine.called("mdadm --create"));
  CHECK(four.check(four.params("raid6")).error().code == Code::conflict);
}

TEST_CASE("filesystem: the stripe is the disks that hold data") {
  const std::map<std::string, std::string> stripes = {{"raid0", "su=512k,sw=4"},
                                                      {"raid5", "su=512k,sw=3"},
                                                      {"raid6", "su=512k,sw=2"},
                                                      {"raid10", "su=512k,sw=2"}};
  for (const std::string level : {"raid0", "raid1", "raid5", "raid6", "raid10"}) {
    INFO(level);
    Four four;
    const Json params = four.params(level);
    REQUIRE(four.apply(params).ok());
    REQUIRE(find_step_module("filesystem")
                ->apply(four.context, {{"label", "scratch"}, {"array", true}, {"disks", params["disks"]}})
                .ok());
    const auto stripe = stripes.find(level);
    if (stripe == stripes.end())
      CHECK_FALSE(four.machine.called("su="));
    else
      CHECK(four.machine.called("mkfs.xfs -q -L scratch -d " + stripe->second));
  }
}

TEST_CASE("array health: a resync is no fault, two lost members with one spare are") {
  FakeMachine machine;
  const auto put = [&](const std::string& name, const std::string& value) {
    machine.put("/sys/block/md0/md/" + name, value + "\n");
  };
  put("level", "raid6"), put("raid_disks", "5"), put("degraded", "2"), put("array_state", "clean");
  put("sync_action", "recover"), put("sync_completed", "300 / 1000");
  for (const char* member : {"sda", "sdb", "sdc"}) put(std::string("dev-") + member + "/state", "in_sync");
  put("dev-sdd/state", "spare");
  ArrayHealth health = array_health(machine.files(), "md0");
  CHECK_FALSE(health.ok);
  CHECK(health.lacking == 2);
  CHECK(in_words(health) == "degraded: 3 of 5 members, sdd is not in sync; recover, 30 %");
  put("degraded", "1");
  CHECK(array_health(machine.files(), "md0").ok);
  put("dev-sdb/state", "faulty");
  health = array_health(machine.files(), "md0");
  CHECK_FALSE(health.ok);
  CHECK(health.failed == std::vector<std::string>{"sdb"});
  put("level", "raid0");
  CHECK(array_health(machine.files(), "md0").ok);
}

}  // namespace
}  // namespace muster
