#include "cli/event_words.h"

#include <fmt/format.h>

#include <iterator>

#include "base/event_kind.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/time.h"
#include "cli/terminal.h"

namespace muster::cli {
namespace {

int64_t number_of(const Json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_number() ? found->get<int64_t>() : 0;
}

// ": it is off", or nothing.
std::string behind(const char* separator, const std::string& text) {
  return text.empty() ? "" : separator + text;
}

namespace kinds {

std::string hello(const Json& data) {
  return fmt::format("agent connected: {} system{}{}{}{}", text_at(data, "mode"),
                     behind(", slot ", text_at(data, "slot")), is_true_at(data, "trial") ? ", on trial" : "",
                     is_true_at(data, "loader_skipped") ? ", the boot loader did not boot what was set" : "",
                     behind(", version ", text_at(data, "agent_version")));
}

std::string started(const Json& data) { return fmt::format("order {} began", text_at(data, "order")); }

std::string progress(const Json& data) {
  const int64_t total = number_of(data, "total");
  const std::string share = total > 0 ? fmt::format("{} %", 100 * number_of(data, "done") / total) : "";
  return text_at(data, "text") + behind(" ", share);
}

std::string step(const Json& data) {
  const std::string name = text_at(data, "name").empty() ? text_at(data, "step") : text_at(data, "name");
  return fmt::format("{}: {}{}", name, text_at(data, "status"), behind(": ", text_at(data, "message")));
}

std::string log(const Json& data) {
  const std::string level = text_at(data, "level");
  return (level.empty() || level == "info" ? "" : level + ": ") + text_at(data, "text");
}

std::string finished(const Json& data) {
  const std::string order = text_at(data, "order");
  if (is_true_at(data, "ok"))
    return fmt::format("order {} succeeded{}", order, behind(": ", text_at(data, "message")));
  return fmt::format("order {} failed ({}){}", order, text_at(data, "code"),
                     behind(": ", text_at(data, "message")));
}

std::string run(const Json& data) {
  return fmt::format("{}{}{}{}", text_at(data, "state"), behind(": ", text_at(data, "kind")),
                     is_true_at(data, "resumed") ? ", continued after a restart of the controller" : "",
                     behind(": ", text_at(data, "reason")));
}

std::string action(const Json& data) {
  const int64_t attempt = number_of(data, "attempt");
  const std::string title = text_at(data, "title");
  return fmt::format("{}: {}{}{}", title.empty() ? text_at(data, "action") : title, text_at(data, "event"),
                     attempt > 1 ? fmt::format(", attempt {}", attempt) : "",
                     behind(": ", text_at(data, "message")));
}

std::string wait(const Json& data) {
  const int64_t until = number_of(data, "until");
  return text_at(data, "reason") + behind("; awaits ", text_at(data, "awaited")) +
         (until > 0 ? " until " + to_iso8601(until) : "") + behind("; then ", text_at(data, "next"));
}

// A state, or what was done with the node.
std::string node(const Json& data) {
  const int64_t revision = number_of(data, "revision");
  return text_at(data, "state") + text_at(data, "action") +
         (revision > 0 ? fmt::format(" in revision {}", revision) : "") +
         behind(", serial ", text_at(data, "serial")) + behind(": ", text_at(data, "reason"));
}

std::string power(const Json& data) { return text_at(data, "action"); }

// Of boots and joins: one word, and a sentence.
std::string machine(const Json& data) {
  return fmt::format("{}{}{}", text_at(data, "action"), behind(": ", text_at(data, "text")),
                     behind(", from ", text_at(data, "remote")));
}

std::string console(const Json& data) { return text_at(data, "text"); }

std::string spec(const Json& data) {
  return fmt::format("revision {} stored (digest {})", number_of(data, "revision"),
                     digest_or_dash(text_at(data, "digest")));
}

std::string image(const Json& data) {
  const std::string name = text_at(data, "name");
  const std::string from = text_at(data, "imported"), to = text_at(data, "exported");
  if (const std::string error = text_at(data, "error"); !error.empty()) {
    const char* did = !from.empty() ? "imported" : to.empty() ? "built" : "exported";
    return fmt::format("{} was not {}: {}", from.empty() ? name : from, did, error);
  }
  return fmt::format("{}{}{}{} (digest {})", name, from.empty() && to.empty() ? " built" : "",
                     behind("imported from ", from), behind(" exported to ", to),
                     digest_or_dash(text_at(data, "digest")));
}

std::string secret(const Json& data) {
  return fmt::format("{} {}", text_at(data, "name"), text_at(data, "action"));
}

std::string certificate(const Json& data) {
  return fmt::format("{}, serial {}", text_at(data, "action"), text_at(data, "serial"));
}

// Its state, or what an operator did with it.
std::string rollout(const Json& data) {
  if (const std::string action = text_at(data, "action"); !action.empty())
    return fmt::format("rollout {}: {}", number_of(data, "id"), action);
  return fmt::format("rollout {}: {}, night {}{}", number_of(data, "id"), text_at(data, "state"),
                     number_of(data, "night"), behind(": ", text_at(data, "outcome")));
}

std::string restored(const Json& data) { return text_at(data, "reason"); }

std::string cause(const Json& data) {
  return fmt::format("{} {}{}{}", text_at(data, "name"), text_at(data, "action"),
                     behind(": ", text_at(data, "message")), behind("; ", text_at(data, "reason")));
}

std::string backup(const Json& data) { return "written to " + text_at(data, "path"); }

std::string discovery(const Json& data) { return is_true_at(data, "on") ? "on" : "off"; }

}  // namespace kinds

struct KindWords {
  EventKind kind;
  std::string (*words)(const Json& data);
};
constexpr KindWords kKindWords[] = {{"hello", kinds::hello},
                                    {"started", kinds::started},
                                    {"progress", kinds::progress},
                                    {"step", kinds::step},
                                    {"log", kinds::log},
                                    {"finished", kinds::finished},
                                    {"run", kinds::run},
                                    {"action", kinds::action},
                                    {"wait", kinds::wait},
                                    {"node", kinds::node},
                                    {"power", kinds::power},
                                    {"boot", kinds::machine},
                                    {"join", kinds::machine},
                                    {"console", kinds::console},
                                    {"spec", kinds::spec},
                                    {"image", kinds::image},
                                    {"secret", kinds::secret},
                                    {"certificate", kinds::certificate},
                                    {"rollout", kinds::rollout},
                                    {"restored", kinds::restored},
                                    {"cause", kinds::cause},
                                    {"backup", kinds::backup},
                                    {"discovery", kinds::discovery}};
static_assert(std::size(kKindWords) == EventKind::kAll.size());

}  // namespace

std::string event_words(const Json& event) {
  const Json data = event.value("data", Json::object());
  const std::string kind = text_at(event, "kind");
  std::string words;
  if (data.is_object())
    for (const KindWords& one : kKindWords)
      if (one.kind.word() == kind) words = one.words(data);
  if (words.empty()) return clean(dump_json(data));
  return clean(words + behind(", by ", text_at(data, "by")));
}

}  // namespace muster::cli
