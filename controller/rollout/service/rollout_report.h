// The report of a rollout, from its record and the journals of its runs. Thread: that of the archive.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "controller/image/package_list.h"
#include "controller/ports/store.h"
#include "controller/rollout/rollout_record.h"

namespace muster {

using PackagesOf = std::function<Result<PackageList>(const std::string& image_digest)>;

// record_shown(), and in addition images: [{from, to, nodes, packages}]: packages as from package_changes(),
// null if they are not recorded; nodes: [{node, run, batch, result, reason, phases: [{phase, ms,
// before_ms}]}]: before_ms is what the phase took in the last re-image of the node before this rollout, null
// if there was none; left: {node: reason}.
Result<Json> rollout_report(const rollout::Record& record, RunArchive& archive, const PackagesOf& packages);

}  // namespace muster
