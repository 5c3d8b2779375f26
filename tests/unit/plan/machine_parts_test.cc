// Which machine a host is: with and without root, after parts were exchanged, under two names.
#include "controller/plan/machine_parts.h"

#include "tests/catch.h"

using namespace muster;

namespace {

const std::string kId = "0123456789abcdef0123456789abcde0";

HardwareFacts facts_of(const std::string& tag) {
  HardwareFacts out;
  out.system.uuid = "4c4c4544-0051-4b10-8052-c4c04f4" + tag;
  for (const char* number : {"1", "2", "3", "4"})
    out.gpus.emplace_back().uuid = "GPU-1fe4a2c6-7b1d-" + tag + "-9a" + number;
  for (const char* number : {"1", "2"}) {
    NicFacts nic;
    nic.mac = "B8:CE:F6:" + tag.substr(0, 2) + ":" + tag.substr(2, 2) + ":a" + number;
    nic.driver = "mlx5_core";
    out.nics.push_back(nic);
    DiskFacts disk;
    disk.transport = "nvme";
    disk.serial = "S64HNE0R" + tag + number;
    out.disks.push_back(disk);
  }
  return out;
}

MachineParts as_root(const std::string& tag) { return machine_parts(facts_of(tag), kId); }
// A plain user reads no UUID.
MachineParts as_user(const std::string& tag) {
  HardwareFacts facts = facts_of(tag);
  facts.system.uuid.clear();
  return machine_parts(facts, kId);
}

}  // namespace

TEST_CASE("machine: placeholders and what is not a machine's own are no parts", "[plan][hosts]") {
  HardwareFacts facts = facts_of("a1b2f");
  facts.system.uuid = "03000200-0400-0500-0006-000700080009";
  facts.disks[0].serial = "QM00001";
  facts.disks[1].transport = "sata";
  facts.nics[0].address_kind = "virtual-function";
  facts.nics[1].mac = "52:54:00:20:00:01";
  const MachineParts parts = machine_parts(facts, "uninitialized");
  CHECK(parts.uuid == "");
  CHECK(parts.drives.empty());
  CHECK(parts.ports.empty());
  CHECK(parts.gpus.size() == 4);
  CHECK(parts.machine_id == "");
  CHECK(machine_parts(HardwareFacts(), "00000000000000000000000000000000").machine_id == "");
  CHECK(machine_identity(machine_parts(HardwareFacts(), "")) == "");
}

TEST_CASE("machine: its identity is the UUID, else a digest over its parts in any order", "[plan][hosts]") {
  CHECK(machine_identity(as_root("a1b2f")) == "uuid:4c4c4544-0051-4b10-8052-c4c04f4a1b2f");
  const std::string identity = machine_identity(as_user("a1b2f"));
  CHECK(identity.starts_with("parts:sha256:"));
  HardwareFacts turned = facts_of("a1b2f");
  turned.system.uuid.clear();
  std::swap(turned.gpus[0], turned.gpus[3]);
  std::swap(turned.nics[0], turned.nics[1]);
  CHECK(machine_identity(machine_parts(turned, kId)) == identity);
  turned.gpus.pop_back();
  CHECK(machine_identity(machine_parts(turned, kId)) != identity);
}

TEST_CASE("machine: the same one with another part, and another one under its name", "[plan][hosts]") {
  CHECK(compare_machines(as_root("a1b2f"), as_root("a1b2f")).same == SameMachine::yes);
  CHECK(compare_machines(as_root("a1b2f"), as_user("a1b2f")).same == SameMachine::yes);
  CHECK(compare_machines(as_root("a1b2f"), as_root("c3d4f")).same == SameMachine::no);
  CHECK(compare_machines(as_user("a1b2f"), as_user("c3d4f")).same == SameMachine::no);

  MachineParts now = as_user("a1b2f");
  now.gpus.erase(now.gpus.begin());
  now.gpus.insert("GPU-new");
  now.machine_id = "f" + kId.substr(1);
  const MachineChange change = compare_machines(as_user("a1b2f"), now);
  CHECK(change.same == SameMachine::yes);
  CHECK(change.changed == std::vector<std::string>{"GPU GPU-1fe4a2c6-7b1d-a1b2f-9a1 is missing",
                                                   "GPU GPU-new is new",
                                                   "the machine-id has changed: the system was reinstalled"});

  // Its drives were put into another machine.
  MachineParts moved = as_user("c3d4f");
  moved.drives = as_user("a1b2f").drives;
  CHECK(compare_machines(as_user("a1b2f"), moved).same == SameMachine::no);
  // One UUID on many boards of a maker.
  MachineParts board = as_root("c3d4f");
  board.uuid = as_root("a1b2f").uuid;
  CHECK(compare_machines(as_root("a1b2f"), board).same == SameMachine::no);
  // One of a single part is no proof against it.
  MachineParts vm, other;
  vm.uuid = other.uuid = as_root("a1b2f").uuid;
  vm.ports = {"b8:ce:f6:00:00:a1"};
  other.ports = {"b8:ce:f6:00:00:a2"};
  CHECK(compare_machines(vm, other).same == SameMachine::yes);
}

