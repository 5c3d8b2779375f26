#include "tests/fakes/mem_store.h"

#include <algorithm>

#include "controller/ports/store.h"

namespace muster {

namespace {

template <typename... F>
struct Overload : F... {
  using F::operator()...;
};
template <typename... F>
Overload(F...) -> Overload<F...>;

template <typename Map>
int64_t last_key(const Map& map) {
  return map.empty() ? 0 : map.rbegin()->first;
}

template <typename Map>
auto values(const Map& map) {
  std::vector<typename Map::mapped_type> out;
  for (const auto& [key, row] : map) out.push_back(row);
  return out;
}

template <typename Map, typename Key>
Result<typename Map::mapped_type> lookup(const Map& map, const Key& key, const std::string& what) {
  const auto found = map.find(key);
  if (found == map.end()) return fail(Code::not_found, what);
  return found->second;
}

}  // namespace

MemStore::MemStore(Reactor& reactor, std::function<DurationMs()> commit_delay)
    : reactor_(reactor), commit_delay_(std::move(commit_delay)) {
  if (!commit_delay_) commit_delay_ = [] { return DurationMs{1}; };
}

MemStore::~MemStore() { *alive_ = false; }

void MemStore::crash(Unsynced unsynced) {
  ++incarnation_;
  if (unsynced == Unsynced::kept)
    for (const auto* queue : {&committing_, &waiting_})
      for (const Batch& batch : *queue)
        if (!batch.fails) (void)apply(batch.rows);
  committing_.clear();
  waiting_.clear();
  reserved_run_ = reserved_spec_ = 0;
}

void MemStore::fail_next(int count, Error error) {
  failures_left_ = count;
  failure_ = std::move(error);
}

void MemStore::refuse(std::function<bool(const Write&)> bad, Error error) {
  refused_ = std::move(bad);
  refusal_ = std::move(error);
}

void MemStore::fail_reads(int count, Error error) {
  read_failures_ = count;
  read_failure_ = std::move(error);
}

void MemStore::write(std::vector<Write> batch, Done done) {
  Batch entry{std::move(batch), std::move(done), std::nullopt};
  if (failures_left_ > 0) {
    --failures_left_;
    entry.fails = failure_;
  }
  if (refused_ && std::any_of(entry.rows.begin(), entry.rows.end(), refused_)) entry.fails = refusal_;
  waiting_.push_back(std::move(entry));
  if (committing_.empty()) start_commit();
}

void MemStore::start_commit() {
  committing_.swap(waiting_);
  if (committing_.empty()) return;
  reactor_.after(commit_delay_(), [this, alive = alive_, incarnation = incarnation_] {
    if (*alive && incarnation == incarnation_) finish_commit();
  });
}

void MemStore::finish_commit() {
  std::vector<Batch> group;
  group.swap(committing_);
  std::vector<Status> results;
  for (const Batch& batch : group) results.push_back(batch.fails ? Status(*batch.fails) : apply(batch.rows));
  start_commit();
  const auto alive = alive_;
  const uint64_t incarnation = incarnation_;
  for (size_t i = 0; i < group.size(); ++i) {
    if (!*alive || incarnation != incarnation_) return;  // a callback crashed us
    if (group[i].done) group[i].done(results[i]);
  }
}

// All or nothing: works on what it may touch only after every row was looked at.
Status MemStore::apply(const std::vector<Write>& rows) {
  std::map<int64_t, bool> new_runs;
  for (const Write& row : rows) {
    if (const auto* run = std::get_if<RunRow>(&row)) new_runs[run->id] = true;
    if (const auto* entry = std::get_if<JournalRow>(&row))
      if (entry->run != 0 && !tables_.runs.count(entry->run) && !new_runs.count(entry->run))
        return fail(Code::invalid,
                    "journal row of run " + std::to_string(entry->run) + ", which does not exist");
  }
  const auto put = Overload{
      [&](const SpecRow& r) { tables_.specs[r.revision] = r; },
      [&](const PlanRow& r) { tables_.plans[r.digest] = r; },
      [&](const RunRow& r) { tables_.runs[r.id] = r; },
      [&](JournalRow r) {
        r.seq = last_key(tables_.journal) + 1;
        tables_.journal[r.seq] = r;
      },
      [&](const NodeRow& r) { tables_.nodes[r.name] = r; },
      [&](const TokenRow& r) { tables_.tokens[r.digest] = r; },
      [&](const CertificateRow& r) { tables_.certificates[r.serial] = r; },
      [&](const SecretRow& r) { tables_.secrets[r.name] = r; },
      [&](EventRow r) {
        r.seq = ++tables_.last_event;
        tables_.events[r.seq] = r;
      },
      [&](const ReportRow& r) { tables_.reports[r.run] = r; },
      [&](const RolloutRow& r) { tables_.rollouts[r.id] = r; },
      [&](const NoticesRow& r) { tables_.notices[r.id] = r; },
      [&](const DeleteSecret& r) { tables_.secrets.erase(r.name); },
      [&](const ResealSecret& r) {
        if (const auto row = tables_.secrets.find(r.name); row != tables_.secrets.end())
          row->second.sealed = r.sealed;
      },
      [&](const RevokeCertificates& r) {
        for (auto& [serial, certificate] : tables_.certificates)
          if (certificate.node == r.node) certificate.revoked = true;
      },
      [&](const ContestCertificates& r) {
        for (auto& [serial, certificate] : tables_.certificates)
          if (certificate.node == r.node && !certificate.revoked) certificate.contested = true;
      },
      [&](const PurgeTokens& r) {
        for (auto it = tables_.tokens.begin(); it != tables_.tokens.end();)
          it = it->second.expires < r.expired ? tables_.tokens.erase(it) : std::next(it);
      },
      [&](const DeleteJoinTokens& r) {
        std::erase_if(tables_.tokens, [&](const auto& token) {
          return token.second.node == r.node && token.second.purpose == "join";
        });
      },
      [&](const PurgeEvents& r) {
        int64_t left = r.most;
        int64_t mark = 0;  // the youngest of the old ones
        TimeMs youngest = 0;
        for (const auto& [seq, event] : tables_.events)
          if (event.time < r.before && (mark == 0 || event.time >= youngest))
            mark = seq, youngest = event.time;
        std::erase_if(tables_.events, [&](const auto& event) {
          return event.second.time > r.now && event.first < mark && left-- > 0;
        });
        std::erase_if(tables_.events,
                      [&](const auto& event) { return event.second.time < r.before && left-- > 0; });
      },
      [&](const DeleteNode& r) {
        tables_.nodes.erase(r.name);
        for (auto& [serial, certificate] : tables_.certificates)
          if (certificate.node == r.name) certificate.revoked = true;
        for (auto it = tables_.tokens.begin(); it != tables_.tokens.end();)
          it = it->second.node == r.name ? tables_.tokens.erase(it) : std::next(it);
      },
  };
  for (const Write& row : rows) std::visit(put, row);
  return Ok{};
}

Result<std::vector<SpecRow>> MemStore::specs() {
  auto rows = values(tables_.specs);
  for (SpecRow& row : rows) row.text.clear();
  return rows;
}

Result<SpecRow> MemStore::spec(int64_t revision) {
  return lookup(tables_.specs, revision ? revision : last_key(tables_.specs), "no such spec revision");
}

Result<PlanRow> MemStore::plan(const std::string& digest) {
  TRY(const std::string prefix, plan_prefix(digest));
  std::vector<PlanRow> found;
  for (const auto& [key, row] : tables_.plans)
    if (key.starts_with(prefix)) found.push_back(row);
  if (found.empty()) return fail(Code::not_found, "no plan " + digest);
  if (found.size() > 1) return fail(Code::conflict, "more than one plan begins with " + digest);
  return found.front();
}

Result<std::vector<RunRow>> MemStore::runs() { return values(tables_.runs); }

Result<RunRow> MemStore::run(int64_t id) {
  return lookup(tables_.runs, id ? id : last_key(tables_.runs), "no such run");
}

Result<std::vector<JournalRow>> MemStore::journal(int64_t run) {
  std::vector<JournalRow> out;
  for (const auto& [seq, row] : tables_.journal)
    if (row.run == run) out.push_back(row);
  return out;
}

Result<std::vector<NodeRow>> MemStore::nodes() {
  if (read_failures_ > 0 && read_failures_--) return read_failure_;
  return values(tables_.nodes);
}
Result<NodeRow> MemStore::node(const NodeName& name) {
  return lookup(tables_.nodes, name, "no node " + name);
}
Result<TokenRow> MemStore::token(const std::string& digest) {
  return lookup(tables_.tokens, digest, "no such token");
}
Result<std::vector<TokenRow>> MemStore::join_tokens(const NodeName& node) {
  std::vector<TokenRow> found;
  for (const auto& [digest, row] : tables_.tokens)
    if (row.node == node && row.purpose == "join") found.push_back(row);
  std::stable_sort(found.begin(), found.end(),
                   [](const TokenRow& a, const TokenRow& b) { return a.expires < b.expires; });
  return found;
}
Result<CertificateRow> MemStore::certificate(const std::string& serial) {
  return lookup(tables_.certificates, serial, "no certificate " + serial);
}
Result<bool> MemStore::would_purge(const PurgeEvents& purge) {
  return std::any_of(tables_.events.begin(), tables_.events.end(),
                     [&](const auto& event) { return event.second.time < purge.before; });
}
Result<TimeMs> MemStore::newest_event_before(TimeMs time) {
  std::optional<TimeMs> found;
  for (const auto& [seq, event] : tables_.events)
    if (event.time < time) found = std::max(found.value_or(event.time), event.time);
  if (!found) return fail(Code::not_found, "no event is older");
  return *found;
}
Result<std::vector<SecretRow>> MemStore::secrets() { return values(tables_.secrets); }

Result<std::vector<EventRow>> MemStore::events(const EventQuery& query) {
  std::vector<EventRow> out;
  for (auto it = tables_.events.upper_bound(query.after); it != tables_.events.end(); ++it) {
    const EventRow& row = it->second;
    if ((!query.node.empty() && row.node != query.node) || (query.run != 0 && row.run != query.run) ||
        row.time < query.since)
      continue;
    if (out.size() == query.limit && !query.newest) break;
    out.push_back(row);
  }
  if (out.size() > query.limit) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(query.limit));
  return out;
}

