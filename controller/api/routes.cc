#include <iterator>

#include "controller/api/handlers.h"

namespace muster::api {

namespace {

// The whole HTTP surface of the controller. A route that is not here does not exist.
constexpr Route kRoutes[] = {
    // what should be
    {"PUT", "/v1/spec", Who::operators, put_spec,
     "store cluster.yaml (the body) as a new revision; ?dry=1 only checks"},
    {"GET", "/v1/spec", Who::operators, get_spec, "the newest revision, or ?rev=N"},
    {"GET", "/v1/specs", Who::operators, list_specs, "all revisions, without text"},
    {"GET", "/v1/spec/diff", Who::operators, diff_spec,
     "?from=N&to=M as a unified diff; to defaults to the newest"},
    {"GET", "/v1/secrets", Who::operators, list_secrets, "names, never values"},
    {"PUT", "/v1/secrets/{name}", Who::operators, put_secret, "the body is the value"},
    {"DELETE", "/v1/secrets/{name}", Who::operators, delete_secret, "forget a secret"},
    // plan and run
    {"POST", "/v1/plan", Who::operators, make_plan,
     "{kind, nodes, force} -> digest, text, and without ?brief=1 the plan; or refusals"},
    {"GET", "/v1/plans/{digest}", Who::operators, get_plan,
     "a stored plan; a unique prefix of its digest is enough"},
    {"POST", "/v1/plans/{digest}/approve", Who::operators, approve_plan,
     "starts a run; conflict when the world changed"},
    {"GET", "/v1/runs", Who::operators, list_runs, "all runs, newest first"},
    {"GET", "/v1/runs/{run}", Who::operators, get_run, "one run with its actions and times; 0 is the newest"},
    {"POST", "/v1/runs/{run}/cancel", Who::operators, cancel_run, "starts no more actions"},
    // what is
    {"GET", "/v1/status", Who::operators, get_status,
     "controller, run, and every node with phase and progress"},
    {"GET", "/v1/nodes", Who::operators, list_nodes, "nodes of the spec and their state"},
    {"POST", "/v1/nodes/discover", Who::operators, set_discovery,
     "{on, for_ms}: lets undeclared machines report themselves"},
    {"POST", "/v1/nodes/admit", Who::operators, admit_machine,
     "{name, like, mac, power_address, address}: declares such a machine as a node of a new revision"},
    {"POST", "/v1/nodes/adopt", Who::operators, adopt_hosts,
     "{hosts: [{name, like, host, port, user, host_key, address, joined, facts}]} -> one plan; with its "
     "{digest} the nodes are declared: {tokens, url, pin}"},
    {"GET", "/v1/nodes/{node}/adopt", Who::operators, adoption_of,
     "how the host is reached, as declared, and the CA pin its agent needs"},
    {"GET", "/v1/agent", Who::operators, get_agent, "the agent program that goes onto adopted hosts"},
    {"GET", "/v1/nodes/{node}", Who::operators, get_node, "one node with its last inventory"},
    {"DELETE", "/v1/nodes/{node}", Who::operators, remove_node,
     "remove a node that the spec no longer declares"},
    {"GET", "/v1/nodes/{node}/why", Who::operators, why_node,
     "what it waits for, until when, and what happens then"},
    {"GET", "/v1/nodes/{node}/logs", Who::operators, node_logs, "?after=SEQ&limit=N"},
    {"POST", "/v1/nodes/{node}/quarantine", Who::operators, quarantine_node, "{reason}, or {release: true}"},
    {"GET", "/v1/events/list", Who::operators, node_logs, "the same as one page: ?after=SEQ&limit=N"},
    {"GET", "/v1/events", Who::operators, follow_events,
     "server-sent events; Last-Event-ID or ?after=SEQ resumes"},
    {"GET", "/v1/report", Who::operators, get_report,
     "?run=N&format=html|json|junit|text|flat; json is signed"},
    {"GET", "/v1/report/key", Who::operators, get_report_key, "public key that reports are signed with, PEM"},
    // acts
    {"GET", "/v1/images", Who::operators, list_images, "images that are built, and those the spec needs"},
    {"POST", "/v1/images/build", Who::operators, build_image,
     "{name, rebuild, bake, recipe}: progress as a stream of JSON lines"},
    {"POST", "/v1/images/import", Who::operators, import_image,
     "{path} on this machine, through the socket only; progress as for build"},
    {"POST", "/v1/images/export", Who::operators, export_image, "{name, path}: likewise"},
    {"GET", "/v1/power/{node}/state", Who::operators, power_state, "queries the BMC"},
    {"POST", "/v1/power/{node}/on", Who::operators, power_on, ""},
    {"POST", "/v1/power/{node}/off", Who::operators, power_off, ""},
    {"POST", "/v1/power/{node}/shut-down", Who::operators, power_shut_down,
     "requests a shutdown of its system first"},
    {"POST", "/v1/power/{node}/cycle", Who::operators, power_cycle, "off, then on; boots from disk"},
    {"POST", "/v1/power/{node}/network-once", Who::operators, power_network_once,
     "the next boot only: from the network; switches nothing"},
    {"POST", "/v1/power/{node}/done", Who::operators, power_done,
     "a person did what the run needs done there (driver manual)"},
    {"GET", "/v1/power/{node}/describe", Who::operators, power_describe, "what the driver found"},
    {"GET", "/v1/version", Who::operators, get_version, ""},
    {"POST", "/v1/backup", Who::operators, make_backup, "{path}: a consistent copy of the database"},
    {"POST", "/v1/certificates/{serial}/revoke", Who::operators, revoke_certificate,
     "refuse an agent from now on"},
    // agents
    {"POST", "/agent/v1/join", Who::joiners, agent_join, "one-time token and CSR -> certificate"},
    {"POST", "/agent/v1/renew", Who::agents, agent_renew,
     "{csr_pem} -> certificate, once half of the old one's life is over"},
    {"GET", "/agent/v1/orders", Who::agents, agent_orders, "long poll"},
    {"POST", "/agent/v1/events", Who::agents, agent_events, "numbered, acknowledged"},
    {"GET", "/agent/v1/files/{path*}", Who::agents, agent_files, "manifests and binaries that orders name"},
    // machines that boot
    {"GET", "/boot.ipxe", Who::machines, boot_chain, "chains to the machine's own script"},
    {"GET", "/boot/{script}", Who::machines, boot_script,
     "MAC.ipxe: RAM system while its power-on is pending, else disk"},
    {"GET", "/ram/{path*}", Who::machines, boot_ram_file, "kernel and initramfs of the RAM system"},
    {"GET", "/images/{path*}", Who::machines, boot_image_file, "manifest and frames; checked by digest"},
    {"GET", "/programs/{digest}", Who::machines, boot_program, "agent and acceptance programs; likewise"},
};

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> table(std::begin(kRoutes), std::end(kRoutes));
  return table;
}

}  // namespace muster::api
