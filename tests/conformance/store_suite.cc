#include "tests/conformance/store_suite.h"

#include <optional>

#include "tests/catch.h"

namespace muster::conformance {

namespace {

// Hands a batch over, waits, returns what `done` said.
Status put(StoreHarness& h, std::vector<Write> batch) {
  std::optional<Status> answer;
  h.store().write(std::move(batch), [&](Status status) { answer = std::move(status); });
  h.settle();
  REQUIRE(answer.has_value());
  return *answer;
}

void must(StoreHarness& h, std::vector<Write> batch) {
  const Status status = put(h, std::move(batch));
  INFO((status.ok() ? "" : status.error().message));
  REQUIRE(status.ok());
}

RunRow run_row(int64_t id, RunState state = RunState::running) {
  RunRow row;
  row.id = id;
  row.plan_digest = "sha256:" + std::string(64, 'a');
  row.state = state;
  row.started = 1000 * id;
  row.approved_by = "ops";
  return row;
}

JournalRow journal_row(int64_t run, std::string action, std::string event) {
  JournalRow row;
  row.run = run;
  row.action = std::move(action);
  row.node = "gpu01";
  row.attempt = 2;
  row.event = std::move(event);
  row.time = 77;
  row.data = Json{{"why", "said \"no\"\n"}, {"bytes", 1ull << 40}};
  return row;
}

PlanRow plan_row(const std::string& digits) {
  return {"sha256:" + digits + std::string(64 - digits.size(), '0'), "install", 1, 5, "{}"};
}

NodeRow node_row(std::string name) {
  NodeRow row;
  row.name = NodeName(std::move(name));
  row.state = NodeState::accepted;
  row.reason = "it's fine";
  row.image_digest = "sha256:01";
  row.config_digest = "sha256:02";
  row.mode = "installed";
  row.boot_id = "b-1";
  row.product_uuid = "u-1";
  row.system_serial = "SN1";
  row.last_seen = 4;
  row.facts_time = 5;
  row.facts = "{\"uefi\":true}";
  row.accepted_run = 9;
  row.held_by = HeldBy::an_operator;
  row.disk_written = {{"", 7}, {"b", 1'700'000'000'000}};
  row.held_since = 1'700'000'000'001;
  row.held_caller = "anna (sudo)";
  row.faulty_part = "link of gpu01, sending";
  return row;
}

void check_equal(const NodeRow& a, const NodeRow& b) {
  CHECK(a.name == b.name);
  CHECK(a.state == b.state);
  CHECK(a.held_by == b.held_by);
  CHECK(a.reason == b.reason);
  CHECK(a.image_digest == b.image_digest);
  CHECK(a.config_digest == b.config_digest);
  CHECK(a.mode == b.mode);
  CHECK(a.boot_id == b.boot_id);
  CHECK(a.product_uuid == b.product_uuid);
  CHECK(a.system_serial == b.system_serial);
  CHECK(a.last_seen == b.last_seen);
  CHECK(a.facts_time == b.facts_time);
  CHECK(a.facts == b.facts);
  CHECK(a.accepted_run == b.accepted_run);
  CHECK(a.disk_written == b.disk_written);
  CHECK(a.held_since == b.held_since);
  CHECK(a.held_caller == b.held_caller);
  CHECK(a.faulty_part == b.faulty_part);
}

}  // namespace

void rows_come_back_as_written(StoreHarness& h) {
  Store& s = h.store();
  CHECK(s.spec(0).error().code == Code::not_found);
  CHECK(s.run(0).error().code == Code::not_found);
  CHECK(s.node("gpu01").error().code == Code::not_found);
  CHECK(s.token("x").error().code == Code::not_found);
  must(h, {SpecRow{1, 10, "cluster: a\n", "sha256:aa", "first", "anna (sudo)"},
           SpecRow{2, 11, "cluster: b\n", "sha256:bb", ""}, plan_row("12345678"), run_row(1),
           node_row("gpu01"), TokenRow{"sha256:t", "gpu01", "join", 99, "", ""},
           CertificateRow{"0a", "gpu01", "sha256:f", 3, false}, SecretRow{"bmc", 8, "c2VhbGVk"}});
  CHECK(s.spec(0)->text == "cluster: b\n");
  CHECK(s.spec(1)->note == "first");
  CHECK(s.spec(1)->digest == "sha256:aa");
  CHECK(s.spec(3).error().code == Code::not_found);
  REQUIRE(s.specs()->size() == 2);
  CHECK(s.specs()->at(0).text.empty());
  CHECK(s.specs()->at(1).time == 11);
  CHECK(s.spec(1)->caller == "anna (sudo)");
  CHECK(s.specs()->at(0).caller == "anna (sudo)");
  CHECK(s.specs()->at(1).caller.empty());
  CHECK(s.run(1)->started == 1000);
  CHECK(s.run(0)->approved_by == "ops");
  CHECK(s.run(1)->plan_digest == run_row(1).plan_digest);
  check_equal(*s.node("gpu01"), node_row("gpu01"));
  CHECK(s.token("sha256:t")->expires == 99);
  CHECK(s.token("sha256:t")->purpose == "join");
  CHECK(s.certificate("0a")->fingerprint == "sha256:f");
  CHECK_FALSE(s.certificate("0a")->revoked);
  REQUIRE(s.secrets()->size() == 1);
  CHECK(s.secrets()->at(0).sealed == "c2VhbGVk");
}

void rows_with_a_key_replace(StoreHarness& h) {
  Store& s = h.store();
  must(h,
       {run_row(1), node_row("gpu02"), node_row("gpu01"), TokenRow{"d", "gpu01", "join", 1, "", ""},
        CertificateRow{"0a", "gpu01", "f", 3, false}, SecretRow{"bmc", 1, "old"}, SecretRow{"api", 1, "x"}});
  must(h, {journal_row(1, "gpu01/image", "intent")});
  RunRow ended = run_row(1, RunState::done);
  ended.ended = 5;
  NodeRow quarantined = node_row("gpu01");
  quarantined.state = NodeState::quarantined;
  must(h, {ended, quarantined, TokenRow{"d", "gpu01", "join", 1, "key", "cert"},
           CertificateRow{"0a", "gpu01", "f", 3, true}, SecretRow{"bmc", 2, "new"}, DeleteSecret{"api"},
           DeleteNode{"gpu02"}});
  REQUIRE(s.runs()->size() == 1);
  CHECK(s.run(1)->state == RunState::done);
  CHECK(s.run(1)->ended == 5);
  CHECK(s.journal(1)->size() == 1);  // replacing a run keeps its journal
  REQUIRE(s.nodes()->size() == 1);
  CHECK(s.nodes()->at(0).state == NodeState::quarantined);
  CHECK(s.token("d")->certificate == "cert");
  CHECK(s.token("d")->public_key == "key");
  CHECK(s.certificate("0a")->revoked);
  REQUIRE(s.secrets()->size() == 1);
  CHECK(s.secrets()->at(0).sealed == "new");
  CHECK(s.secrets()->at(0).time == 2);
  CHECK(s.secret("bmc")->sealed == "new");
  CHECK(s.secret("bmc")->time == 2);
  for (const char* none : {"api", "", "bm", "BMC"}) CHECK(s.secret(none).error().code == Code::not_found);
  must(h, {ResealSecret{"bmc", "newer"}, ResealSecret{"api", "back"}});
  REQUIRE(s.secrets()->size() == 1);  // one that was deleted stays so
  CHECK(s.secret("bmc")->sealed == "newer");
  CHECK(s.secret("bmc")->time == 2);
}

void a_forgotten_node_is_locked_out(StoreHarness& h) {
  Store& s = h.store();
  must(h, {node_row("gpu01"), node_row("gpu02"), TokenRow{"d1", "gpu01", "join", 1, "", ""},
           TokenRow{"d2", "gpu02", "join", 1, "", ""}, CertificateRow{"0a", "gpu01", "f", 3, false},
           CertificateRow{"0b", "gpu02", "f", 3, false}});
  must(h, {DeleteNode{"gpu01"}});
  CHECK_FALSE(s.node("gpu01").ok());
  CHECK(s.certificate("0a")->revoked);
  CHECK_FALSE(s.token("d1").ok());
  CHECK_FALSE(s.certificate("0b")->revoked);
  CHECK(s.token("d2").ok());
}

void older_certificates_end_with_a_new_one(StoreHarness& h) {
  Store& s = h.store();
  must(h, {CertificateRow{"0a", "gpu01", "f", 3}, CertificateRow{"0b", "gpu02", "f", 3},
           TokenRow{"old", "gpu01", "join", 9, "", ""}, TokenRow{"now", "gpu01", "join", 10, "", ""}});
  CertificateRow contested{"0c", "gpu01", "f", 4};
  contested.contested = true;
  must(h, {RevokeCertificates{"gpu01"}, contested, PurgeTokens{10}});
  CHECK(s.certificate("0a")->revoked);
  CHECK_FALSE(s.certificate("0a")->contested);
  CHECK_FALSE(s.certificate("0b")->revoked);
  CHECK_FALSE(s.certificate("0c")->revoked);  // in the order of the rows: what is written after it stays good
  CHECK(s.certificate("0c")->contested);
  CHECK(s.token("old").error().code == Code::not_found);
  CHECK(s.token("now").ok());
  must(h, {CertificateRow{"0d", "gpu01", "f", 5}, ContestCertificates{"gpu01"},
           CertificateRow{"0e", "gpu01", "f", 6}});
  CHECK(s.certificate("0d")->contested);
  CHECK_FALSE(s.certificate("0d")->revoked);
  for (const char* other : {"0a", "0b", "0e"}) CHECK_FALSE(s.certificate(other)->contested);
}

void a_power_on_takes_its_tokens_along(StoreHarness& h) {
  Store& s = h.store();
  must(h, {TokenRow{"b", "gpu01", "join", 9, "key", "cert"}, TokenRow{"a", "gpu01", "join", 10, "", ""},
           TokenRow{"c", "gpu01", "adopt", 8, "", ""}, TokenRow{"d", "gpu02", "join", 7, "", ""}});
  const auto rows = *s.join_tokens("gpu01");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].digest == "b");
  CHECK(rows[0].certificate == "cert");
  CHECK(rows[1].digest == "a");
  CHECK(s.join_tokens("gpu03")->empty());
  must(h, {DeleteJoinTokens{"gpu01"}});
  CHECK(s.join_tokens("gpu01")->empty());
  CHECK(s.token("c").ok());
  CHECK(s.token("d").ok());
}

