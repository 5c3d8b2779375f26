// A secret in every parameter of every module, on its way through a run: the link, the executor, an agent's
// journal, the database, the log and the report.
#include "agent/core/step_runner.h"
#include "agent/work/file_journal.h"
#include "agent/work/work_runner.h"
#include "controller/bringup/report_forms.h"
#include "controller/link/link_hub.h"
#include "tests/catch.h"
#include "tests/fakes/captured_log.h"
#include "tests/unit/agent/planted_secrets.h"
#include "tests/unit/run/bench.h"

namespace muster {
namespace {

using namespace testing;

// A step for each parameter of each module, with a reference in it, and the twins that carry them out.
struct PlantedSteps {
  static constexpr const char* kReference = "secret:app";
  Json list = Json::array();
  std::map<std::string, StepModule> twins;

  PlantedSteps() {
    for (const StepModule& module : step_modules())
      for (const Json& parameter : module.parameters) {
        wire::Step step;
        step.id = step.module = module.name + "." + parameter.value("name", "");
        step.params = planted(module, parameter.value("name", ""), kReference);
        step.expect = {{"x", {{"min", 1}, {"unit", "x"}}}};
        if (step.params.is_null()) continue;
        twins[step.id] = twin_of(module, kAllSays[twins.size() % std::size(kAllSays)]);
        list.push_back(to_json(step));
      }
  }
  // As the controller's vault does it.
  static Result<Json> with_values(const Json& named) {
    std::string text = dump_json(named);
    for (size_t at = 0; (at = text.find(kReference, at)) != text.npos; at += kApp.size())
      text.replace(at, std::string(kReference).size(), kApp);
    return parse_json(text);
  }
};

std::string text_of(const Write& row) {
  if (const auto* event = std::get_if<EventRow>(&row)) return event->json;
  if (const auto* entry = std::get_if<JournalRow>(&row)) return dump_json(entry->data);
  if (const auto* plan = std::get_if<PlanRow>(&row)) return plan->json;
  if (const auto* node = std::get_if<NodeRow>(&row)) return node->reason + node->faulty_part;
  if (const auto* report = std::get_if<ReportRow>(&row)) return report->json.text() + report->measured;
  return "";
}

// A run with these steps as a check, and then as configuration, which fails: the executor, the link, the
// report, and an agent that does or does not mask what it reports.
class PlantedRun {
 public:
  explicit PlantedRun(bool masked) : masked_(masked) {
    const auto note = [this](const Write& row) {
      places_["database"] += text_of(row);
      return false;
    };
    bench_.store.refuse(note, fail(Code::failed, ""));
    bench_.store.write({SpecRow{1, 1, "cluster: test\n", "sha256:spec", ""}}, {});
    bench_.plan.spec_revision = 1;
    bench_.conclude = [this](const RunRow& run) {
      return conclude(bench_.store, known_of(*bench_.executor, run), key_);
    };
    const auto on_event = [this](const NodeName& node, const wire::Event& event) {
      bench_.executor->on_event(node, event);
    };
    hub_.connect({{}, on_event, {}});
    add("accept", ActionKind::check);
    add("configure", ActionKind::steps);
  }
  // What came of it: text by place.
  std::map<std::string, std::string> places() {
    const CapturedLog log;
    bench_.start();
    bench_.hello("n1", wire::Mode::installed, "b1");
    for (int order = 0; order < 2; ++order) carry_out();
    REQUIRE(bench_.ended.size() == 1);
    const auto report = report_folder(bench_.store, known_of(*bench_.executor, *bench_.store.run(1)));
    REQUIRE(report.ok());
    for (const auto& [name, text] : *report) places_["reports"] += text;
    places_["journal"] = files_.read("/journal").value_or("");
    places_["log"] = log.text();
    return places_;
  }

