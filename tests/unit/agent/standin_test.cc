// Stand-ins for GPUs: SMBIOS tables made by hand, and what has to be so before a machine is believed.
#include "base/standin.h"

#include "agent/checks/checks.h"
#include "agent/facts/collect_facts.h"
#include "agent/steps/system/smbios.h"
#include "base/facts.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;
using StringList = std::vector<std::string>;

// One SMBIOS structure: type, formatted part behind the header, strings.
std::string structure(int type, const std::string& formatted, const StringList& strings) {
  std::string out = {static_cast<char>(type), static_cast<char>(4 + formatted.size()), 1, 0};
  out += formatted;
  for (const auto& text : strings) out += text + '\0';
  if (strings.empty()) out += '\0';
  return out + '\0';
}
std::string table(const StringList& oem) {
  return structure(1, std::string(23, '\1'), {"QEMU", "lab"}) + structure(32, std::string(7, '\0'), {}) +
         (oem.empty() ? "" : structure(11, std::string(1, static_cast<char>(oem.size())), oem)) +
         structure(127, "", {});
}

const std::string kTwo = standin_text({2, "NVIDIA H100 80GB HBM3"});

// A guest of the lab, as Linux shows it.
void guest(FakeMachine& m, const StringList& oem = {kTwo}) {
  m.put("/proc/cpuinfo",
        "processor\t: 0\nflags\t\t: fpu sse2 hypervisor lahf_lm\n\nprocessor\t: 1\nflags\t\t: fpu "
        "hypervisor\n");
  m.put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
  m.put("/sys/class/dmi/id/product_name", "muster lab machine (SIMULATED)\n");
  m.put("/sys/class/dmi/id/product_uuid", "ABCDEF01-2222-4333-8444-555555555555\n");
  m.put("/sys/firmware/dmi/tables/DMI", table(oem));
}

}  // namespace

TEST_CASE("a stand-in's text is read back, and nothing else is one", "[standin]") {
  const auto found = standin_from_text(kTwo);
  REQUIRE(found);
  CHECK(found->count == 2);
  CHECK(found->model == "NVIDIA H100 80GB HBM3");
  for (const char* text :
       {"", "muster-lab-gpus/1 ", "muster-lab-gpus/1 2", "muster-lab-gpus/1 2 ", "muster-lab-gpus/1 0 X",
        "muster-lab-gpus/1 -1 X", "muster-lab-gpus/1 17 X", "muster-lab-gpus/2 2 X",
        "muster-lab-gpus/1 2 X,smbios", "muster-lab-gpus/1 2  X", "xmuster-lab-gpus/1 2 X",
        "muster-lab-gpus/1 2 X\n", "muster-lab-gpus/1 99999999999 X"}) {
    CAPTURE(text);
    CHECK_FALSE(standin_from_text(text));
  }
  CHECK(wrong_standin_model("A100-SXM4-80GB").empty());
  CHECK_FALSE(wrong_standin_model(std::string(49, 'x')).empty());
}

TEST_CASE("OEM strings are found among the other structures of SMBIOS", "[standin]") {
  FakeMachine m;
  CHECK(oem_strings(m.files()).empty());
  m.put("/sys/firmware/dmi/tables/DMI", table({"first", kTwo}));
  CHECK(oem_strings(m.files()) == StringList{"first", kTwo});
  m.put("/sys/firmware/dmi/tables/DMI", table({}));
  CHECK(oem_strings(m.files()).empty());
}

TEST_CASE("a table that is cut off anywhere, or lies about its lengths, ends the search", "[standin]") {
  FakeMachine m;
  const std::string whole = table({kTwo});
  for (size_t length = 0; length <= whole.size(); ++length) {
    m.put("/sys/firmware/dmi/tables/DMI", whole.substr(0, length));
    const auto found = oem_strings(m.files());
    CAPTURE(length);
    CHECK((found.empty() || found == StringList{kTwo}));
  }
  for (const char length : {'\0', '\3', '\x7f', '\xff'}) {
    std::string wrong = whole;
    wrong[1] = length;
    m.put("/sys/firmware/dmi/tables/DMI", wrong);
    (void)oem_strings(m.files());
  }
}

TEST_CASE("a guest of the lab has the GPUs that its SMBIOS tells of, and they say SIMULATED GPU",
          "[standin]") {
  FakeMachine m;
  guest(m);
  const auto gpus = gpu_facts(m.files());
  REQUIRE(gpus.size() == 2);
  for (const auto& gpu : gpus) {
    CHECK(gpu.simulated);
    CHECK(gpu.model == "NVIDIA H100 80GB HBM3 (SIMULATED GPU)");
  }
  CHECK(gpus[1].pci == "0000:e1:00.0");
  CHECK(gpus[1].uuid == "GPU-SIMULATED-abcdef01-1");

  HardwareFacts facts;
  facts.gpus = gpus;
  const auto back = hardware_facts_from_json(to_json(facts));
  REQUIRE(back.ok());
  CHECK(simulated_gpus(*back) == 2);
  facts.gpus[0].simulated = facts.gpus[1].simulated = false;
  CHECK_FALSE(to_json(facts)["gpus"][0].contains("simulated"));
}

