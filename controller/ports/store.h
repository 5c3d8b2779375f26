// Store: the interface to everything that must survive a crash of the controller.
// Writes are atomic batches, done in the order of the calls, and durable (fsync) when `done` is called, on
// the reactor's thread. Reads see every write whose `done` was called. Implementations: SQLite
// (controller/store/sqlite_store.cc), and in memory, losing what was not synced (tests/fakes/mem_store.h).
// Both pass tests/conformance/store_suite.h. Code::corrupt: a row contains something that this version of
// muster never writes. Thread: the reactor's thread only, except for archive().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/facts_text.h"
#include "base/json.h"
#include "base/long_text.h"
#include "base/names.h"
#include "base/result.h"
#include "base/time.h"
#include "controller/nodes/held_by.h"
#include "controller/nodes/states.h"

namespace muster {

struct SpecRow {
  int64_t revision = 0;
  TimeMs time = 0;
  std::string text, digest, note;
  std::string caller = {};  // who stored it; "": unknown
};
struct PlanRow {
  std::string digest, kind;  // kind: also in `json`; here for callers that need nothing else of it
  int64_t spec_revision = 0;
  TimeMs time = 0;
  std::string json;
};
struct RunRow {
  int64_t id = 0;
  std::string plan_digest;
  RunState state = RunState::failed;  // so that the run of an unfilled row is never continued
  TimeMs started = 0, ended = 0;
  std::string approved_by;  // who, and with what: "anna (sudo), muster up"
};
// One transition of one action. controller/run/step_log.h defines the valid transitions.
struct JournalRow {
  int64_t seq = 0;  // assigned by the store, grows
  int64_t run = 0;
  std::string action;  // "" for rows about the run or a whole node
  NodeName node;
  int attempt = 0;
  std::string event;  // intent | started | succeeded | failed | unknown | quarantined | step | ...
  TimeMs time = 0;
  Json data = Json::object();
};
struct NodeRow {
  NodeName name;
  NodeState state = NodeState::unknown;
  std::string reason;
  std::string image_digest, config_digest;
  std::string mode, boot_id;                // that its agent last reported
  std::string product_uuid, system_serial;  // the machine this name is bound to
  TimeMs last_seen = 0;
  TimeMs facts_time = 0;
  FactsText facts;  // "" when never seen
  int64_t accepted_run = 0;
  // Set exactly while the state is quarantined: by a run or an operator, since when (0: unknown), and which
  // operator ("": unknown).
  HeldBy held_by = HeldBy::nobody;
  // When a run last began to write the OS disk (key ""), or a root slot while jobs ran ("a", "b"): earlier
  // facts about that disk or slot are outdated. Written together with the intent.
  std::map<std::string, TimeMs> disk_written = {};
  TimeMs held_since = 0;  // see held_by
  std::string held_caller = {};
  // What the acceptance that found `reason` located at the node, or between it and others; "": nothing.
  std::string faulty_part = {};
};
struct TokenRow {  // one-time join tokens: only the digest is stored
  std::string digest;
  NodeName node;
  std::string purpose;  // join | adopt | discover
  TimeMs expires = 0;
  std::string public_key;   // fingerprint of the key that used it; "" while unused
  std::string certificate;  // the certificate issued for it, so that the response can be repeated
};
struct CertificateRow {
  std::string serial;
  NodeName node;
  std::string fingerprint;
  TimeMs issued = 0;
  bool revoked = false;
  bool contested = false;  // two machines joined with its token: valid, but its holder gets no orders or data
};
struct SecretRow {
  std::string name;
  TimeMs time = 0;
  std::string sealed;
};  // sealed: nonce+ciphertext+tag, base64
struct EventRow {
  int64_t seq = 0;
  TimeMs time = 0;
  int64_t run = 0;
  NodeName node;
  std::string kind;
  std::string json;
};  // live log
// Events of one node, of one run, since a time; each empty or 0: of all.
struct EventQuery {
  int64_t after = 0;  // sequence number
  size_t limit = 0;
  NodeName node = {};
  int64_t run = 0;
  TimeMs since = 0;
  bool newest = false;  // of more than `limit` events the last ones, else the first; in order either way

