// The bodies that agents post: a join, a batch of events, and in these the results from which inventory and
// verdicts are made. The link takes them with a store in memory.
#include <algorithm>

#include "base/facts.h"
#include "base/json_dump.h"
#include "base/wire.h"
#include "controller/link/link_hub.h"
#include "controller/report/verdict.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fuzz/targets.h"

namespace muster::fuzz {
namespace {

void read_facts(const Json& result) {
  const auto facts = hardware_facts_from_json(result);
  if (!facts.ok()) return demand(!facts.error().message.empty(), "facts rejected without a reason");
  const auto again = hardware_facts_from_json(to_json(*facts));
  demand(again.ok() && to_json(*again) == to_json(*facts), "facts that are not read back as written");
}

void judge(const wire::Event& event) {
  MeasuredStep step;
  step.id = step.group = step.title = "acceptance/step";
  step.node = "node01";
  step.status = "measured";
  const auto result = event.data.find("result");
  if (result != event.data.end()) step.result = *result;
  (void)judge_measurements({step});
}

void take(const wire::EventBatch& batch) {
  ManualReactor reactor;
  MemStore store(reactor);
  LinkHub hub(reactor, store, [](const Json& params) { return Result<Json>(params); });
  uint64_t most = 0, answers = 0;
  for (const wire::Event& event : batch.events) most = std::max(most, event.seq);
  hub.take(NodeName("node01"), batch, [&](const Result<uint64_t>& acknowledged) {
    ++answers;
    demand(!acknowledged.ok() || *acknowledged <= most, "more was acknowledged than was sent");
  });
  reactor.advance(kMinute);
  demand(answers == 1, "a batch without its answer");
  EventQuery all;
  all.limit = batch.events.size() + 1;
  const auto rows = store.events(all);
  demand(rows.ok(), "the log cannot be read");
  for (const EventRow& row : *rows)
    demand(row.node == "node01" && parse_json(row.json).ok(), "a row of another node, or that is no JSON");
}

}  // namespace

void agents_fuzz(std::string_view bytes) {
  const auto json = parse_json(bytes);
  if (!json.ok()) return demand(json.error().code == Code::invalid, "not JSON, but not invalid");
  demand(parse_json(dump_json(*json)).ok(), "JSON that is not read back");
  if (const auto join = wire::join_request_from_json(*json); join.ok())
    demand(wire::join_request_from_json(to_json(*join)).ok(), "a join that is not read back");
  const auto batch = wire::event_batch_from_json(*json);
  if (!batch.ok()) return;
  for (const wire::Event& event : batch->events) {
    const auto result = event.data.find("result");
    if (result != event.data.end()) read_facts(*result);
    judge(event);
  }
  take(*batch);
}

}  // namespace muster::fuzz
