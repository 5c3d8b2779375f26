// muster notify, ack: who is sent notices, and which causes are open (docs/notify.md).
#include <fmt/format.h>

#include "base/json_at.h"
#include "cli/cli_context.h"
#include "cli/local_time.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void print_notices(const Json& shown) {
  const Json& causes = list_at(shown, "causes");
  if (causes.empty()) fmt::print("no cause is open\n");
  for (const Json& cause : causes) {
    fmt::print("{}  {:<16} {}\n", clean_at(cause, "cause"), clean_at(cause, "kind"), clean_at(cause, "what"));
    if (const TimeMs since = integer_at(cause, "since"); since > 0)
      fmt::print("    since {}\n", local_time(since));
    if (const Json ack = cause.value("acknowledged", Json()); ack.is_object())
      fmt::print("    acknowledged by {}{}{}\n", clean_at(ack, "by"),
                 text_at(ack, "reason").empty() ? "" : ": ", clean_at(ack, "reason"));
    else
      fmt::print("    next: {}\n", clean_at(cause, "next"));
  }
  if (list_at(shown, "receivers").empty())
    fmt::print("no receiver: add `notify:` to the spec (docs/notify.md)\n");
  for (const Json& receiver : list_at(shown, "receivers")) {
    const TimeMs last = integer_at(receiver, "last_delivery");
    const int64_t lost = integer_at(receiver, "lost");
    fmt::print("receiver {:<16} {} to be delivered{}, last delivery {}\n", clean_at(receiver, "name"),
               integer_at(receiver, "waiting"), lost > 0 ? fmt::format(", {} given up", lost) : "",
               last > 0 ? local_time(last) : "never");
    if (const std::string error = clean_at(receiver, "error"); !error.empty())
      fmt::print("    {} ({} attempts since {})\n", error, integer_at(receiver, "failures"),
                 local_time(integer_at(receiver, "failing_since")));
  }
}

void show_notices(Context& context) {
  const auto shown = Api(context).get("/v1/notices");
  if (!shown.ok()) return complain(context, shown.error());
  show(context, *shown, [&] { print_notices(*shown); });
}

void send_test(Context& context, const std::string& receiver) {
  Api api(context);
  const auto sent = api.post("/v1/notices/test", {{"receiver", receiver}});
  if (!sent.ok()) return complain(context, sent.error());
  for (const Json& one : list_at(*sent, "receivers"))
    if (!text_at(one, "error").empty()) context.exit = kFailed;
  show(context, *sent, [&] {
    for (const Json& one : list_at(*sent, "receivers")) {
      const std::string error = clean_at(one, "error");
      fmt::print("{:<16} {}\n", clean_at(one, "name"), error.empty() ? "delivered" : error);
    }
  });
}

struct AckFlags {
  std::string cause, reason;
};

void acknowledge(Context& context, const AckFlags& flags) {
  Api api(context);
  const auto done = api.post("/v1/causes/" + url_encode(flags.cause) + "/ack",
                             {{"reason", flags.reason}, {"by", "muster ack"}});
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] {
    fmt::print("{}: no more notices until it is over: {}\n", clean_at(*done, "cause"),
               clean_at(*done, "what"));
  });
}

}  // namespace

void add_notify(Verb& app, Context& context) {
  Verb& verb = app.add_verb("notify", "list open causes, receivers of notices, and what is not delivered");
  verb.example("muster notify").example("muster notify test oncall");
  verb.runs([&context] { show_notices(context); });
  auto receiver = std::make_shared<std::string>();
  Verb& testing = verb.add_verb("test", "send a test to one receiver, or to all; exit 1 if one fails");
  testing.add_option("RECEIVER", receiver.get());
  testing.example("muster notify test oncall");
  testing.runs([receiver, &context] { send_test(context, *receiver); });
}

void add_ack(Verb& app, Context& context) {
  auto flags = std::make_shared<AckFlags>();
  Verb& verb = app.add_verb("ack", "send no more notices of a known cause until it is over");
  verb.add_option("CAUSE", &flags->cause, "its id, or the first four digits: see `muster notify`").required();
  verb.add_option("--reason", &flags->reason, "shown by `muster notify`");
  verb.example("muster ack 3fa9 --reason 'PSU on order'");
  verb.runs([flags, &context] { acknowledge(context, *flags); });
}

}  // namespace muster::cli
