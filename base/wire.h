// Messages between controller and agent: versioned value types and their JSON forms, nothing else.
//
//   POST /agent/v1/join      JoinRequest -> JoinReply. Server-authenticated TLS (CA pinned by digest),
//                            one-time token. The same token with the same public key gets the same
//                            answer again, so a lost reply is harmless; with another key it is rejected.
//   GET  /agent/v1/orders?boot=BOOT_ID&have=ID,ID&trial=1
//                            mutual TLS; long poll (25 s) -> PollReply. `trial` is set during a trial boot.
//   POST /agent/v1/events    mutual TLS; EventBatch -> {"ack": SEQ}. Events are numbered from 1 per (node,
//                            boot_id, incarnation); the controller drops numbers it has seen, the agent sends
//                            unacknowledged ones again.
//   GET  /agent/v1/files/NAME  mutual TLS; manifests and binaries that orders name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/disk_id.h"
#include "base/names.h"
#include "base/record.h"
#include "base/time.h"

namespace muster::wire {

constexpr int kVersion = 1;

enum class Mode { ram, installed, adopted };
inline constexpr Words<Mode, 3> kModeWords = {
    {{Mode::ram, "ram"}, {Mode::installed, "installed"}, {Mode::adopted, "adopted"}}};
MUSTER_WORDS(Mode, kModeWords)
std::string_view to_string(Mode mode);
Result<Mode> mode_from_string(std::string_view word);

struct JoinRequest {
  int version = kVersion;
  std::string node;   // name claimed; the token decides
  std::string token;  // secret, one time
  std::string csr_pem;
  std::string boot_id;  // /proc/sys/kernel/random/boot_id
  Mode mode = Mode::ram;
  std::string product_uuid;  // SMBIOS, lower case; empty when unreadable
  std::vector<std::string> macs;
};
struct JoinReply {
  std::string node;
  std::string certificate_pem;
  std::string ca_pem;
};

enum class OrderKind {
  unknown,     // a kind of a later version: the agent rejects this order and accepts the others
  inventory,   // inventory of the hardware; in any mode
  image,       // write the OS disk; mode ram
  boot_disk,   // restart from the OS disk; mode ram
  steps,       // carry out playbook steps; mode installed
  check,       // measure; changes no configuration
  reboot,      // restart; mode installed
  power_off,   // shut down
  kexec,       // hand over to the RAM system; mode installed
  write_slot,  // write the root slot that is not in use; mode installed
  boot_slot,   // restart from that slot, once; mode installed
};
// "" for `unknown`, which has no name.
std::string_view to_string(OrderKind kind);
OrderKind order_kind_from_string(std::string_view word);

// One unit of work that an agent carries out locally. `id` identifies the attempt and never changes its
// meaning: an agent that has finished this id only sends the result again.
struct WorkOrder {
  OrderId id;  // "<run>-<its start, hexadecimal>/<action>#<attempt>"
  OrderKind kind = OrderKind::unknown;
  Json params = Json::object();
  DurationMs deadline = 10 * kMinute;  // from receipt; the agent ends the work with Code::timeout after it
  std::string unknown_kind = {};       // the kind's name as received, if it is unknown
  // Of an order that makes the node leave its system: a list of steps whose checks must hold right before, or
  // nothing is done. None of them is applied. Read with the order, not before: a step of a later version must
  // not keep the agent from its other orders. Agents of earlier versions ignore them.
  Json preconditions = Json();
  // Values that the controller put in for references ("secret:NAME"): the agent keeps them out of all that it
  // reports of the order (SecretMask). Agents of earlier versions ignore them.
  std::vector<std::string> secrets = {};

