// Spec: the operator's desired cluster as a plain value. parse_spec() parses it from YAML text, without I/O.
//
// Every error has file, line, column, the rule and the nearest valid spelling; all errors are reported at
// once; a key that is not implemented is an error, never ignored. Schema: schema/spec.schema.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/names.h"
#include "base/release_sources.h"
#include "base/record.h"
#include "base/result.h"
#include "base/time.h"
#include "controller/power/describe/driver_description.h"
#include "controller/spec/notify_spec.h"

namespace muster {

struct SpecError {
  int line = 0, column = 0;  // 1-based; 0 when the file as a whole is meant
  std::string path;          // "nodes[0].disks.os.match.count"
  std::string message;       // with the rule and "did you mean ..."
  std::string file = {};     // the playbook of the spec that line and column refer to; empty: the spec
  std::string code = {};     // of findings that have one (controller/spec/findings.h): all warnings have
};
std::string to_string(
    const SpecError& error,
    const std::string& file);  // "cluster.yaml:12:5: nodes[0].rol: unknown key, did you mean 'role'?"
std::string to_string(const std::vector<SpecError>& errors, const std::string& file);  // one per line

struct SpecPlace {
  int line = 0, column = 0;  // 1-based; 0: there is none
};
struct Subnet {  // "10.20.0.0/24"
  std::string cidr;
  int mtu = 0;           // 0: default
  double rate_gbps = 0;  // of the nodes' ports, where less than they can do is by design; 0: not declared
  bool declared() const { return !cidr.empty(); }
};
// Priorities (0 to 7) of RoCE traffic on the rails.
struct RailQos {
  std::vector<int> pfc;     // lossless priorities
  std::map<int, int> dscp;  // DSCP (0 to 63) -> priority
  std::map<int, int> ets;   // priority (1 to 7) -> percent of the bandwidth; the others share the rest
  bool declared() const { return !pfc.empty() || !dscp.empty() || !ets.empty(); }
};
// The networks between the GPUs. Rail i of a node is the node's port i, with an address in network i.
struct Rails {
  int count = 0;
  std::string cidr;                // "10.40.{rail}.0/24", or one network that contains those of all rails
  int prefix = 0;                  // of each rail's network, if `cidr` contains them all; 0: it is per rail
  int mtu = 0;                     // 0: default
  double rate_gbps = 0;            // of the ports; 0: not declared
  std::string kind = "ethernet";   // ethernet | infiniband
  std::string gateway;             // "10.40.{rail}.254"; may be empty
  std::vector<std::string> ports;  // empty: each node finds them itself
  RailQos qos;
  bool declared() const { return count > 0; }
};
struct Network {
  Subnet provisioning, bmc, storage;
  std::string dhcp = "managed";  // managed | proxy | external
  std::string controller;        // controller's address; default: the first one of the provisioning network
  std::string gateway;           // may be empty
  bool join_from_any_port = false;  // also from source ports that are not only root's
  // None of these is ever copied from the controller host; undeclared ones are empty.
  std::vector<std::string> dns;          // name servers, numeric, in the order they are queried
  std::vector<std::string> search;       // domains
  std::vector<std::string> ntp;          // time servers: addresses or names
  std::string proxy;                     // "http://proxy.example:3128"
  std::vector<std::string> no_proxy;     // not proxied, like the cluster: names, domains, addresses, networks
  std::map<std::string, AptMirror> apt;  // of images and nodes, by Distribution::id
  std::string storage_port;              // of every node; empty: each node finds it itself
  Rails rails;
  // Not declared() if there is none for the distribution.
  AptMirror apt_of(const std::string& distribution) const;
};
struct UserSpec {
  std::string name;
  std::vector<std::string> keys;
  bool sudo = false;
  int64_t uid = 0;
};
// What a spec depends on of an image recipe of the controller (controller/image/recipe.h).
struct KnownRecipe {
  std::string name;
  std::string distribution = default_distribution().id;
  bool mirror = false;     // it names one
  std::string error = {};  // why it cannot be read; then only its name is known
};
struct ImageSpec {
  std::string name, recipe, kernel = "full";
  std::vector<std::string> bake;
  const Distribution* distribution = nullptr;  // of the recipe; null: not known
};

// Selects disks. Every given field must match; globs in model and serial; size with a tolerance of 2 %. A
// field that is given and empty matches nothing, nor does a selector without any field, so that an unset
// variable in a generated spec does not act as a wildcard.
struct DiskMatch {
  std::optional<std::string> serial, wwid, model, transport;
  std::vector<std::string> serials;
  std::optional<int64_t> size_bytes;
  int count = 1;
};
enum class DiskPolicy { keep, format_if_blank, format };
struct DiskGroup {
  std::string name;
  DiskMatch match;
  DiskPolicy policy = DiskPolicy::keep;
};

// Required hardware. Only declared fields are checked.
struct HardwareSpec {
  std::optional<int> gpus, cpus;     // counts
  std::string gpu_model, cpu_model;  // globs
  int64_t memory_bytes_min = 0;
  std::map<std::string, int> nics;  // {rail: 8} or {any: 1}
  std::string pcie;                 // "5.0 x16"
};
struct PowerSpec {
  std::string driver, address, secret, pin;
  std::string program;    // command
  int cipher_suite = 0;   // ipmi; 0: the driver finds out
  std::string privilege;  // ipmi: "operator"; otherwise administrator level is requested
  DurationMs within = 0;  // manual: time limit for the person
  bool sol = false;       // ipmi: record the node's serial console during runs
  // sakura-phy: the URL of a test double of the API; the image that the provider installs on a machine
  // without an agent, and that image's system ("debian-12"). Empty: the provider never installs.
  std::string api, install_image, install_os;
};
// A running host that muster manages over SSH, never replacing its operating system.
struct AdoptSpec {
  std::string host;  // numeric address or name
  int port = 22;
  std::string user = "root";  // any other user needs sudo without a password
  std::string host_key;       // pin, "SHA256:<base64>"
  bool declared() const { return !host.empty(); }
};
// One of a node's ports, other than the provisioning port, and its configuration.
struct PortSpec {
  std::string port;     // MAC, PCI address or interface name; empty: found by the node itself
  std::string address;  // without prefix
  std::string network;  // "10.40.3.0/24"
  std::string gateway;  // may be empty
  bool declared() const { return !address.empty(); }
};
struct NodeSpec {
  NodeName name;
  std::string role, image;
  std::string rack, network_switch;  // labels of the operator's: what nodes have in common; may be empty
  std::string mac;                   // lower case
  std::string address;               // on the provisioning network, without prefix
  bool address_chosen = false;  // not declared: muster assigned the next free address, in the order of names
  PowerSpec power;              // an adopted node may have none
  AdoptSpec adopt;
  HardwareSpec hardware;
  std::map<std::string, DiskGroup> disks;
  std::map<std::string, std::string> vars;
  // Configured by playbook `networks`; empty on nodes without it and on adopted ones. Rail i has index i.
  std::vector<PortSpec> rails = {};
  PortSpec storage = {};
};
struct StorageSpec {
  std::string name, engine;  // one of controller/engines/
  std::string disks;         // group
  // Engine nfs: the node whose disks these are. Engine moosefs: the master; empty: the first member by name.
  std::string server;
  std::string level = "raid0", fs = "xfs", mount;
  std::string role;  // selects the nodes; empty: every node that has the disk group
  int copies = 2;
  // Engine external: what the site serves and muster only mounts.
  std::string fstype = {}, source = {}, options = {};
  bool writable = false;  // if true, acceptance and the mount's own test may write to it
  // The roles that have the engine's playbook; empty: none has, for example because the user's own playbook
  // does its work; then every node counts as having it.
  std::set<std::string> roles = {};
};
// Returns the minimum number of drives in an md array of this level.
int fewest_drives(const std::string& level);
// True if an array of this level survives the loss of a drive.
bool is_redundant(const std::string& level);
bool takes_part(const StorageSpec& storage, const NodeSpec& node);
// Allows traffic in addition to what playbook `firewall` always allows.
struct FirewallRule {
  std::string from;                // network or address; empty: everywhere
  std::string ports;               // "443", "8000:8100"; empty: all
  std::string proto;               // tcp | udp; empty: tcp if `ports` is given, else every protocol
  std::string comment;             // what `ufw status` shows; may be empty
  std::vector<std::string> roles;  // empty: all
};
// Packages and sysctls that playbook `base` installs and sets.
struct Additions {
  std::vector<std::string> packages;
  std::map<std::string, std::string> sysctls;
};
// How a shipped acceptance profile is applied to virtual machines (docs/lab.md, controller/plan/simulated.h).
struct LabAcceptance {
  double time_scale = 1;                // factor for the profile's seconds and sizes; 0 < scale <= 1
  bool compare = true;                  // false: compare with neither fleet nor history nor derived values
  std::map<std::string, Json> limits;   // "dgemm/gflops" -> min, max, degraded_below, degraded_above
  std::map<std::string, Json> options;  // "training load" -> options of its program
};
// A playbook of the operator's own, embedded in the spec, so that a stored spec needs no further files.
struct OwnPlaybook {
  std::string file;  // path as given in the spec, "site/motd.yaml": for messages
  std::string text;
};
// Drive speeds according to their maker (controller/spec/drive_models.h). 0: not stated.
struct DriveModel {
  std::string model;  // glob for the model name that the kernel reports
  double read_mbps = 0, write_mbps = 0, random_read_iops = 0;
  std::string source;
};
// `acceptance: { gpu: mandatory }`: GPUs must reach the results in a signed report on GPUs of the same model.
struct GpuAcceptance {
  bool mandatory = false;
  std::string results_file, key_file;  // as the spec names them
  std::string results, key;            // their texts, embedded in the spec: a signed report, a public key
};
// `limits.events`: what is taken of agents' events, per node, and how long the live log keeps an event.
struct EventLimits {
  int per_second = 100;
  int64_t bytes_per_day = 64 << 20;
  int64_t size = 2 << 20;  // of one event, bytes
  DurationMs keep = 90 * kDay;
};

struct LimitsSpec {
  int parallel_imaging = 16, parallel_netboot = 16;
  DurationMs power_stagger = 0;
  int failure_budget = -1;
  DurationMs netboot = 20 * kMinute;  // from power-on to the RAM system's agent: a large server takes 10 min
                                      // or more for its firmware's self-test
  DurationMs boot = 20 * kMinute;     // from restart to the installed system's agent
  DurationMs trial = 120 * kMinute;   // a new system that is not committed in time rolls itself back
  DurationMs drain_timeout = kDay;    // time for the jobs of a node to end before it is re-imaged
  int64_t image_write_rate = 0;       // bytes per second for writing an image while jobs run; 0: no cap
  EventLimits events;
};

// How often the images of a rollout are built again, when a window opens.
enum class Rebuild { never, daily, weekly };
inline constexpr Words<Rebuild, 3> kRebuilds = {
    {{Rebuild::never, "never"}, {Rebuild::daily, "daily"}, {Rebuild::weekly, "weekly"}}};
MUSTER_WORDS(Rebuild, kRebuilds)

// `rollout:`: how nodes at work get the newest build of their image, some at a time (docs/rollout.md).
struct RolloutSpec {
  // The declared roles, else those with an image and the playbook `scheduler`; sorted by name.
  std::vector<std::string> roles;
  int max_unavailable = 1;
  int max_unavailable_percent = 0;  // if above 0: percentage of the roles' nodes, used instead of the number
  int canary = 1;
  int failure_budget = 0;
  DurationMs window = 8 * 60 * kMinute;         // no batch begins later than this after the rollout's start
  DurationMs drain_timeout = 2 * 60 * kMinute;  // in place of limits.drain_timeout
  DurationMs trial = 0;                         // in place of limits.trial, which is its default
  std::string acceptance;                       // profile of its runs; empty: the spec's
  Rebuild rebuild = Rebuild::never;
  // The existing approval covers an image that was rebuilt from the same recipe. `rebuild` implies it.
  bool rebuilt_images = false;
};

struct Spec {
  std::string cluster;
  Network network;
  std::map<std::string, UserSpec> users;
  std::map<std::string, ImageSpec> images;
  std::vector<NodeSpec> nodes;  // ranges expanded, sorted by name
  std::vector<StorageSpec> storage;
  std::map<std::string, std::vector<std::string>> roles;  // role -> playbooks
  std::map<std::string, std::string> leads;               // playbook -> role whose first node leads it
  std::string acceptance_profile;
  GpuAcceptance gpu_acceptance;
  std::vector<DriveModel> drive_models;  // acceptance.drives: take precedence over the shipped ones
  LimitsSpec limits;
  std::optional<RolloutSpec> rollout;
  NotifySpec notify;
  std::string time_zone;  // "Europe/Berlin"; may be empty
  std::vector<FirewallRule> firewall;
  Additions additions;                              // of every node
  std::map<std::string, Additions> role_additions;  // in addition; a role's sysctl takes precedence
  bool lab = false;                                 // a `lab:` section: simulated hardware (lab_only.h)
  SpecPlace lab_at, profile_at;                     // places of that section and of acceptance.profile
  std::optional<LabAcceptance> lab_acceptance;      // its part about acceptance
  std::map<std::string, std::string> vars;
  std::vector<OwnPlaybook> own_playbooks;
  std::vector<std::string> playbook_paths;  // not yet embedded (controller/spec/carry.h); never in the store

