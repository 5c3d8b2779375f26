#include <iterator>

#include "controller/api/handlers.h"

namespace muster::api {
namespace {

// All routes of the controller's HTTP API.
constexpr Route kRoutes[] = {
    // the desired state
    {"PUT", "/v1/spec", Role::operators, put_spec,
     "store cluster.yaml (the body) as a new revision; ?dry=1 only checks"},
    {"GET", "/v1/spec", Role::operators, get_spec, "the newest revision, or ?rev=N"},
    {"GET", "/v1/specs", Role::operators, list_specs, "all revisions, without their text"},
    {"GET", "/v1/spec/diff", Role::operators, diff_spec,
     "?from=N&to=M as a unified diff; `to` defaults to the newest"},
    {"POST", "/v1/spec/preview", Role::operators, preview_spec,
     "{spec, file, live, nodes, force, reimage, through_ram} -> what `muster up` would do with that text, or "
     "without "
     "one with the stored spec; stores, builds and requests nothing of nodes, "
     "unless `live`: then agents check their steps"},
    {"GET", "/v1/secrets", Role::operators, list_secrets, "names of the secrets, never their values"},
    {"PUT", "/v1/secrets/{name}", Role::operators, put_secret, "the body is the value"},
    {"DELETE", "/v1/secrets/{name}", Role::operators, delete_secret, "deletes a secret"},
    {"GET", "/v1/replace/{secret}", Role::operators, get_replacement,
     "token, munge-key, master-key, ca -> {id, since, step, effects, left, apply}: what the next step of its "
     "replacement does, and which nodes still have the old one; ?without=NODE,... for ca"},
    {"POST", "/v1/replace/{secret}", Role::operators, replace_secret,
     "{id, step} as GET showed them, through the socket only: does that step; conflict if it is another now"},
    // plan and run
    {"POST", "/v1/plan", Role::operators, make_plan,
     "{kind, nodes, force} -> digest, text and, unless ?brief=1, the plan; or refusals"},
    {"GET", "/v1/plans/{digest}", Role::operators, get_plan,
     "a stored plan; a unique prefix of its digest is enough"},
    {"POST", "/v1/plans/{digest}/approve", Role::operators, approve_plan,
     "starts a run; conflict if the cluster has changed"},
    {"GET", "/v1/runs", Role::operators, list_runs, "all runs, newest first"},
    {"GET", "/v1/runs/{run}", Role::operators, get_run,
     "one run with its actions and times; 0 is the newest"},
    {"POST", "/v1/runs/{run}/cancel", Role::operators, cancel_run,
     "cancels the run: no more actions are started"},
    {"GET", "/v1/rollout", Role::operators, get_rollout,
     "progress, nodes left out and why; state \"none\" before the first approval"},
    {"POST", "/v1/rollout/plan", Role::operators, plan_rollout,
     "{canaries: [node]} -> what would be approved, the batches, and why each node waits; changes nothing"},
    {"POST", "/v1/rollout/approve", Role::operators, approve_rollout,
     "{digest, canaries: [node]}: the approval that the plan showed; conflict if the plan has changed"},
    {"POST", "/v1/rollout/start", Role::operators, start_rollout,
     "{late_ms (since it was due), by_timer}: opens a window; denied without a valid approval; on conflict "
     "and unavailable a retry may succeed"},
    {"POST", "/v1/rollout/pause", Role::operators, pause_rollout,
     "no batch is started after the current one"},
    {"POST", "/v1/rollout/resume", Role::operators, resume_rollout, ""},
    {"POST", "/v1/rollout/skip", Role::operators, skip_node,
     "{node, reason, until}: leaves a node out of rollouts; until 0: until it is unskipped"},
    {"POST", "/v1/rollout/unskip", Role::operators, unskip_node, "{node}: ends a skip"},
    {"GET", "/v1/rollout/report", Role::operators, report_rollout,
     "?id=N: what changed, phase times, nodes left out, failures; default: the newest"},
    // who is to know
    {"GET", "/v1/notices", Role::operators, get_notices,
     "open causes, and per receiver what waits and why it was not delivered"},
    {"POST", "/v1/notices/test", Role::operators, test_notices,
     "{receiver}: sends a test to one receiver, or all, and returns what each answered"},
    {"POST", "/v1/causes/{cause}/ack", Role::operators, acknowledge_cause,
     "{reason}: no more notices of this cause until it is over; four digits of its id are enough"},
    // what is
    {"GET", "/v1/status", Role::operators, get_status,
     "controller, run, every node with phase and progress, and the causes of all that is wrong"},
    {"GET", "/v1/nodes", Role::operators, list_nodes, "nodes of the spec and their state"},
    {"POST", "/v1/nodes/discover", Role::operators, set_discovery,
     "{on, for_ms}: allows undeclared machines to register"},
    {"POST", "/v1/nodes/admit", Role::operators, admit_machine,
     "{name, like, mac, power_address, address}: declares an undeclared machine as a node in a new spec "
     "revision"},
    {"POST", "/v1/nodes/adopt", Role::operators, adopt_hosts,
     "{hosts: [{name, like, host, port, user, host_key, address, joined, facts}]} -> one plan; repeated with "
     "{digest} of that plan, declares the nodes -> {tokens, url, pin}"},
    {"GET", "/v1/nodes/{node}/adopt", Role::operators, adoption_of,
     "the host's SSH address from the spec, and the CA pin for its agent"},
    {"GET", "/v1/agent", Role::operators, get_agent, "the agent program for adopted hosts"},
    {"GET", "/v1/nodes/{node}", Role::operators, get_node, "one node with its last inventory"},
    {"DELETE", "/v1/nodes/{node}", Role::operators, remove_node,
     "removes a node that the spec no longer declares"},
    {"GET", "/v1/nodes/{node}/why", Role::operators, why_node,
     "what the node waits for, until when, what happens then, and `next`: what to do about it; the cause of "
     "what is wrong with it"},
    {"GET", "/v1/nodes/{node}/logs", Role::operators, node_logs,
     "?after=SEQ&limit=N&since=MS&run=N; &newest=1: the last ones, not the first"},
    {"POST", "/v1/nodes/{node}/quarantine", Role::operators, quarantine_node, "{reason}, or {release: true}"},
    {"GET", "/v1/events/list", Role::operators, node_logs,
     "events of all nodes as one page, with the same parameters"},
    {"GET", "/v1/events", Role::operators, follow_events,
     "server-sent events; Last-Event-ID or ?after=SEQ resumes"},
    {"GET", "/v1/report", Role::operators, get_report,
     "?run=N&format=html|json|junit|text|flat; json is signed"},
    {"GET", "/v1/report/key", Role::operators, get_report_key,
     "public key that reports are signed with, PEM"},
    // acts
    {"GET", "/v1/images", Role::operators, list_images, "images that are built, and those the spec needs"},
    {"POST", "/v1/images/build", Role::operators, build_image,
     "{name, rebuild, bake, recipe}: progress as a stream of JSON lines"},
    {"POST", "/v1/images/import", Role::operators, import_image,
     "{path} on the controller host, through the socket only; progress as for build"},
    {"POST", "/v1/images/export", Role::operators, export_image, "{name, path}; otherwise as for import"},
    {"GET", "/v1/power/{node}/state", Role::operators, power_state, "queries the BMC"},
    {"POST", "/v1/power/{node}/on", Role::operators, power_on, ""},
    {"POST", "/v1/power/{node}/off", Role::operators, power_off, ""},
    {"POST", "/v1/power/{node}/shut-down", Role::operators, power_shut_down,
     "shuts down the system; cuts the power if that fails"},
    {"POST", "/v1/power/{node}/cycle", Role::operators, power_cycle,
     "powers the node off, then on; it boots from disk"},
    {"POST", "/v1/power/{node}/network-once", Role::operators, power_network_once,
     "makes only the next boot a network boot; does not change the power"},
    {"POST", "/v1/power/{node}/done", Role::operators, power_done,
     "confirms that the run's pending manual task was done (only for nodes with power driver `manual`)"},
    {"GET", "/v1/power/{node}/describe", Role::operators, power_describe,
     "what the power driver found out about the machine"},
    {"POST", "/v1/doctor", Role::operators, run_doctor,
     "what would stop a first bring-up of cluster.yaml (the body, or the newest revision): checks with their "
     "findings, and what could not be looked at; changes nothing"},
    {"GET", "/v1/version", Role::operators, get_version, ""},
    {"GET", "/metrics", Role::operators, get_metrics,
     "what Prometheus scrapes (docs/metrics.md); `--metrics` serves it without a token, too"},
    {"POST", "/v1/backup", Role::operators, make_backup, "{path}: writes a consistent copy of the database"},
    {"POST", "/v1/certificates/{serial}/revoke", Role::operators, revoke_certificate,
     "revokes the certificate and all others that its node has"},
    // agents
    {"POST", "/agent/v1/join", Role::joiners, agent_join, "one-time token and CSR -> certificate"},
    {"POST", "/agent/v1/renew", Role::agents, agent_renew,
     "{csr_pem} -> certificate, once half of the old one's lifetime is over, or once after the CAs changed"},
    {"GET", "/agent/v1/orders", Role::agents, agent_orders, "long poll"},
    {"POST", "/agent/v1/events", Role::agents, agent_events,
     "events with sequence numbers -> the number acknowledged"},
    {"GET", "/agent/v1/files/{path*}", Role::agents, agent_files, "manifests and binaries named in orders"},
    // machines that boot
    {"GET", "/boot.ipxe", Role::machines, boot_chain, "chains to the machine's own script"},
    {"GET", "/boot/{script}", Role::machines, boot_script,
     "MAC.ipxe: boots the RAM system while a power-on of the node is pending, else the disk"},
    {"GET", "/ram/{path*}", Role::machines, boot_ram_file, "kernel and initramfs of the RAM system"},
    {"GET", "/images/{path*}", Role::machines, boot_image_file, "manifest and frames; checked by digest"},
    {"GET", "/programs/{digest}", Role::machines, boot_program,
     "agent and acceptance programs; checked by digest"},
};

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> table(std::begin(kRoutes), std::end(kRoutes));
  return table;
}

}  // namespace muster::api