void journal_keeps_order(StoreHarness& h) {
  must(h, {run_row(1), run_row(2)});
  must(h, {journal_row(1, "gpu01/image", "intent"), journal_row(2, "x", "intent"),
           journal_row(1, "gpu01/image", "started")});
  must(h, {journal_row(1, "gpu01/image", "succeeded"), journal_row(0, "", "admitted")});
  const auto rows = *h.store().journal(1);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].event == "intent");
  CHECK(rows[1].event == "started");
  CHECK(rows[2].event == "succeeded");
  CHECK(rows[0].seq < rows[1].seq);
  CHECK(rows[1].seq < rows[2].seq);
  CHECK(rows[2].data == journal_row(1, "", "").data);
  CHECK(rows[2].attempt == 2);
  CHECK(rows[2].node == "gpu01");
  CHECK(rows[2].action == "gpu01/image");
  CHECK(rows[2].time == 77);
  CHECK(h.store().journal(0)->size() == 1);
  CHECK(h.store().journal(9)->empty());
}

void batches_are_all_or_nothing(StoreHarness& h) {
  // A journal row of a run that was never stored is a bug of the caller; the whole batch must go, its
  // neighbours must not.
  std::vector<bool> answers;
  const auto note = [&](const Status& status) { answers.push_back(status.ok()); };
  h.store().write({node_row("gpu01")}, note);
  h.store().write({node_row("gpu02"), journal_row(7, "gpu02/image", "intent")}, note);
  h.store().write({node_row("gpu03")}, note);
  h.settle();
  CHECK(answers == std::vector<bool>{true, false, true});
  REQUIRE(h.store().nodes()->size() == 2);
  CHECK(h.store().nodes()->at(0).name == "gpu01");
  CHECK(h.store().nodes()->at(1).name == "gpu03");
  CHECK(put(h, {journal_row(7, "x", "intent")}).error().code == Code::invalid);
}

