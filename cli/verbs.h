// The verbs of the `muster` command, one file each. Thread: the main thread.
#pragma once

namespace CLI {
class App;
}

namespace muster::cli {

struct Context;

void add_up(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_approve(CLI::App& app, Context& context);
void add_reimage(CLI::App& app, Context& context);
void add_rollback(CLI::App& app, Context& context);
void add_rollout(CLI::App& app, Context& context);
void add_accept(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_watch(CLI::App& app, Context& context);
void add_runs(CLI::App& app, Context& context);
void add_cancel(CLI::App& app, Context& context);
void add_why(CLI::App& app, Context& context);
void add_logs(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_report_import(CLI::App& report, Context& context);  // muster report import
void add_power(CLI::App& app, Context& context);
void add_node(CLI::App& app, Context& context);
void add_image(CLI::App& app, Context& context);
void add_spec(CLI::App& app, Context& context);
void add_secret(CLI::App& app, Context& context);
void add_drain(CLI::App& app, Context& context);
void add_sim(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);
void add_backup(CLI::App& app, Context& context);

}  // namespace muster::cli