  // True if its rows cannot be found by an index: a scan of the whole log.
  bool scans() const { return run != 0 || since != 0; }
};

// The signed report of a run that ended, byte for byte, and a summary of its measurements
// (controller/report/history.h).
struct ReportRow {
  int64_t run = 0;
  TimeMs time = 0;
  LongText json;
  std::string measured;
};

// See controller/rollout/rollout_record.h. Only the newest rollout is in effect; the others are history.
struct RolloutRow {
  int64_t id = 0;
  TimeMs time = 0;  // of its last change
  std::string text;
};

// See controller/notices/book.h. There is one.
struct NoticesRow {
  int64_t id = 1;
  TimeMs time = 0;  // of its last change
  std::string text;
};

struct DeleteSecret {
  std::string name;
};
struct DeleteNode {
  NodeName name;
};  // deletes the node and its tokens; revokes its certificates
struct ResealSecret {
  std::string name, sealed;
};  // the same secret under another key; nothing if it was deleted
struct RevokeCertificates {
  NodeName node;
};  // revokes all certificates of the node that were written before this row
struct ContestCertificates {
  NodeName node;
};  // marks those of them that are not revoked as contested
struct PurgeTokens {
  TimeMs expired = 0;
};  // deletes tokens that expired before that time
struct DeleteJoinTokens {
  NodeName node;
};  // deletes the node's join tokens, used or not; written when a power-on of the node begins
// Deletes at most `most` events from before that time, and gives a small part of the space of deleted rows
// back to the file system. An event with a time after `now` (the clock was wrong) is as old as those around
// it: it goes before an older event that follows it in the log.
struct PurgeEvents {
  TimeMs before = 0, now = 0;
  int64_t most = 0;
};
using Write =
    std::variant<SpecRow, PlanRow, RunRow, JournalRow, NodeRow, TokenRow, CertificateRow, SecretRow, EventRow,
                 ReportRow, RolloutRow, NoticesRow, DeleteSecret, DeleteNode, ResealSecret,
                 RevokeCertificates, ContestCertificates, PurgeTokens, DeleteJoinTokens,
                 PurgeEvents>;  // a row with a key replaces the row with the same key

// Read-only access to the records of runs: specs, plans, journals, reports, events.
class RunArchive {
 public:
  virtual ~RunArchive() = default;
  virtual Result<SpecRow> spec(int64_t revision) = 0;  // 0: the newest; not_found when none
  virtual Result<PlanRow> plan(
      const std::string& digest) = 0;  // a unique prefix of at least 8 digits is enough
  // Returns plan() without `json`, which may be large.
  virtual Result<PlanRow> plan_head(const std::string& digest) {
    auto row = plan(digest);
    if (row.ok()) row->json.clear();
    return row;
  }
  virtual Result<RunRow> run(int64_t id) = 0;                        // 0: the newest
  virtual Result<std::vector<JournalRow>> journal(int64_t run) = 0;  // in order
  // Returns when the run's actions began and ended: journal() without rows of steps, and without `data`.
  virtual Result<std::vector<JournalRow>> journal_times(int64_t run) {
    auto rows = journal(run);
    if (!rows.ok()) return rows;
    std::erase_if(*rows, [](const JournalRow& row) { return row.event == "step"; });
    for (JournalRow& row : *rows) row.data = Json::object();
    return rows;
  }
  // Returns the progress of the run's actions: journal() after the row `after`, without rows of steps,
  // without `data` in rows "intent" and "started", and without "result" in the `data` of other rows, which
  // may be large. One that names the precondition for which an agent refused its order, or a step that was
  // denied, stays: it decides whether a node failed (refused_to_leave(), was_denied()).
  virtual Result<std::vector<JournalRow>> journal_turns(int64_t run, int64_t after) {
    auto rows = journal(run);
    if (!rows.ok()) return rows;
    std::erase_if(*rows, [after](const JournalRow& row) { return row.event == "step" || row.seq <= after; });
    for (JournalRow& row : *rows) {
      if (row.event == "intent" || row.event == "started") row.data = Json::object();
      if (!row.data.is_object()) continue;
      const Json result = row.data.value("result", Json());
      if (!result.contains("precondition") && !result.contains("denied")) row.data.erase("result");
    }
    return rows;
  }
  virtual Result<ReportRow> report(int64_t run) = 0;  // 0: the newest; not_found while a run has none
  // Returns at most `limit` reports of runs before `run` (0: of all runs), newest first, without `json`.
  virtual Result<std::vector<ReportRow>> reports(int64_t run, size_t limit) = 0;
  virtual Result<std::vector<EventRow>> events(const EventQuery& query) = 0;
  Result<std::vector<EventRow>> events(int64_t after_seq, size_t limit, const NodeName& node) {
    return events({after_seq, limit, node});
  }
};

class Store : public RunArchive {
 public:
  using Done = std::function<void(Status)>;