 private:
  void add(const std::string& name, ActionKind kind) {
    Action action = testing::action("n1", name, kind, {{"steps", steps_.list}, {"stop_on_failure", false}});
    action.max_attempts = 1;
    bench_.add(action);
  }
  wire::WorkOrder sent_order() {
    REQUIRE(bench_.offers.count("n1"));
    hub_.offer("n1", bench_.offers["n1"]);
    std::vector<wire::WorkOrder> orders;
    hub_.poll("n1", {}, [&orders](const wire::PollReply& reply) { orders = reply.orders; });
    REQUIRE(orders.size() == 1);
    CHECK(orders[0].secrets == std::vector<std::string>{kApp});
    return orders[0];
  }
  void carry_out() {
    const wire::WorkOrder order = sent_order();
    wire::EventBatch batch{"b1", "agent", {}};
    const auto emit = [&](const std::string& kind, const Json& data) {
      batch.events.push_back({++seq_, 0, order.id, kind, data});
    };
    Watched process;
    StepContext context{files_, process, "n1"};
    if (masked_) context.secrets = SecretMask(order.secrets);
    context.module = [this](const std::string& name) -> const StepModule* {
      const auto twin = steps_.twins.find(name);
      return twin == steps_.twins.end() ? nullptr : &twin->second;
    };
    context.say = [&](const std::string& text) { emit("log", {{"text", text}}); };
    const auto steps = step_order_from_json(order.params, context);
    REQUIRE(steps.ok());
    emit("started", Json::object());
    const WorkOutcome outcome = run_steps(
        context, *steps, [] { return TimeMs{0}; }, emit);
    REQUIRE_FALSE(outcome.status.ok());
    const Error& error = outcome.status.error();
    const Json finish = {{"ok", false},
                         {"code", std::string(to_string(error.code))},
                         {"message", error.message},
                         {"result", outcome.result}};
    journal_.append({order.id, order.kind_word(), true, finish}, [](Status) {});
    emit("finished", finish);
    hub_.take("n1", batch, [](const Result<uint64_t>& taken) { CHECK(taken.ok()); });
    bench_.reactor.advance(kSecond);
    hub_.let_go("n1", order.id);
  }

  const bool masked_;
  const TempDir folder_;
  Files files_{folder_.path("root")};
  const PlantedSteps steps_;
  const pki::KeyPair key_ = pki::make_signing_key().value();
  uint64_t seq_ = 0;
  std::map<std::string, std::string> places_;
  testing::RunBench bench_;
  LinkHub hub_{bench_.reactor, bench_.store, PlantedSteps::with_values};
  FileJournal journal_{bench_.reactor, files_, "/journal"};
};

}  // namespace

TEST_CASE("a secret in any parameter of any module is in no database, journal, log or report of a run",
          "[secrets]") {
  const auto open = PlantedRun(false).places(), hidden = PlantedRun(true).places();
  CHECK(open.size() == 4);
  for (const auto& [place, text] : open) {
    INFO(place);
    CHECK(shows(text));  // it would be, without the mask
    CHECK_FALSE(shows(hidden.at(place)));
    CHECK(hidden.at(place).find("***") != std::string::npos);
  }
}

TEST_CASE("what an order's work throws is in the agent's log without its secrets", "[secrets]") {
  const TempDir folder;
  Files files(folder.path("root"));
  const auto process = make_process();
  WorkFunctions functions;
  functions.image = [](const wire::WorkOrder&, const auto&, const auto&) -> Result<Json> {
    throw std::runtime_error("cannot read " + kApp);
  };
  wire::WorkOrder order;
  order.kind = wire::OrderKind::image;
  for (const bool named : {false, true}) {
    if (named) order.secrets = {kApp};
    const CapturedLog log;
    const auto reactor = make_reactor(1);
    const auto runner = make_work_runner(*reactor, files, *process, "node01", functions);
    Status ended = Ok{};
    runner->run(
        order, OrderPart::work, [](const std::string&, const Json&) {},
        [&](const WorkOutcome& outcome) {
          ended = outcome.status;
          reactor->stop();
        });
    reactor->run();
    CHECK_FALSE(ended.ok());
    CHECK(log.text().find("an exception was contained") != std::string::npos);
    CHECK(shows(log.text()) != named);
  }
}

}  // namespace muster
