// The handlers of the routes in controller/api/routes.cc, which describes input and response, by topic.
#pragma once

#include "controller/api/api.h"
#include "controller/plan/planner.h"

namespace muster::api {

void put_spec(const CallPtr&);
void get_spec(const CallPtr&);
void list_specs(const CallPtr&);
void diff_spec(const CallPtr&);
void preview_spec(const CallPtr&);
void make_plan(const CallPtr&);
void get_plan(const CallPtr&);
void approve_plan(const CallPtr&);
void list_runs(const CallPtr&);
void get_run(const CallPtr&);
void cancel_run(const CallPtr&);
// planned_json(): a response about a plan without the plan itself; body_with_plan(): a body that includes it.
Json planned_json(const Plan& plan, const std::string& digest);
std::string body_with_plan(const Json& others, const Plan& plan);
Json refusals_json(const std::vector<Refusal>& refusals);  // the body of a 403
// Returns who sent the request, and with what: the body's `by`.
std::string requested_by(const Call& call);
void get_rollout(const CallPtr&);
void plan_rollout(const CallPtr&);
void approve_rollout(const CallPtr&);
void start_rollout(const CallPtr&);
void pause_rollout(const CallPtr&);
void resume_rollout(const CallPtr&);
void skip_node(const CallPtr&);
void unskip_node(const CallPtr&);
void report_rollout(const CallPtr&);
void get_notices(const CallPtr&);
void test_notices(const CallPtr&);
void acknowledge_cause(const CallPtr&);
void set_discovery(const CallPtr&);
void admit_machine(const CallPtr&);
Json undeclared_machines(Services& services);
// If neither the spec nor the store has the node, false, and the response is not_found with the nearest name.
bool has_node(const CallPtr&, const NodeName&);
void adoption_of(const CallPtr&);
void adopt_hosts(const CallPtr&);
void get_agent(const CallPtr&);
void get_status(const CallPtr&);
void list_nodes(const CallPtr&);
void get_node(const CallPtr&);
void why_node(const CallPtr&);
void node_logs(const CallPtr&);
void quarantine_node(const CallPtr&);
void remove_node(const CallPtr&);
void follow_events(const CallPtr&);
void get_report(const CallPtr&);
void get_report_key(const CallPtr&);
void list_images(const CallPtr&);
void build_image(const CallPtr&);
void import_image(const CallPtr&);
void export_image(const CallPtr&);
void power_state(const CallPtr&);
void power_on(const CallPtr&);
void power_off(const CallPtr&);
void power_shut_down(const CallPtr&);
void power_cycle(const CallPtr&);
void power_network_once(const CallPtr&);
void power_done(const CallPtr&);
void power_describe(const CallPtr&);
void run_doctor(const CallPtr&);
void get_version(const CallPtr&);
void get_metrics(const CallPtr&);
void make_backup(const CallPtr&);
void revoke_certificate(const CallPtr&);
void list_secrets(const CallPtr&);
void put_secret(const CallPtr&);
void delete_secret(const CallPtr&);
void get_replacement(const CallPtr&);
void replace_secret(const CallPtr&);
void agent_join(const CallPtr&);
void agent_renew(const CallPtr&);
void agent_orders(const CallPtr&);
void agent_events(const CallPtr&);
void agent_files(const CallPtr&);
void boot_chain(const CallPtr&);
void boot_script(const CallPtr&);
void boot_ram_file(const CallPtr&);
void boot_image_file(const CallPtr&);
void boot_program(const CallPtr&);
// Sends the file at `path`, or responds with 404.
void send_file(const CallPtr& call, const std::string& path);
// Sends `name` below `folder`; 404 if it is not a regular file, contains "..", or is a link to the outside.
void send_below(const CallPtr& call, const std::string& folder, const std::string& name);

}  // namespace muster::api
