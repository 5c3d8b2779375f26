// /etc/cdi/nvidia.json of machines made by hand.
#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {
using tests::FakeMachine;
}

TEST_CASE("cdi names the devices and libraries that are there, and reads them back", "[standin][steps]") {
  FakeMachine m;
  m.put("/run/systemd/system/x", "");
  for (const char* path :
       {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/lib/a/libcuda.so.1", "/lib/a/libnvidia-ml.so.1"})
    m.put(path, "");
  const std::string cuda = "\tlibcuda.so.1 (libc6,x86-64) => /lib/a/libcuda.so.1\n";
  const std::string nvml =
      "\tlibnvidia-ml.so.1 (libc6) => /lib/32/libnvidia-ml.so.1\n\tlibnvidia-ml.so.1 (libc6,x86-64) => "
      "/lib/a/libnvidia-ml.so.1\n";
  const std::string other = "\tlibc.so.6 (libc6,x86-64) => /lib/a/libc.so.6\n";
  m.put("/ldconfig", "4 libs found\n" + cuda + nvml + other);
  StepContext context = m.context();
  const StepModule& cdi = *find_step_module("cdi");
  REQUIRE(cdi.apply(context, {{"gpus", 2}}).ok());
  CHECK(cdi.verify(context, {{"gpus", 2}}).ok());
  const Json spec = Json::parse(m.get("/etc/cdi/nvidia.json"));
  CHECK(spec["kind"] == "nvidia.com/gpu");
  REQUIRE(spec["devices"].size() == 3);
  CHECK(spec["devices"][1]["name"] == "1");
  CHECK(spec["devices"][2]["name"] == "all");
  CHECK(spec["devices"][2]["containerEdits"]["deviceNodes"].size() == 2);
  const Json& edits = spec["containerEdits"];
  CHECK(edits["deviceNodes"] == Json::parse(R"([{"path": "/dev/nvidiactl"}])"));
  REQUIRE(edits["mounts"].size() == 2);
  CHECK(edits["mounts"][1]["hostPath"] == "/lib/a/libnvidia-ml.so.1");

  CHECK(cdi.check(context, {{"gpus", 3}}).error().code == Code::not_found);  // a GPU is gone
  CHECK(cdi.check(context, {{"gpus", 0}}).error().code == Code::invalid);
  m.broken = {"ldconfig"};
  CHECK(cdi.check(context, {{"gpus", 2}}).error().code == Code::failed);
  m.broken.clear();
  m.put("/ldconfig", nvml);
  CHECK(cdi.check(context, {{"gpus", 2}}).error().code == Code::not_found);  // no CUDA
  m.put("/ldconfig", cuda + nvml);
  REQUIRE(m.files().remove("/lib/a/libcuda.so.1").ok());
  CHECK_FALSE(cdi.verify(context, {{"gpus", 2}}).ok());
}

}  // namespace muster