  const NodeSpec* node(const std::string& name) const;
  bool plays(const NodeSpec& node, const std::string& playbook) const;
  // That of the node's image; null: not known, or the node has none.
  const Distribution* distribution_of(const NodeSpec& node) const;
  // The distribution whose mirror the node gets: its own; where that is not known, the default one.
  const Distribution& mirrored_distribution(const NodeSpec& node) const;
  AptMirror apt_of(const NodeSpec& node) const;
  // The first node by name of the role that is declared to lead the playbook, else of those that have it;
  // null when there is none. Slurm's accounting is led where Slurm is.
  const NodeSpec* leader_of(const std::string& playbook) const;
};
// Fills in what the images have of their recipes; images of other recipes stay as they are.
void use_recipes(Spec& spec, const std::vector<KnownRecipe>& recipes);
// The value of a variable for this node: the node's own, else the cluster's. `node` null: the cluster's.
std::string declared_variable(const Spec& spec, const NodeSpec* node, const std::string& name,
                              const std::string& otherwise = "");
// The host key of a node whose key is unknown. It matches no key: connections that check it fail.
std::string no_host_key();
// True for a node of a spec that was generated from the hosts themselves (controller/hosts/hosts_spec.h).
bool is_generated(const NodeSpec& node);
// Its power can be switched, by neither its own system nor a person: it can be reset when it hangs.
bool is_switched(const NodeSpec& node);
// Returns what switches it; Switch::bmc for a node without power control.
Switch switched_by(const NodeSpec& node);

// "gpu[01-03]" -> gpu01, gpu02, gpu03; "gpu[01-03,07]" adds gpu07; invalid on malformed or reversed ranges,
// or more than 4096 names. In addresses and MACs of the same node entry, {n}, {n+10}, {n-1} stand for the
// number (in a MAC as two hexadecimal digits); a list there has one value per name, in this order.
Result<std::vector<std::string>> expand_range(const std::string& pattern);
// "3.8 TB", "512 GiB", "2 TiB" -> bytes (decimal and binary units).
Result<int64_t> parse_size(const std::string& text);
bool glob_match(const std::string& pattern, const std::string& text);
// The nearest of `candidates` within an edit distance of 3 (less for short words), or "".
std::string nearest_spelling(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace muster