TEST_CASE("no machine is taken for a guest of the lab unless all of it fits", "[standin]") {
  FakeMachine m;
  guest(m);
  REQUIRE(standin_gpus(m.files()));
  const auto refused = [&](const char* what, const std::string& path, const std::string& content) {
    FakeMachine other;
    guest(other);
    other.put(path, content);
    CAPTURE(what);
    CHECK_FALSE(standin_gpus(other.files()));
    CHECK(simulated_gpus({.gpus = gpu_facts(other.files())}) == 0);
  };
  refused("no hypervisor", "/proc/cpuinfo", "processor : 0\nflags\t\t: fpu sse2 lahf_lm\n");
  refused("a flag that only ends so", "/proc/cpuinfo", "processor : 0\nflags\t\t: fpu xhypervisor\n");
  refused("one processor without", "/proc/cpuinfo", "flags\t\t: hypervisor\nflags\t\t: fpu\n");
  refused("nothing known of processors", "/proc/cpuinfo", "");
  refused("a maker of servers", "/sys/class/dmi/id/sys_vendor", "Supermicro\n");
  refused("a foreign guest", "/sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)\n");
  refused("no string", "/sys/firmware/dmi/tables/DMI", table({}));
  refused("two strings", "/sys/firmware/dmi/tables/DMI", table({kTwo, kTwo}));
  refused("one of another version", "/sys/firmware/dmi/tables/DMI", table({kTwo, "muster-lab-gpus/2 2 X"}));
}

TEST_CASE("where a real GPU is, that one is reported and no stand-in", "[standin]") {
  FakeMachine m;
  guest(m);
  m.put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  m.put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  m.put("/sys/bus/pci/devices/0000:01:00.0/device", "0x2330\n");
  const auto gpus = gpu_facts(m.files());
  REQUIRE(gpus.size() == 1);
  CHECK_FALSE(gpus[0].simulated);
  CHECK_FALSE(standin_gpus(m.files()));
}

TEST_CASE("what loads GPUs is decided in one place", "[standin]") {
  for (const char* load :
       {R"({"kernel":"gpu-gemm"})", R"({"kernel":"gpu-what-comes-next"})", R"({"load":"nccl"})",
        R"({"load":"gpu-training"})", R"({"gpu_memory":true,"peers":[]})"}) {
    CAPTURE(load);
    CHECK(loads_gpus(Json::parse(load)));
  }
  for (const char* none :
       {"null", "[]", "{}", R"({"kernel":"dgemm"})", R"({"kernel":"counters","gpus":true})",
        R"({"load":"training"})", R"({"gpu_memory":false})", R"({"gpu_memory":"true"})",
        R"({"kernel":7,"load":{}})"}) {
    CAPTURE(none);
    CHECK_FALSE(loads_gpus(Json::parse(none)));
  }
}

TEST_CASE("no load of GPUs is measured on stand-ins, and every other measurement is", "[standin]") {
  FakeMachine m;
  guest(m);
  StepContext context = m.context();
  const auto applies = [&](const char* module, const Json& params) {
    const auto said = find_step_module(module)->check(context, params);
    REQUIRE(said.ok());
    if (said->holds == Holds::not_applicable) CHECK(said->diff.find("SIMULATED GPU") != std::string::npos);
    return said->holds != Holds::not_applicable;
  };
  for (const char* kernel : {"gpu-gemm", "gpu-sdc", "gpu-memory", "gpu-copies", "gpu-nccl", "gpu-training"}) {
    CAPTURE(kernel);
    CHECK_FALSE(applies("accept", {{"kernel", kernel}}));
  }
  CHECK_FALSE(applies("accept_mpi", {{"load", "nccl"}}));
  CHECK_FALSE(applies("accept_group", {{"load", "nccl"}}));
  CHECK_FALSE(applies("accept_group_serve", {{"load", "nccl"}}));
  CHECK_FALSE(applies("accept_mpi", {{"load", "gpu-training"}}));
  CHECK_FALSE(applies("accept_rdma", {{"gpu_memory", true}}));
  CHECK(applies("accept", {{"kernel", "dgemm"}}));
  CHECK(applies("accept", {{"kernel", "counters"}, {"options", {{"gpus", true}}}}));
  CHECK(applies("accept_mpi", {{"load", "allreduce"}}));
  CHECK(applies("accept_rdma", {{"gpu_memory", false}}));

  FakeMachine real;
  StepContext there = real.context();
  CHECK(find_step_module("accept")->check(there, {{"kernel", "gpu-gemm"}})->holds == Holds::yes);
}

}  // namespace muster