void done_comes_later_and_in_order(StoreHarness& h) {
  std::vector<int> order;
  bool inside = true;
  for (int i = 0; i < 50; ++i)
    h.store().write({node_row("gpu" + std::to_string(i))}, [&, i](const Status& status) {
      CHECK_FALSE(inside);
      CHECK(status.ok());
      CHECK(h.store().node(NodeName("gpu" + std::to_string(i))).ok());  // a finished write is visible
      order.push_back(i);
    });
  inside = false;
  h.settle();
  REQUIRE(order.size() == 50);
  for (int i = 0; i < 50; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  CHECK(put(h, {}).ok());  // an empty batch is a barrier
}

void plans_are_found_by_prefix(StoreHarness& h) {
  must(h, {plan_row("1234567890"), plan_row("1234567899"), plan_row("abcdef0123")});
  Store& s = h.store();
  CHECK(s.plan("abcdef01")->digest == plan_row("abcdef0123").digest);
  CHECK(s.plan("sha256:abcdef01")->kind == "install");
  CHECK(s.plan(plan_row("1234567899").digest)->digest == plan_row("1234567899").digest);
  CHECK(s.plan("12345678").error().code == Code::conflict);
  CHECK(s.plan("abcdef0").error().code == Code::invalid);
  CHECK(s.plan("zzzzzzzz").error().code == Code::invalid);
  CHECK(s.plan("99999999").error().code == Code::not_found);
}

void large_parts_are_left_out(StoreHarness& h) {
  must(h, {run_row(1), plan_row("1234567890"), plan_row("1234567899"), node_row("gpu02"), node_row("gpu01")});
  JournalRow step = journal_row(1, "gpu01/configure", "step");
  must(h, {journal_row(1, "gpu01/image", "intent"), step, journal_row(1, "gpu01/image", "succeeded")});
  Store& s = h.store();
  const auto head = s.plan_head("1234567890");
  REQUIRE(head.ok());
  CHECK(head->kind == "install");
  CHECK(head->digest == plan_row("1234567890").digest);
  CHECK(head->json.empty());
  CHECK(s.plan("1234567890")->json == "{}");
  CHECK(s.plan_head("12345678").error().code == Code::conflict);
  CHECK(s.plan_head("99999999").error().code == Code::not_found);
  CHECK(*s.node_names() == std::vector<std::string>{"gpu01", "gpu02"});
  const auto turns = *s.journal_turns(1, 0);
  REQUIRE(turns.size() == 2);
  CHECK(turns[0].data == Json::object());
  CHECK(turns[1].data == s.journal(1)->at(2).data);
  CHECK_FALSE(turns[1].data.empty());
  const auto times = *s.journal_times(1);
  REQUIRE(times.size() == 2);
  CHECK(times[0].event == "intent");
  CHECK(times[1].event == "succeeded");
  CHECK(times[1].time == 77);
  CHECK(times[1].action == "gpu01/image");
  CHECK(times[1].node == "gpu01");
  CHECK(times[1].data == Json::object());
  JournalRow failed = journal_row(1, "gpu01/image", "failed"), odd = failed, refused = failed;
  failed.data = {{"message", "no"}, {"result", {{"steps", {1, 2}}}}};
  odd.data = Json::array({"result"});
  refused.data = {{"message", "no"}, {"result", {{"precondition", "scheduler/no new jobs"}}}};
  JournalRow denied = failed;
  denied.data = {{"message", "no"}, {"result", {{"steps", {1, 2}}, {"denied", "scheduler/no new jobs"}}}};
  must(h, {failed, odd, refused, denied});
  const auto later = *s.journal_turns(1, turns[1].seq);
  REQUIRE(later.size() == 4);
  CHECK(later[0].data == Json{{"message", "no"}});
  CHECK(later[1].data == odd.data);
  CHECK(later[2].data == refused.data);
  CHECK(later[3].data == denied.data);
  CHECK(s.journal_turns(1, later[3].seq)->empty());
}

void the_archive_has_what_the_store_has(StoreHarness& h) {
  const auto archive = h.store().archive();
  CHECK(archive->run(0).error().code == Code::not_found);
  must(h, {SpecRow{3, 10, "cluster: a\n", "sha256:aa", ""}, run_row(1), plan_row("1234567890"),
           ReportRow{1, 10, "signed", "{}"}});
  must(h, {journal_row(1, "gpu01/image", "intent"), journal_row(1, "gpu01/image", "step")});
  CHECK(archive->run(0)->id == 1);
  CHECK(archive->spec(0)->revision == 3);
  CHECK(archive->plan("12345678")->json == "{}");
  CHECK(archive->plan("99999999").error().code == Code::not_found);
  CHECK(archive->plan_head("12345678")->kind == "install");
  CHECK(archive->journal(1)->size() == 2);
  CHECK(archive->journal_times(1)->size() == 1);
  CHECK(archive->journal_turns(1, 0)->size() == 1);
  CHECK(archive->report(1)->json == "signed");
  CHECK(archive->reports(0, 10)->size() == 1);
}

void events_are_paged(StoreHarness& h) {
  std::vector<Write> batch;
  for (int i = 0; i < 10; ++i)
    batch.push_back(EventRow{0, i, 1, i % 2 ? "gpu01" : "gpu02", "log", std::to_string(i)});
  must(h, batch);
  const auto all = *h.store().events(0, 100, "");
  REQUIRE(all.size() == 10);
  CHECK(all[3].json == "3");
  CHECK(all[3].kind == "log");
  CHECK(all[3].run == 1);
  const auto page = *h.store().events(all[3].seq, 2, "");
  REQUIRE(page.size() == 2);
  CHECK(page[0].json == "4");
  const auto of_node = *h.store().events(0, 3, "gpu01");
  REQUIRE(of_node.size() == 3);
  CHECK(of_node[2].json == "5");
  CHECK(h.store().events(all[9].seq, 5, "")->empty());
}

void events_are_found(StoreHarness& h) {
  std::vector<Write> batch;
  for (int i = 0; i < 12; ++i)
    batch.push_back(EventRow{0, i * 10, i / 6, i % 2 ? "gpu01" : "gpu02", "log", std::to_string(i)});
  must(h, batch);
  const auto archive = h.store().archive();
  const auto found = [&](const EventQuery& query) {
    std::string out;
    for (const EventRow& row : *h.store().events(query)) out += row.json + " ";
    std::string again;
    for (const EventRow& row : *archive->events(query)) again += row.json + " ";
    CHECK(out == again);
    return out;
  };
  CHECK(found({.limit = 100, .run = 1}) == "6 7 8 9 10 11 ");
  CHECK(found({.limit = 100, .since = 90}) == "9 10 11 ");
  CHECK(found({.limit = 2, .since = 40}) == "4 5 ");
  CHECK(found({.limit = 100, .node = "gpu01", .run = 1, .since = 71}) == "9 11 ");
  CHECK(found({.limit = 3, .newest = true}) == "9 10 11 ");
  CHECK(found({.limit = 2, .node = "gpu02", .newest = true}) == "8 10 ");
  CHECK(found({.limit = 100, .newest = true}).starts_with("0 1 "));
  const int64_t tenth = h.store().events({.limit = 10})->back().seq;
  CHECK(found({.after = tenth, .limit = 100, .newest = true}) == "10 11 ");
  CHECK(found({.limit = 100, .since = 1000}).empty());
  CHECK(*h.store().newest_event_before(1000) == 110);
  CHECK(*h.store().newest_event_before(90) == 80);
  CHECK(h.store().newest_event_before(0).error().code == Code::not_found);
}

void old_events_are_purged(StoreHarness& h) {
  std::vector<Write> batch;
  const auto add = [&](TimeMs time, const std::string& json) {
    batch.push_back(EventRow{0, time, 0, "gpu01", "log", json});
  };
  // The clock was wrong at first: more events with a time to come than one purge deletes.
  for (int i = 0; i < 1500; ++i) add(1'000'000 + i, "to come");
  for (int i = 0; i < 10; ++i) add(100 + i, std::to_string(i));
  add(2'000'000, "ahead");
  must(h, batch);
  Store& s = h.store();
  const PurgeEvents purge{105, 1000, 400};
  CHECK(*s.would_purge(purge));
  must(h, {purge});
  CHECK(s.events({.limit = 5000})->size() == 1511 - 400);
  for (int i = 0; i < 4; ++i) must(h, {purge});
  CHECK_FALSE(*s.would_purge(purge));
  std::string left;
  for (const EventRow& row : *s.events({.limit = 5000})) left += row.json + " ";
  CHECK(left == "5 6 7 8 9 ahead ");
  must(h, {purge});
  CHECK(s.events({.limit = 5000})->size() == 6);
  // Numbers are not used again: a client that follows the log would miss what has one.
  const int64_t last = s.events({.limit = 5000})->back().seq;
  must(h, {PurgeEvents{3'000'000, 3'000'001, 400}});
  CHECK(s.events({.limit = 5000})->empty());
  must(h, {EventRow{0, 1, 0, "gpu01", "log", "new"}});
  CHECK(s.events({.limit = 1})->front().seq > last);
}

void reports_are_kept_per_run(StoreHarness& h) {
  CHECK_FALSE(h.store().report(0).ok());
  const std::string text = "{\n  \"title\": \"it's fine\"\n}\n";
  must(h, {run_row(1), run_row(2), run_row(3), ReportRow{1, 10, text, "{}"},
           ReportRow{2, 20, "second", "{\"n\":1}"}});
  REQUIRE(h.store().report(1).ok());
  CHECK(h.store().report(1)->json == text);
  CHECK(h.store().report(0)->run == 2);
  CHECK_FALSE(h.store().report(3).ok());
  must(h, {ReportRow{3, 30, "third", ""}});
  const auto before = h.store().reports(3, 10);
  REQUIRE(before.ok());
  REQUIRE(before->size() == 2);
  CHECK(before->front().run == 2);
  CHECK(before->front().measured == "{\"n\":1}");
  CHECK(before->front().json == "");
  CHECK(h.store().reports(0, 1)->front().run == 3);
}

void rollouts_are_kept_by_id(StoreHarness& h) {
  CHECK(h.store().rollout(0).error().code == Code::not_found);
  CHECK(h.store().rollouts()->empty());
  must(h, {RolloutRow{1, 10, "{\"it's\": 1}"}, RolloutRow{2, 20, "second"}});
  must(h, {RolloutRow{2, 30, "changed"}});
  CHECK(h.store().rollout(0)->text == "changed");
  CHECK(h.store().rollout(0)->time == 30);
  CHECK(h.store().rollout(1)->text == "{\"it's\": 1}");
  CHECK_FALSE(h.store().rollout(3).ok());
  h.reopen();
  const auto all = h.store().rollouts();
  REQUIRE(all->size() == 2);
  CHECK(all->at(0).id == 1);
  CHECK(all->at(1).id == 2);
  CHECK(all->at(1).text == "");
}

void there_is_one_row_of_notices(StoreHarness& h) {
  CHECK(h.store().notices().error().code == Code::not_found);
  must(h, {NoticesRow{1, 10, "{\"it's\": 1}"}});
  CHECK(h.store().notices()->text == "{\"it's\": 1}");
  must(h, {NoticesRow{1, 30, "changed"}});
  h.reopen();
  CHECK(h.store().notices()->text == "changed");
  CHECK(h.store().notices()->time == 30);
}

void ids_grow(StoreHarness& h) {
  const int64_t first = h.store().next_run_id();
  CHECK(first == 1);
  CHECK(h.store().next_run_id() == 2);  // handed out once, stored or not
  must(h, {run_row(7), SpecRow{4, 1, "x", "d", ""}});
  CHECK(h.store().next_run_id() == 8);
  CHECK(h.store().next_spec_revision() == 5);
}

void everything_survives_reopening(StoreHarness& h) {
  must(h, {SpecRow{1, 10, "cluster: a\n", "sha256:aa", ""}, run_row(1), node_row("gpu01"),
           journal_row(1, "a", "intent")});
  must(h, {EventRow{0, 1, 1, "gpu01", "log", "{}"}});
  h.reopen();
  CHECK(h.store().spec(0)->text == "cluster: a\n");
  check_equal(*h.store().node("gpu01"), node_row("gpu01"));
  REQUIRE(h.store().journal(1)->size() == 1);
  const int64_t before = h.store().journal(1)->at(0).seq;
  must(h, {journal_row(1, "a", "started")});
  CHECK(h.store().journal(1)->at(1).seq > before);
  CHECK(h.store().next_run_id() == 2);
}

}  // namespace muster::conformance
