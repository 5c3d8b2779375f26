// Follows a run: server-sent events signal changes, and the status is fetched after each event and at least
// once a second; without the event stream it is only polled. Waits while the controller restarts.
#pragma once

#include "cli/cli_context.h"
#include "cli/shown_nodes.h"
#include "controller/report/report.h"

namespace muster::cli {

// Draws the live table until the run has ended, then returns the content of /v1/runs/ID.
Result<Json> follow_run(Context& context, int64_t run);
// Follows until interrupted; with `until_idle`, until the current run ends.
Status follow_status(Context& context, bool until_idle, const NodeFilter& filter = {});
int exit_for_run(const Json& run);
// The same for an acceptance with its report: kPartial if nothing failed and each node was held only by
// checks that could not run.
int exit_for_run(const Json& run, const Report& report);

}  // namespace muster::cli
