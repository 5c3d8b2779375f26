// Slurm's kept data under another name or image.
#include "agent/core/step.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

FIELD_CASE("cluster-renamed") {
  FakeMachine machine;
  StepContext context = machine.context();
  machine.put("/run/systemd/system/x", "");
  machine.put("/versions/slurmctld", "slurm-wlm 24.11.5\n");
  machine.put("/state/slurmctld/clustername", field_input("cluster-renamed", "clustername"));
  machine.put("/state/slurmctld/job_state", "17");
  machine.units["slurmctld.service"].active = true;
  Json params = {{"path", "/var/lib/slurm/slurmctld"},
                 {"name", "slurmctld"},
                 {"services", {"slurmctld"}},
                 {"slurm", "slurmctld"},
                 {"cluster", "lab-2"}};
  const StepModule& kept = *find_step_module("kept_directory");
  CHECK(kept.apply(context, params).error().code == Code::conflict);
  CHECK(machine.units["slurmctld.service"].active);
  CHECK(machine.get("/state/slurmctld/job_state") == "17");
  params["cluster"] = "lab";
  REQUIRE(kept.apply(context, params).ok());
  CHECK(machine.get("/state/slurmctld/job_state") == "17");
}

}  // namespace muster::tests