  virtual void write(std::vector<Write> batch, Done done) = 0;

  // Returns an archive of the same records for other threads, since those of a large cluster take long to
  // read. The archive sees every write whose `done` was called before the read, and may outlive the store.
  // Thread: any, but one call at a time.
  virtual std::shared_ptr<RunArchive> archive() = 0;

  virtual Result<std::vector<SpecRow>> specs() = 0;  // without text
  virtual Result<std::vector<RunRow>> runs() = 0;
  virtual Result<std::vector<NodeRow>> nodes() = 0;  // by name
  // The names of nodes(), in the same order, without reading the rows, which hold whole inventories.
  virtual Result<std::vector<std::string>> node_names() {
    TRY(const auto rows, nodes());
    std::vector<std::string> names;
    for (const NodeRow& row : rows) names.push_back(row.name);
    return names;
  }
  virtual Result<NodeRow> node(const NodeName& name) = 0;
  virtual Result<TokenRow> token(const std::string& digest) = 0;
  // Returns the node's tokens of purpose "join", sorted by expiry, earliest first.
  virtual Result<std::vector<TokenRow>> join_tokens(const NodeName& node) = 0;
  virtual Result<CertificateRow> certificate(const std::string& serial) = 0;
  // True if writing this would delete events or give space back. Quick, however long the log is.
  virtual Result<bool> would_purge(const PurgeEvents& purge) = 0;
  // Returns the time of the newest event from before that time; not_found if there is none. Quick, too.
  virtual Result<TimeMs> newest_event_before(TimeMs time) = 0;
  virtual Result<std::vector<SecretRow>> secrets() = 0;
  // Returns one of secrets(), without reading the others.
  virtual Result<SecretRow> secret(const std::string& name) {
    TRY(auto rows, secrets());
    for (SecretRow& row : rows)
      if (row.name == name) return std::move(row);
    return fail(Code::not_found, "no secret " + name);
  }
  virtual Result<RolloutRow> rollout(int64_t id) = 0;      // 0: the newest; not_found when none
  virtual Result<std::vector<RolloutRow>> rollouts() = 0;  // oldest first, without text
  virtual Result<NoticesRow> notices() = 0;                // not_found when none
  // Returns when the database was last found to be an older copy of itself, or lost, so that newer rows are
  // missing; 0: never. Rows about machines from before that time may be wrong. restored_why(): the reason; ""
  // unless it was found at this start.
  virtual TimeMs restored() const { return 0; }
  virtual std::string restored_why() const { return ""; }
  // Returns an identifier of the history; restored() and history() change together. "" if unknown.
  virtual std::string history() const { return ""; }
  virtual int64_t next_run_id() = 0;
  virtual int64_t next_spec_revision() = 0;
};

// The forms in which an operator may name a plan: "sha256:<64 digits>", the digits alone, or a prefix of at
// least 8 of them. All implementations of Store use this function. Thread safety: stateless functions.

// Returns the prefix to search for, which always begins with "sha256:". Code::invalid if it is too short or
// not hexadecimal.
inline Result<std::string> plan_prefix(const std::string& name) {
  constexpr std::string_view scheme = "sha256:";
  const std::string digits = name.starts_with(scheme) ? name.substr(scheme.size()) : name;
  if (digits.size() < 8)
    return fail(Code::invalid, "plan '" + name + "': give at least 8 digits of its digest");
  if (digits.find_first_not_of("0123456789abcdef") != std::string::npos || digits.size() > 64)
    return fail(Code::invalid, "plan '" + name + "': a digest has at most 64 lower-case hexadecimal digits");
  return std::string(scheme) + digits;
}

}  // namespace muster
