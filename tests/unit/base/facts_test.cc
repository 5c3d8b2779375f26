#include "base/facts.h"

#include "base/json.h"
#include "tests/catch.h"

using namespace muster;

namespace {

HardwareFacts full() {
  HardwareFacts f;
  f.system = {"ACME", "R1", "SN1", "aaaa-bbbb"};
  f.cpus = {64, 2, "EPYC"};
  f.memory_bytes = 1ull << 41;
  f.gpus = {{"H100", "GPU-1", "165", "0000:17:00.0", 80ull << 30, "32.0 GT/s x16"}};
  f.nics = {{"eth0", "52:54:00:00:00:01", 400000, "mlx5_core", "0000:18:00.0", true}};
  DiskFacts d;
  d.serial = "S1";
  d.wwid = "eui.1";
  d.model = "Micron 7450";
  d.size_bytes = 3840755982336;
  d.transport = "nvme";
  d.name = "nvme0n1";
  d.pcie_address = "0000:41:00.0";
  d.bus_speed = "16.0 GT/s x4";
  d.logical_block = 512;
  d.content = "GPT";
  d.content_hash = "sha256:00";
  d.blank = true;
  d.partitions = {{"nvme0n1p1", "muster-esp", "vfat", "ESP", 1 << 20, 512 << 20}};
  d.signatures = {"vfat"};
  d.mounted = true;
  d.is_os_ancestor = true;
  d.muster_cluster = "gaggle";
  d.muster_node = "node01";
  d.muster_authority = "sha256:ca";
  f.disks = {d};
  f.firmware = "EDK II";
  f.uefi = true;
  f.kernel = "6.1.0";
  f.os = "Debian 12";
  f.os_id = "debian";
  f.storage_metadata = {{"moosefs", true}};
  return f;
}

}  // namespace

TEST_CASE("hardware facts survive the wire with every field") {
  const Json sent = to_json(full());
  auto read = hardware_facts_from_json(parse_json(sent.dump()).value());
  REQUIRE(read.ok());
  CHECK(to_json(*read) == sent);
  // Every leaf of the sample differs from the default, so a forgotten field cannot hide.
  CHECK(read->disks[0].is_os_ancestor);
  CHECK(read->disks[0].partitions[0].size_bytes == 512 << 20);
  CHECK(read->nics[0].speed_mbps == 400000);
  CHECK(read->gpus[0].uuid == "GPU-1");
  CHECK(read->storage_metadata.at("moosefs"));
  CHECK(read->os_id == "debian");
}

TEST_CASE("facts of an older or newer agent are read; a wrong type is refused with its path") {
  CHECK(hardware_facts_from_json(parse_json(R"({"new_field": 1})").value()).ok());
  auto bad = hardware_facts_from_json(parse_json(R"({"disks": [{"serial": "a"}, {"serial": 7}]})").value());
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().code == Code::invalid);
  CHECK(bad.error().message.find("facts.disks[1].serial") != std::string::npos);
  CHECK_FALSE(hardware_facts_from_json(parse_json(R"({"gpus": {"model": "x"}})").value()).ok());
  CHECK_FALSE(hardware_facts_from_json(parse_json("[]").value()).ok());
}

TEST_CASE("properties, a machine-id and a share are read back, and absent where there are none", "[facts]") {
  HardwareFacts facts;
  for (const char* key : {"properties", "machine_id", "share"}) CHECK_FALSE(to_json(facts).contains(key));
  facts.properties = {{"CPU governor", "performance"}};
  facts.machine_id = "0123456789abcdef0123456789abcdef";
  facts.share = {32.5, 128, "cpu.max", {"32.5 of 128 cores (cpu.max)", "2 of 8 GPUs"}};
  const auto read = hardware_facts_from_json(to_json(facts));
  REQUIRE(read.ok());
  CHECK(to_json(*read) == to_json(facts));
  CHECK(share_of(*read) == "32.5 of 128 cores (cpu.max), 2 of 8 GPUs");
  CHECK(read->share.cores == 32.5);
  for (int i = 0; i < 1001; ++i) facts.properties[std::to_string(i)] = "x";
  CHECK(hardware_facts_from_json(to_json(facts)).error().code == Code::invalid);
}

TEST_CASE("a node cannot ask for the controller's secrets by way of its hardware", "[facts]") {
  // Disk identities go into the parameters of orders, where the controller resolves secret:NAME.
  Json json = to_json(full());
  REQUIRE(hardware_facts_from_json(json).ok());
  json["disks"][0]["model"] = "secret:bmc";
  CHECK(hardware_facts_from_json(json).error().code == Code::denied);
  json["disks"][0]["model"] = "Micron secret:bmc";  // only a whole value is a reference
  CHECK(hardware_facts_from_json(json).ok());
  json["disks"][0]["signatures"][0] = "secret:mpi-ssh-key";
  CHECK(hardware_facts_from_json(json).error().code == Code::denied);
}

TEST_CASE("facts: a drive behind a multipath map is released for good before its map goes") {
  DiskFacts disk;
  CHECK(why_not_past_map(disk).empty());
  disk.multipath = "mpatha";
  const std::string why = why_not_past_map(disk);
  const size_t listed = why.find("`blacklist`"), read = why.find("`multipathd reconfigure`"),
               released = why.find("`multipath -f mpatha`");
  // multipathd makes the map again from the configuration that it has read.
  CHECK(listed < read);
  CHECK(read < released);
  CHECK(released != std::string::npos);
}
