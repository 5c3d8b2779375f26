// muster runs, cancel: list all runs, cancel the active one.
#include <fmt/format.h>

#include "base/time.h"
#include "cli/attention.h"
#include "cli/cli_context.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void list_runs(Context& context, const FailOn& flags) {
  const auto fails_on = fail_words(Shown::runs, flags);
  if (!fails_on.ok()) return complain(context, fails_on.error());
  const auto runs = Api(context).get("/v1/runs");
  if (!runs.ok()) return complain(context, runs.error());
  context.exit = exit_for_words(Shown::runs, words_of_runs(*runs), *fails_on);
  show(context, *runs, [&] {
    const Json list = runs->value("runs", Json::array());
    if (list.empty()) return fmt::print("no runs yet: `muster up SPEC` starts one\n");
    fmt::print("{:<6} {:<10} {:<26} {:<10} {:<14} {}\n", "RUN", "STATE", "STARTED", "TOOK", "PLAN",
               "APPROVED BY");
    for (const Json& run : list) {
      const auto started = run.value("started", int64_t{0}), ended = run.value("ended", int64_t{0});
      fmt::print("{:<6} {:<10} {:<26} {:<10} {:<14} {}\n", run.value("id", int64_t{0}),
                 run.value("state", ""), to_iso8601(started),
                 ended > started ? to_human(ended - started) : "-",
                 digest_or_dash(run.value("plan_digest", "")), clean_at(run, "approved_by"));
    }
  });
}

// Cancels a run; `run` 0: the active one.
void cancel(Context& context, int64_t run) {
  Api api(context);
  if (run == 0) {
    const auto newest = api.get("/v1/runs/0");
    if (!newest.ok()) return complain(context, newest.error());
    run = newest->value("id", int64_t{0});
  }
  const auto done = api.post(fmt::format("/v1/runs/{}/cancel", run), Json::object());
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] {
    fmt::print(
        "run {} is cancelled: nothing new starts, and each node stops after its current step; nothing is "
        "undone.\n`muster status` shows the state of each node; `muster up SPEC` continues from there\n",
        run);
  });
}

}  // namespace

void add_runs(Verb& app, Context& context) {
  auto flags = std::make_shared<FailOn>();
  Verb& verb = app.add_verb("runs", "list all runs, newest first");
  add_fail_on(verb, Shown::runs, *flags);
  verb.footer("The exit code is about the newest run; one that is active is none to fail on.");
  verb.example("muster runs").example("muster runs --exit-code");
  verb.runs([flags, &context] { list_runs(context, *flags); });
}

void add_cancel(Verb& app, Context& context) {
  auto run = std::make_shared<int64_t>(0);
  Verb& verb = app.add_verb("cancel", "cancel the active run");
  verb.add_option("RUN", run.get(), "cancel only if this run is the active one (default: the active run)")
      .positive();
  verb.footer("A machine that is being imaged stays in the RAM system; the next `muster up` images it.");
  verb.example("muster cancel");
  verb.runs([run, &context] { cancel(context, *run); });
}

}  // namespace muster::cli