  std::string kind_word() const {
    return kind == OrderKind::unknown ? unknown_kind : std::string(to_string(kind));
  }
};

// In the query of requests for orders and of renewals: which CAs the agent trusts (agent/link/http_link.h).
inline constexpr const char* kTrusts = "ca";

struct PollReply {
  std::vector<WorkOrder> orders;       // offered to the agent, which does not have them yet
  std::vector<std::string> withdrawn;  // ids of orders to drop; a running one stops at its next safe point
  bool renew = false;                  // the agent is to get a new certificate, and the CAs to trust, at once
};

// Kinds and their data. An event of any other kind is dropped, counted and acknowledged: a new kind is added
// to the controller first (base/event_kind.h).
//   hello     {mode, boot_id, image_digest, agent_version, slot, trial,    first event of every agent process
//             loader_skipped?}
//   started   {}                                                            the agent began the order
//   progress  {done, total, unit, text}                                     numbers are optional
//   step      {step, name, status: already|applied|measured|failed|not_applicable|not_looked_at|incomplete,
//             message, ms, diff?, result?}
//   log       {level, text}
//   finished  {ok, code, message, result}                                   once per order
//             Refused because of a precondition: `result` is {precondition: ID of the step}. That may follow
//             a first report of success that took long to be acknowledged.
struct Event {
  uint64_t seq = 0;
  TimeMs time = 0;  // the agent's clock; for display only
  OrderId order;    // empty for hello
  std::string kind;
  Json data = Json::object();
};
struct EventBatch {
  std::string boot_id;
  std::string incarnation;  // random per agent process: numbering restarts with it
  std::vector<Event> events;
};

Json to_json(const JoinRequest& m);
Json to_json(const JoinReply& m);
Json to_json(const WorkOrder& m);
Json to_json(const PollReply& m);
Json to_json(const Event& m);
Json to_json(const EventBatch& m);
Result<JoinRequest> join_request_from_json(const Json& j);
Result<JoinReply> join_reply_from_json(const Json& j);
Result<WorkOrder> work_order_from_json(const Json& j);
Status read_own(const Json& j, WorkOrder& out);
Result<PollReply> poll_reply_from_json(const Json& j);
Result<Event> event_from_json(const Json& j);
Result<EventBatch> event_batch_from_json(const Json& j);

// ---- parameters of work orders ----
//
// inventory: no parameters; the result of `finished` is HardwareFacts as JSON (base/facts.h)
// steps / check: {"steps":[Step...], "stop_on_failure": true, "mode": "apply"|"check"}
struct Step {
  std::string id;      // "ssh/harden", unique in the order
  std::string module;  // "file", "service", ... (agent/all_drivers.cc)
  Json params = Json::object();
  std::string phase = "node";  // image | node | cluster
  // Optional step that must succeed after this one: same shape {module, params}. Null: the module's own
  // verify only.
  Json verify;
  // The controller's limits for the measurement (acceptance), by metric; "blocks" lists the metrics of an
  // optional step that still fail the node. The agent passes it through unread.
  Json expect;
  bool mandatory = true;  // false: a failure is reported and the order continues (degraded)
  // What the agent must have to run the step, else the step is `not_looked_at`. "root": the agent runs as
  // root. In JSON, the needs are part of `expect`, because older agents reject a step with an unknown key.
  std::vector<std::string> needs = {};
};
Json to_json(const Step& s);
Result<Step> step_from_json(const Json& j);
Status read_own(const Json& j, Step& out);

struct JobDisk : DiskId {};  // its keys begin with "disk_"

// image: which disk to write and with what. The agent rejects the order unless everything matches.
struct ImageJob {
  std::string image;          // name
  std::string digest;         // image digest
  std::string manifest_path;  // on the boot HTTP server: "/images/<name>/<digest>/manifest.json"
  std::string base_url;       // "http://10.20.0.1:7480"
  JobDisk disk;
  std::string content_hash;  // content that the approved plan saw on that disk; empty only if `ours` is
                             // expected
  bool allow_ours = false;   // in reimage plans: a disk that has muster's own layout of this node may be
                             // overwritten with a new image
  std::string cluster;       // the node's cluster: a different one may have a node with the same name
  std::string authority;     // fingerprint of this controller's CA, since a different one may have a
                             // cluster with the same name: sha256:<hex>
  std::string hostname;
  std::string address_cidr;  // "10.20.0.11/24"
  std::string mac;
  std::string gateway;                   // may be empty
  std::vector<std::string> dns, search;  // name servers, domains; may be empty
  std::string controller_url;            // "https://10.20.0.1:7443"
  std::string console;                   // kernel console argument, may be empty
  std::string kernel_options;            // extra
  std::string root_size = "";  // bytes per slot as text; empty: half of (disk - esp - state minimum), capped
};
Json to_json(const ImageJob& j);
Result<ImageJob> image_job_from_json(const Json& j);

// A program that is installed in addition to the image: muster's agent, an acceptance program.
struct SlotProgram {
  std::string path;    // on the node, "/usr/sbin/muster-agent"
  std::string sha256;  // and on the boot HTTP server: "/programs/<sha256>"
  int64_t size = 0;    // bytes
  int64_t mode = 0755;
};
// write_slot: writes the image into the root slot that the node does not run from, while it runs. Nothing
// that the running system boots from is changed.
struct SlotJob {
  ImageJob image;
  std::string slot;  // "a" | "b": the slot to write; rejected if the node runs from it
  std::vector<SlotProgram> programs;
  int64_t bytes_per_second = 0;  // cap on bytes written; 0: none
};
Json to_json(const SlotJob& j);
Result<SlotJob> slot_job_from_json(const Json& j);

// boot_slot: boots once from that slot. Unless the step module `slot` commits it, the node boots its previous
// slot again, by itself after `trial` at the latest.
struct BootSlotJob {
  std::string slot, digest;
  DurationMs trial = 0;
};
Json to_json(const BootSlotJob& j);
Result<BootSlotJob> boot_slot_job_from_json(const Json& j);

// kexec: the running system hands over to the RAM system. It is first prepared (checked, fetched, loaded) and
// reported, and carried out once that report was acknowledged.
struct KexecJob {
  std::string base_url;  // of the boot HTTP server, "http://10.20.0.1:7480"
  std::string kernel_path, kernel_sha256, initrd_path, initrd_sha256;
  // Arguments of the RAM system's kernel, including the one-time token; the node adds those for the network.
  std::string arguments;
  // Network of the new system: its port, its router (may be empty), and its address, "10.20.7.11/16". If it
  // would be unreachable, the old system keeps running.
  std::string mac, gateway, address_cidr;
};
Json to_json(const KexecJob& j);
Result<KexecJob> kexec_job_from_json(const Json& j);

}  // namespace muster::wire