TEST_CASE("machine: a machine-id alone is an image's", "[plan][hosts]") {
  MachineParts a, b;
  CHECK(compare_machines(a, b).same == SameMachine::unknown);
  a.machine_id = b.machine_id = kId;
  CHECK(compare_machines(a, b).same == SameMachine::copied);
  b.machine_id = "f" + kId.substr(1);
  CHECK(compare_machines(a, b).same == SameMachine::no);
  // All of a cluster may have it: parts count more.
  CHECK(compare_machines(as_user("a1b2f"), as_user("c3d4f")).same == SameMachine::no);
}

TEST_CASE("machine: names of one machine", "[plan][hosts]") {
  MachineParts clone;
  clone.machine_id = kId;
  const auto found = names_of_one_machine({{"gpu02", as_root("c3d4f")},
                                           {"login", as_user("a1b2f")},
                                           {"gpu01", as_root("a1b2f")},
                                           {"gpu03", as_user("e5f6f")},
                                           {"alias", as_root("a1b2f")}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].names == std::vector<std::string>{"alias", "gpu01", "login"});
  CHECK(found[0].sure);
  const auto clones = names_of_one_machine({{"vm2", clone}, {"vm1", clone}});
  REQUIRE(clones.size() == 1);
  CHECK(clones[0].names == std::vector<std::string>{"vm1", "vm2"});
  CHECK(!clones[0].sure);
  CHECK(names_of_one_machine({{"a", {}}, {"b", {}}}).empty());
  CHECK(names_of_one_machine({}).empty());
  // The other byte order of a UUID.
  MachineParts swapped, plain;
  plain.uuid = as_root("a1b2f").uuid;
  swapped.uuid = "44454c4c-5100-104b-8052-c4c04f4a1b2f";
  CHECK(names_of_one_machine({{"a", plain}, {"b", swapped}}).size() == 1);
}

TEST_CASE("machine: of two that run now, boot ids tell whether they are one", "[plan][hosts]") {
  MachineParts image;
  image.machine_id = kId;
  // One UUID on all boards of a batch, one image on all drives.
  CHECK(names_of_one_machine({{"a", as_root("a1b2f"), "b1"}, {"b", as_root("a1b2f"), "b2"}}).empty());
  CHECK(names_of_one_machine({{"a", image, "b1"}, {"b", image, "b2"}}).empty());
  const auto one = names_of_one_machine({{"a", as_user("a1b2f"), "b1"}, {"b", {}, "b1"}, {"c", image, "b2"}});
  REQUIRE(one.size() == 1);
  CHECK(one[0].names == std::vector<std::string>{"a", "b"});
  CHECK(one[0].sure);
  // Where one is unknown, the parts decide.
  CHECK(names_of_one_machine({{"a", as_root("a1b2f"), "b1"}, {"b", as_root("a1b2f"), ""}}).size() == 1);
}

TEST_CASE("machine: parts are kept as JSON", "[plan][hosts]") {
  const auto read = machine_parts_from_json(to_json(as_root("a1b2f")));
  REQUIRE(read.ok());
  CHECK(to_json(*read) == to_json(as_root("a1b2f")));
  CHECK(machine_parts_from_json(Json::object()).ok());
  CHECK(machine_parts_from_json({{"later", 1}}).ok());
  for (const Json& bad : {Json(1), Json::array(), Json{{"gpus", 1}}, Json{{"ports", Json::array({1})}}}) {
    const auto result = machine_parts_from_json(bad);
    REQUIRE(!result.ok());
    CHECK(result.error().code == Code::invalid);
  }
}
