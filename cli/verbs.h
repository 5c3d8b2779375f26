// The verbs of the `muster` command, one file each. Thread: the main thread.
#pragma once

#include "base/command_line.h"

namespace muster::cli {

struct Context;

// The program's own options, and all of its verbs. `app` is new, and is as old as they are.
void add_program(Verb& app, Context& context);

void add_help(Verb& app, Context& context);
void add_completion(Verb& app, Context& context);
void add_up(Verb& app, Context& context);
void add_doctor(Verb& app, Context& context);
void add_plan(Verb& app, Context& context);
void add_approve(Verb& app, Context& context);
void add_reimage(Verb& app, Context& context);
void add_rollback(Verb& app, Context& context);
void add_rollout(Verb& app, Context& context);
void add_accept(Verb& app, Context& context);
void add_status(Verb& app, Context& context);
void add_watch(Verb& app, Context& context);
void add_runs(Verb& app, Context& context);
void add_cancel(Verb& app, Context& context);
void add_why(Verb& app, Context& context);
void add_logs(Verb& app, Context& context);
void add_report(Verb& app, Context& context);
void add_report_import(Verb& report, Context& context);  // muster report import
void add_power(Verb& app, Context& context);
void add_node(Verb& app, Context& context);
void add_image(Verb& app, Context& context);
void add_spec(Verb& app, Context& context);
void add_spec_revisions(Verb& spec, Context& context);  // muster spec diff, history, rollback
void add_spec_explain(Verb& spec, Context& context);    // muster spec explain
void add_notify(Verb& app, Context& context);
void add_ack(Verb& app, Context& context);
void add_secret(Verb& app, Context& context);
void add_replace(Verb& app, Context& context);
void add_drain(Verb& app, Context& context);
void add_sim(Verb& app, Context& context);
void add_version(Verb& app, Context& context);
void add_backup(Verb& app, Context& context);
// The virtual cluster (lab/lab.h); needs no controller. `json` is the program's global --json (each lab verb
// also takes --json itself); `exit` is set to the exit code: 0 done, 1 failed, 2 bad usage or not found, 4
// refused. Both must outlive the app's parse. `lab ssh` replaces the process.
void add_lab_verb(Verb& app, const bool& json, int& exit);

}  // namespace muster::cli
