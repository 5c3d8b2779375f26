// muster replace: replaces an operator token, munge key, master key or CA that may have leaked
// (docs/replace-secrets.md). The controller knows at which step a replacement is; this shows the step,
// prompts, and has it done, until the replacement is complete or waits for nodes that do not report.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/json_at.h"
#include "base/time.h"
#include "cli/carry_out.h"
#include "cli/cli_context.h"
#include "cli/local_time.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "sys/clock.h"

namespace muster::cli {
namespace {

// Agents poll every 25 s, and renew once a minute at most.
constexpr DurationMs kLongestMove = 10 * kMinute;
constexpr std::chrono::seconds kPause(5);

struct ReplaceFlags {
  std::string without;  // NODES
  bool yes = false;
};

// `key`: of a list of texts, "effects" before a step, "after" behind the last one.
void print_state(const Json& now, const char* key) {
  const TimeMs since = integer_at(now, "since");
  fmt::print("{} {}{}\n", text_at(now, "secret"), text_at(now, "id"),
             since > 0 ? ", since " + local_time(since) : "");
  for (const Json& text : list_at(now, key)) fmt::print("  - {}\n", clean(text.get<std::string>()));
  if (!list_at(now, "left").empty()) fmt::print("still with the old one:\n");
  for (const Json& one : list_at(now, "left"))
    fmt::print("  {:<16} {}\n", text_at(one, "node"), clean_at(one, "why"));
}

bool any_moves(const Json& now) {
  const Json& left = list_at(now, "left");
  return std::any_of(left.begin(), left.end(), [](const Json& one) { return is_true_at(one, "moves"); });
}

// The nodes get the key as they get every other change: by a plan.
void bring(Context& context, const Json& now, const ReplaceFlags& flags) {
  Goal goal;
  for (const Json& node : list_at(now, "apply")) goal.nodes.push_back(node.get<std::string>());
  goal.approval.yes = flags.yes;
  goal.report_dir = "";
  reach(context, goal);
}

// One replacement, from the step at which it is to its end.
class Replacing {
 public:
  Replacing(Context& context, std::string secret, std::string path, const ReplaceFlags& flags)
      : context_(context), secret_(std::move(secret)), path_(std::move(path)), flags_(flags), api_(context) {}

  void go_on() {
    auto now = api_.get(path_);
    for (;;) {
      if (!now.ok()) return complain(context_, now.error());
      const std::string step = text_at(*now, "step");
      if (shows_only(step)) return end(*now, step == "wait" ? kPartial : kAccepted);
      if (!done_.empty() && step != "wait" && step != "withdraw") return end(*now, kAccepted);
      if (step == "apply") {
        if (confirm(*now)) bring(context_, *now, flags_);
        return;
      }
      if (step == "wait") {
        if (!any_moves(*now) || monotonic_ms() > until_) return end(*now, kPartial);
        wait(*now);
        now = api_.get(path_);
        continue;
      }
      if (!confirm(*now)) return;
      auto after = api_.post(path_, {{"id", text_at(*now, "id")}, {"step", step}});
      if (!after.ok()) return complain(context_, unknown_if_lost(std::move(after).error()));
      done_ = step;
      if (!context_.json) fmt::print("{}: done\n", step);
      if (!list_at(*after, "apply").empty()) return bring(context_, *after, flags_);
      now = std::move(after);
    }
  }

 private:
  bool shows_only(const std::string& step) const {
    if (flags_.yes) return false;
    return context_.json || (step == "wait" && ::isatty(STDIN_FILENO) != 1);
  }
  void end(const Json& now, Exit exit) {
    context_.exit = list_at(now, "left").empty() ? exit : kPartial;
    const bool is_over = exit == kAccepted && !done_.empty();
    show(context_, now, [&] { print_state(now, is_over ? "after" : "effects"); });
  }
  bool confirm(const Json& now) {
    if (!context_.json) print_state(now, "effects");
    const Status agreed = confirmed(context_, flags_.yes, "Do this?");
    if (!agreed.ok()) complain(context_, agreed.error());
    return agreed.ok();
  }
  void wait(const Json& now) {
    done_ = "wait";
    const size_t left = list_at(now, "left").size();
    if (!context_.json && left != shown_) print_state(now, "effects");
    shown_ = left;
    std::this_thread::sleep_for(kPause);
  }
  Error unknown_if_lost(Error error) const {
    if (error.code != Code::timeout) return error;
    return fail(error.code, fmt::format("{}; whether it was done is unknown: `muster replace {}` shows it",
                                        error.message, secret_));
  }

  Context& context_;
  const std::string secret_, path_;
  const ReplaceFlags& flags_;
  Api api_;
  std::string done_;  // the last step in which this took part
  size_t shown_ = 0;
  const DurationMs until_ = monotonic_ms() + kLongestMove;
};

void replace(Context& context, const std::string& secret, const ReplaceFlags& flags) {
  const auto without = node_list(flags.without);
  if (!without.ok()) return complain(context, without.error());
  std::string path = "/v1/replace/" + secret;
  if (!without->empty()) path += "?without=" + url_encode(fmt::format("{}", fmt::join(*without, ",")));
  Replacing(context, secret, path, flags).go_on();
}

}  // namespace

void add_replace(Verb& app, Context& context) {
  auto flags = std::make_shared<ReplaceFlags>();
  Verb& verb = app.add_verb(
      "replace", "replace a token or key that may have leaked; shows what that does before it is done");
  verb.needs_verb();
  verb.footer(
      "On the controller host only. An interrupted replacement goes on when the command is repeated. With "
      "--json and without --yes it is only shown.\n"
      "Exit: 0 done, 1 failed, 2 bad usage, 3 nodes still have the old one, 4 not approved, or something "
      "changed meanwhile");
  verb.example("muster replace token");
  const std::pair<const char*, const char*> secrets[] = {
      {"token", "the operators' token for the TLS port"},
      {"munge-key",
       "the key by which Slurm's daemons recognise each other: maintenance for the whole cluster"},
      {"master-key", "the key under which secrets are sealed in the database"},
      {"ca", "the CA by which agents and controller recognise each other; jobs run on"}};
  for (const auto& [name, help] : secrets) {
    Verb& one = verb.add_verb(name, help);
    one.example(fmt::format("muster replace {}", name));
    if (std::string(name) == "ca") one.example("muster replace ca --without gpu07");
    one.add_flag("--yes,-y", &flags->yes, "do it without a prompt");
    if (std::string(name) == "ca")
      one.add_option("--without", &flags->without,
                     "NODES: withdraw the old CA although these have not moved; they must be re-imaged")
          .check(wrong_list);
    one.runs([flags, &context, secret = std::string(name)] { replace(context, secret, *flags); });
  }
}

}  // namespace muster::cli