Result<ReportRow> MemStore::report(int64_t run) {
  return lookup(tables_.reports, run ? run : last_key(tables_.reports), "this run has no report");
}
Result<RolloutRow> MemStore::rollout(int64_t id) {
  return lookup(tables_.rollouts, id ? id : last_key(tables_.rollouts), "no such rollout");
}
Result<std::vector<RolloutRow>> MemStore::rollouts() {
  auto rows = values(tables_.rollouts);
  for (RolloutRow& row : rows) row.text.clear();
  return rows;
}
Result<NoticesRow> MemStore::notices() { return lookup(tables_.notices, 1, "no notices"); }
Result<std::vector<ReportRow>> MemStore::reports(int64_t run, size_t limit) {
  std::vector<ReportRow> out;
  for (auto it = tables_.reports.rbegin(); it != tables_.reports.rend() && out.size() < limit; ++it) {
    if (run != 0 && it->first >= run) continue;
    out.push_back(it->second);
    out.back().json = {};
  }
  return out;
}

int64_t MemStore::next_run_id() {
  reserved_run_ = std::max(reserved_run_, last_key(tables_.runs)) + 1;
  return reserved_run_;
}

int64_t MemStore::next_spec_revision() {
  reserved_spec_ = std::max(reserved_spec_, last_key(tables_.specs)) + 1;
  return reserved_spec_;
}

}  // namespace muster
