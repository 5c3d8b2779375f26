// What a run did to a cluster and what was proven about it: a pure function of journal and measurements.
//
// The reader of the journal (controller) creates the value, controller/report/verdict.h judges it, it is
// stored as JSON (schema/report.schema.json), and the functions below render it: HTML for people, JUnit for
// pipelines, text for terminals. Honest results do not depend on callers: from_json and every renderer apply
// settle(), so no report can show a node as accepted unless all its mandatory checks ran and passed, and a
// simulated cluster has SIMULATED HARDWARE in its title and on every verdict line. Strings come from hardware
// and from users, and are escaped for each output format in this component. Thread safety: plain value types
// and stateless functions. No I/O, no clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/disk_id.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "base/words.h"
#include "controller/report/drift.h"

namespace muster {

// not_looked_at: the check needs rights that the agent lacks (a plain user cannot read the kernel's log). It
// is not a pass and proves nothing; it does not affect its node's verdict, and the title counts such checks.
// not_judged: measured, but none of the profile's rules had anything to hold the value to (the GPU table does
// not have the model; nothing to compare with). No pass and no blame; counted in the title like the former,
// unless only other nodes or earlier runs to compare with are missing (Check::uncompared), which is ordinary
// on a small cluster.
enum class Verdict { pass, degraded, fail, not_applicable, skipped, not_looked_at, not_judged };
inline constexpr Words<Verdict, 7> kVerdictWords = {{{Verdict::pass, "pass"},
                                                     {Verdict::degraded, "degraded"},
                                                     {Verdict::fail, "fail"},
                                                     {Verdict::not_applicable, "not_applicable"},
                                                     {Verdict::skipped, "skipped"},
                                                     {Verdict::not_looked_at, "not_looked_at"},
                                                     {Verdict::not_judged, "not_judged"}}};
std::string_view to_string(Verdict verdict);
// True for degraded, failed and skipped: what prevents a clean result.
bool is_finding(Verdict verdict);

// An earlier measurement of the same node, from a run in which the node was accepted or degraded.
struct HistoryPoint {
  int64_t run = 0;
  double value = 0;
};

struct Check {
  std::string name = {};     // "hardware/gpus", "dgemm/gflops"; the same on every node, for comparison
  std::string title = {};    // for people
  std::string subject = {};  // the other end or the part: "node02", "/scratch"; may be empty
  std::string like =
      {};  // a part is compared only with parts of equal `like` (a drive model); not in the JSON form
  std::string kind = {};  // and with other nodes' only if that is equal, too (a machine); likewise
  std::optional<double> missed_floor =
      {};  // the floor, if a value below it is the only reason for the failure; not in the JSON form
  Verdict verdict = Verdict::skipped;
  bool mandatory = true;
  bool uncompared = false;  // not judged, and only for want of other nodes or earlier runs to compare with
  std::string no_figure_for = {};  // not judged: what has no figure, "NVIDIA X900"; may be empty
  std::optional<double> measured = {}, expected = {};  // numbers, for plots
  bool lower_is_better = false;                        // expected is a ceiling, not a floor
  std::string unit = {};
  std::string measured_text = {}, expected_text = {};  // for people, with unit
  // Of `expected`, and set whenever that is: "0.93 x fleet median 100 GFLOP/s of 8 values = 93 GFLOP/s", and
  // where its figure comes from.
  std::string because = {}, source = {};
  std::string derivation = {};  // every rule that was applied or could not be, with its numbers
  std::string reason = {};      // why it did not pass
  std::vector<std::string> faulty_parts = {};  // names of the faulty parts
  std::vector<HistoryPoint> history = {};      // newest first
  Json evidence = nullptr;                     // raw measurement
};

struct StepRecord {
  std::string name = {}, phase = {};  // "ssh/harden"; image | node | cluster
  std::string status =
      {};  // baked | already | applied | failed | not_applicable | not_looked_at | incomplete
  std::string message = {};
  DurationMs duration = 0;
};

struct PhaseRecord {
  // discover, power, image, pause, boot, configure, storage, cluster, accept, commit, resume, return
  std::string name = {};
  TimeMs start = 0;
  DurationMs duration = 0;
  std::string outcome = "done";  // done | failed | running
};

struct DiskRecord : DiskId {
  std::string group = {};  // in the spec; "" if no group contains the disk
};

// degraded: every mandatory check ran and none failed, but a part, which the report names, is slower than it
// should be; the node works. looked_at: nothing is known against it, but no load ran on it, so it is not
// accepted. returned: the new system was not kept, and the node works again in its previous one; its checks
// are those of the system that was not kept.
enum class NodeVerdict { accepted, degraded, looked_at, returned, quarantined, failed };
inline constexpr Words<NodeVerdict, 6> kNodeVerdictWords = {{{NodeVerdict::accepted, "accepted"},
                                                             {NodeVerdict::degraded, "degraded"},
                                                             {NodeVerdict::looked_at, "looked_at"},
                                                             {NodeVerdict::returned, "returned"},
                                                             {NodeVerdict::quarantined, "quarantined"},
                                                             {NodeVerdict::failed, "failed"}}};
std::string_view to_string(NodeVerdict verdict);

struct NodeReport {
  std::string name = {}, role = {}, address = {};
  NodeVerdict verdict = NodeVerdict::failed;
  std::string reason = {};  // why it is not accepted
  std::string vendor = {}, product = {}, serial = {}, uuid = {};
  std::string image = {}, image_digest = {}, config_digest = {};
  std::string kernel = {}, firmware = {};
  std::string share = {};  // the measured part of the node, "32 of 128 cores (cpuset)"; empty: all of it
  std::string rack = {}, network_switch = {};       // labels of the spec; may be empty
  std::map<std::string, std::string> drivers = {};  // "nic 52:54:00:20:00:01" -> "virtio_net"
  std::vector<DiskRecord> disks = {};
  std::vector<PhaseRecord> phases = {};
  std::vector<StepRecord> steps = {};
  std::vector<Check> checks = {};
  Json facts = nullptr;  // base/facts.h, as found
};
// True if users got the node.
inline bool handed_over(const NodeReport& node) {
  return node.verdict == NodeVerdict::accepted || node.verdict == NodeVerdict::degraded ||
         node.verdict == NodeVerdict::looked_at;
}

struct LinkRecord {                 // one direction of one pair
  std::string from = {}, to = {};   // node names
  std::optional<double> mbps = {};  // 1 MB = 10^6 bytes; absent: not measured
  std::optional<double> rtt_ms = {};
  Verdict verdict = Verdict::skipped;
};

struct DestroyedRecord : DiskId {  // a disk that the approved plan named, and what was on it
  std::string node = {}, group = {};
  std::string content = {}, why = {};
};

struct Report {
  std::string cluster = {};
  bool simulated = false;
  std::string kind = {};  // install, reimage, accept, ...; kLook: an acceptance in which no load ran
  int64_t run = 0;
  int64_t spec_revision = 0;
  std::string spec_digest = {};
  std::vector<std::string> plan_digests = {};
  std::map<std::string, std::string> images = {};            // name -> digest
  std::string approved_by = {}, profile = {}, version = {};  // acceptance profile; muster's version
  TimeMs started = 0, ended = 0;
  std::vector<NodeReport> nodes = {};  // by name
  std::vector<LinkRecord> links = {};
  std::vector<DestroyedRecord> destroyed = {};
  std::vector<std::string> notes = {};
  bool running = false;  // of running hosts, measured without a controller: other commands apply
  Drift drift = {};  // differences between nodes that should be alike, in an acceptance run; not a verdict
  // Of the signed file that the report was read from, for display; not in the JSON form.
  std::string digest = {}, signed_by = {};
};

// "held to at least 646.4 TFLOP/s, because of 0.93 x ... (source: ...)"; "" if it was held to
// nothing.
std::string held_to(const Check& check);
// Describes a check that did not pass in one clause, for its node's reason: "counters/gpu_xids: 1 lines is
// above 0 lines, at fault: GPU 0000:3b:00". Names the first three parts at fault and counts the others; parts
// that the clause contains anyway are not named again.
std::string reason_of(const Check& check);
// Failed or skipped mandatory checks as in reason_of(), or that there are none; "" if it may be accepted.
std::string obstacle(const NodeReport& node);
// Returns the mandatory checks that are degraded, with the parts at fault; "" if there are none.
std::string shortfall(const NodeReport& node);
// The kind of an acceptance in which no node was loaded (Report::kind).
inline constexpr const char* kLook = "look";
// True if a check put a load on the node (processors, memory, drives, links, GPUs), however it ended. An
// inventory, counters and PCIe links are read without one, and what an earlier run found is none of this run.
bool ran_load(const NodeReport& node);

// Turns every `accepted` that has an obstacle into `failed` with that reason, every one that has a shortfall
// into `degraded`, of the rest every one on which no load ran into `looked_at`, and a failed optional check
// into `degraded`. An acceptance in which no load ran on any node becomes one of the kind `look`.
void settle(Report& report);

// Not accepted, but nothing was found wrong: some checks could not run (a GPU program was not loaded).
bool only_unrun(const NodeReport& node);

struct Totals {
  size_t nodes = 0, accepted = 0, degraded = 0, looked_at = 0, returned = 0, quarantined = 0, failed = 0;
  size_t without_rdma = 0;  // nodes that are not accepted because their RDMA was not measured
  // Number of different checks, each counted once for all nodes; without those that are `uncompared`.
  size_t not_looked_at = 0, not_judged = 0;
  std::vector<std::string> no_figure_for =
      {};  // of those that are not judged: Check::no_figure_for, or its name
  std::map<Verdict, size_t> checks = {};
  size_t count(Verdict verdict) const;
};
Totals totals(const Report& report);  // of the settled report
// "SIMULATED HARDWARE: gaggle: 2 of 3 nodes accepted, RDMA not measured on 1 node, 4 checks not looked at, 1
// check not judged: no figure for NVIDIA X900"; of a look "gaggle: 3 of 3 nodes looked at, not measured"
std::string title(const Report& report);

Json to_json(const Report& report);
// The text to store and to sign: sorted keys, invalid UTF-8 replaced.
std::string to_json_text(const Report& report);
Result<Report> report_from_json(const Json& json);

// One flat JSON object per node and line: identity, verdict, measured values by name, failed checks.
std::string render_flat(const Report& report);

std::string render_html(const Report& report);                        // one self-contained page
std::string render_junit(const Report& report);                       // one suite per node
std::string render_text(const Report& report, bool verbose = false);  // no colours; verbose lists every check

}  // namespace muster
