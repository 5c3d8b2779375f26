// Whether an installed Slurm can use the data that an earlier one left in a directory: slurmctld's queue, or
// the accounting database. A daemon that cannot ends at each start.
//
// The answer comes from what the daemons wrote: `clustername` and `last_config_lite` of slurmctld,
// `mariadb_upgrade_info` of MariaDB, and kSlurmdbdMark. Stateless.
#pragma once

#include <string>

#include "agent/core/step.h"

namespace muster::steps {

// Beside the database's files: what `slurmdbd -V` printed when it last ran on them (playbook accounting).
inline constexpr const char* kSlurmdbdMark = "muster-slurmdbd";

// Why `program` (slurmctld or slurmdbd) must not be started on `directory`, and what to do; "" if it may.
Result<std::string> slurm_refusal(StepContext& context, const std::string& program,
                                  const std::string& directory, const std::string& cluster);

}  // namespace muster::steps
