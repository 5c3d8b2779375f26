// What an order's secrets must not reach: whatever a module says, and what its programs show.
#include "agent/core/step_runner.h"
#include "agent/steps/step_modules.h"
#include "agent/work/file_journal.h"
#include "agent/work/work_runner.h"
#include "base/digest.h"
#include "base/json_dump.h"
#include "controller/link/link_hub.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/agent/planted_secrets.h"
#include "tests/unit/agent/step_run.h"

namespace muster {
namespace {

using namespace testing;
using Run = StepRun;

SecretMask mask_of(const std::string& value) { return SecretMask(std::vector<std::string>{value}); }

// All that leaves the agent of a step, in one text.
std::string reported(const StepModule& module, const Json& params, const SecretMask& secrets) {
  Files files("/nonexistent");
  Watched process;
  StepContext context{files, process, "node01"};
  context.secrets = secrets;
  context.module = [&](const std::string& name) { return name == module.name ? &module : nullptr; };
  std::string out;
  const auto emit = [&out](const std::string& kind, const Json& data) { out += kind + dump_json(data); };
  context.say = [&](const std::string& text) { emit("log", {{"text", text}}); };
  const Json steps = Json::array({{{"id", "site/one"}, {"module", module.name}, {"params", params}}});
  const auto order = step_order_from_json({{"steps", steps}}, context);
  REQUIRE(order.ok());
  const WorkOutcome outcome = run_steps(
      context, *order, [] { return TimeMs{0}; }, emit);
  out += dump_json(outcome.result) + (outcome.status.ok() ? "" : outcome.status.error().message);
  if (const auto unmet = first_unmet(context, order->steps)) out += unmet->why;
  return out;
}

}  // namespace

TEST_CASE("a secret in any parameter of any module is in nothing that leaves the agent", "[secrets]") {
  size_t planted_in = 0;
  for (const StepModule& module : step_modules())
    for (const Json& parameter : module.parameters) {
      const Json params = planted(module, parameter.value("name", ""));
      if (params.is_null()) continue;
      ++planted_in;
      for (const Says says : kAllSays) {
        INFO(module.name << "." << parameter.value("name", "") << " " << static_cast<int>(says));
        const StepModule twin = twin_of(module, says);
        CHECK(shows(reported(twin, params, {})));  // it would be, without the mask
        CHECK_FALSE(shows(reported(twin, params, mask_of(kApp))));
      }
    }
  CHECK(planted_in > 100);
}

TEST_CASE("the programs of a step show no secret in their arguments, and get it where they need it",
          "[secrets]") {
  const TempDir folder;
  Files files(folder.path("root"));
  const auto process = make_process();
  StepContext context{files, *process, "node01"};
  // Looks at itself while it runs, as others on the node could, and then says what it knows.
  const std::string script =
      "for what in cmdline environ; do tr '\\0' '\\n' </proc/$$/$what >\"$OUT/$what\"; done; cat "
      ">\"$OUT/input\"; "
      "echo \"$APP\"; cat \"$OUT/input\" >&2; exit 3";
  const Json params = {{"argv", {"sh", "-c", script}},
                       {"creates", "/never"},
                       {"env", {{"APP", kApp}, {"OUT", folder.path("")}}},
                       {"input", kOld}};
  const StepModule* module = find_step_module("command");
  REQUIRE(check_parameters(*module, params).ok());
  const Status applied = module->apply(context, params);
  REQUIRE_FALSE(applied.ok());
  CHECK(shows(applied.error().message, kOld));  // the mask is behind the module
  CHECK(folder.read("cmdline").starts_with("sh\n-c\n"));
  CHECK_FALSE(shows(folder.read("cmdline"), kApp));
  CHECK_FALSE(shows(folder.read("cmdline"), kOld));
  CHECK(folder.read("environ").find("APP=" + kApp + "\n") != std::string::npos);
  CHECK_FALSE(shows(folder.read("environ"), kOld));
  CHECK(folder.read("input") == kOld);
}

TEST_CASE("the check of a command gets the same environment and standard input", "[secrets]") {
  const TempDir folder;
  Files files(folder.path("root"));
  const auto process = make_process();
  StepContext context{files, *process, "node01"};
  Json params = {{"argv", {"false"}},
                 {"check", {"sh", "-c", "test \"$(cat)\" = \"$APP\""}},
                 {"env", {{"APP", kApp}}},
                 {"input", kApp}};
  const StepModule* module = find_step_module("command");
  CHECK(module->check(context, params)->holds == Holds::yes);
  params["input"] = kOld;
  CHECK(module->check(context, params)->holds == Holds::no);
}

TEST_CASE("a message names a program without its arguments", "[secrets]") {
  const TempDir folder;
  Files files(folder.path("root"));
  Watched process;
  process.output.exit_code = 1;
  StepContext context{files, process, "node01"};
  const Json argv = Json::array({"grep", "password=" + kApp, "/dev/null"});
  const auto checked = find_step_module("command")->check(context, {{"argv", argv}, {"check", argv}});
  CHECK(checked->holds == Holds::no);
  CHECK(checked->diff == "`grep` exited with 1");
  CHECK(find_step_module("command")->apply(context, {{"argv", argv}, {"check", argv}}).error().message ==
        "grep exited with 1");
  const auto waited =
      find_step_module("wait_for")->check(context, {{"command", argv}, {"deadline_seconds", 0}});
  CHECK(waited->diff == "`grep` exited with 1");
  CHECK(process.commands.size() == 3);
}

TEST_CASE("an order's secrets are in no event, journal or database", "[secrets]") {
  const TempDir folder;
  Files files(folder.path("root"));
  const auto process = make_process();
  wire::WorkOrder order;
  order.id = "1-0/node01/configure#1";
  order.kind = wire::OrderKind::steps;
  order.secrets = {kApp};
  const Json says = {
      {"argv", {"sh", "-c", "echo \"$APP\" >&2; exit 1"}}, {"creates", "/never"}, {"env", {{"APP", kApp}}}};
  order.params = {{"steps", Json::array({{{"id", "site/one"}, {"module", "command"}, {"params", says}}})}};
  wire::EventBatch batch{"boot", "agent", {}};
  const auto emit = [&batch, &order](const std::string& kind, Json data) {
    wire::Event event;
    event.seq = batch.events.size() + 1;
    event.order = order.id;
    event.kind = kind;
    event.data = std::move(data);
    batch.events.push_back(std::move(event));
  };
  {
    const auto reactor = make_reactor(1);
    const auto runner = make_work_runner(*reactor, files, *process, "node01", WorkFunctions());
    runner->run(order, OrderPart::work, emit, [&](const WorkOutcome& outcome) {
      emit("finished", {{"message", outcome.status.error().message}, {"result", outcome.result}});
      reactor->stop();
    });
    reactor->run();
  }
  REQUIRE(batch.events.size() >= 3);  // progress, step, finished
  const std::string message = batch.events.back().data["message"].get<std::string>();
  CHECK(message.find("***") != std::string::npos);

  ManualReactor reactor;
  FileJournal journal(reactor, files, "/journal");
  journal.append({order.id, order.kind_word(), true, batch.events.back().data}, [](Status) {});
  CHECK(files.read("/journal").value_or("").find("***") != std::string::npos);
  CHECK_FALSE(shows(files.read("/journal").value_or("")));

  MemStore store(reactor);
  LinkHub hub(reactor, store, [](const Json& params) -> Result<Json> { return params; });
  hub.take("node01", batch, [](const Result<uint64_t>&) {});
  reactor.advance(100);
  const auto rows = store.events(0, 100, "node01");
  REQUIRE(rows.ok());
  CHECK(rows->size() >= 2);
  for (const EventRow& row : *rows) CHECK_FALSE(shows(row.json));
}

TEST_CASE("file: neither a secret nor an earlier one is in a diff, whatever the file's mode", "[secrets]") {
  for (const char* mode : {"0600", "0644"}) {
    Run r;
    r.context.secrets = mask_of(kApp);
    r.machine.put("/etc/app.key", kOld + "\n");
    const auto found = r.check("file", {{"path", "/etc/app.key"}, {"content", kApp + "\n"}, {"mode", mode}});
    REQUIRE(found.ok());
    INFO(found->diff);
    CHECK(found->holds == Holds::no);
    CHECK_FALSE(shows(found->diff, kApp));
    CHECK_FALSE(shows(found->diff, kOld));
  }
}

TEST_CASE("file: what a private file had is not shown when it becomes public", "[secrets]") {
  Run r;
  REQUIRE(r.apply("file", {{"path", "/etc/app.key"}, {"content", kOld}, {"mode", "0640"}}).ok());
  const auto found = r.check("file", {{"path", "/etc/app.key"}, {"content", "none\n"}, {"mode", "0644"}});
  CHECK(found->holds == Holds::no);
  CHECK_FALSE(shows(found->diff, kOld));
}

TEST_CASE("file: with a secret and no mode it is its owner's only; a mode that is given wins", "[secrets]") {
  Run r;
  r.context.secrets = mask_of(kApp + "\n");
  const auto mode_of = [&r](Json params) {
    params["path"] = "/etc/app.key";
    REQUIRE(r.apply("file", params).ok());
    CHECK(r.check("file", params)->holds == Holds::yes);
    return r.machine.files().look("/etc/app.key")->mode;
  };
  CHECK(mode_of({{"content", "user=app\n"}}) == 0644);
  CHECK(mode_of({{"content", kApp + "\n"}}) == 0600);  // it was open
  CHECK(mode_of({{"content", kApp + "\n"}, {"mode", ""}}) == 0600);
  CHECK(mode_of({{"content", kApp + "\n"}, {"mode", "0640"}}) == 0640);
  const Json open = {{"path", "/etc/app.key"}, {"content", kApp + "\n"}, {"mode", "0644"}};
  REQUIRE(r.apply("file", open).ok());
  const Json closed = {{"path", "/etc/app.key"}, {"content", kApp + "\n"}};
  CHECK(r.check("file", closed)->diff == "/etc/app.key: mode 0644 -> 0600");
}

TEST_CASE("config: a secret is not shown, and a new file with one is its owner's only", "[secrets]") {
  Run r;
  r.context.secrets = mask_of(kApp);
  Json params = {{"path", "/etc/app.conf"}, {"format", "keyvalue"}, {"values", {{"password", kApp}}}};
  CHECK_FALSE(shows(r.check("config", params)->diff));
  REQUIRE(r.apply("config", params).ok());
  CHECK(r.machine.get("/etc/app.conf") == "password=" + kApp + "\n");
  CHECK(r.machine.snapshot().at("/etc/app.conf").starts_with("100600 "));
  // An earlier value of the secret, in a file that all may read.
  r.machine.put("/etc/app.conf", "password=" + kOld + "\n");
  CHECK_FALSE(shows(r.check("config", params)->diff, kOld));
  // Without a secret, in a file that only its owner may read.
  r.context.secrets = {};
  REQUIRE(r.apply("file", {{"path", "/etc/own.conf"}, {"content", "a=" + kOld}, {"mode", "0600"}}).ok());
  params["path"] = "/etc/own.conf";
  params["values"] = {{"a", "b"}};
  CHECK_FALSE(shows(r.check("config", params)->diff, kOld));
}

TEST_CASE("line: a new file with a secret is its owner's only, and others are readable", "[secrets]") {
  Run r;
  r.context.secrets = mask_of(kApp);
  REQUIRE(r.apply("line", {{"path", "/etc/with"}, {"line", "password=" + kApp}}).ok());
  REQUIRE(r.apply("line", {{"path", "/etc/without"}, {"line", "user=app"}}).ok());
  CHECK(r.machine.snapshot().at("/etc/with").starts_with("100600 "));
  CHECK(r.machine.snapshot().at("/etc/without").starts_with("100644 "));
}

TEST_CASE("a result goes through the mask, and what identifies a step does not", "[secrets]") {
  // A secret that is part of a step's id, of a status and of a module's name.
  const SecretMask secrets(std::vector<std::string>{"site", "command", "failed"});
  const StepModule twin = twin_of(*find_step_module("command"), Says::failure);
  const std::string said = reported(twin, {{"argv", {"x"}}}, secrets);
  CHECK(said.find("\"step\":\"site/one\"") != std::string::npos);
  CHECK(said.find("\"status\":\"failed\"") != std::string::npos);
}

}  // namespace muster
