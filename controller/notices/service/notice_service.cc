#include "controller/notices/service/notice_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/digest.h"
#include "sys/log.h"

namespace muster {

using notices::Book;
using notices::Notice;

namespace {

constexpr size_t kTestId = 4;  // bytes

Json cause_json(const notices::OpenCause& open) {
  Json out = {{"cause", open.cause},    {"kind", open.kind},   {"what", open.what},
              {"detail", open.detail},  {"next", open.next},   {"nodes", open.nodes},
              {"since", open.since},    {"known", open.known}, {"present", open.present},
              {"changes", open.changes}};
  out["acknowledged"] =
      open.ack ? Json({{"by", open.ack->by}, {"reason", open.ack->reason}, {"time", open.ack->time}})
               : Json();
  return out;
}

}  // namespace

NoticeService::~NoticeService() { parts_.reactor.cancel(timer_); }

void NoticeService::begin() {
  begun_ = parts_.reactor.steady();
  tick();
}

// A book that cannot be read begins again: what is open is then sent once more, which loses nothing.
bool NoticeService::load() {
  if (loaded_) return true;
  const auto row = parts_.store.notices();
  if (!row.ok() && row.error().code != Code::not_found) {
    log::error("the notices cannot be read", {{"error", row.error().message}});
    return false;
  }
  loaded_ = true;
  if (!row.ok()) return true;
  auto book = notices::book_from_text(row->text);
  if (book.ok())
    book_ = std::move(book).value();
  else
    log::error("the notices cannot be read, and begin again", {{"error", book.error().message}});
  return true;
}

void NoticeService::tick() {
  timer_ = parts_.reactor.after(kTurn, alive_.wrap([this] { tick(); }));
  if (!load()) return;
  if (parts_.reactor.steady() - begun_ >= kGrace) take_turn();
  flush();
  send_due();
}

void NoticeService::take_turn() {
  if (turning_) return;
  const auto site = parts_.site();
  if (!site.ok()) return;
  turning_ = true;
  const SteadyMs at = parts_.reactor.steady();
  notices::Turn turn;
  turn.now = parts_.reactor.now();
  // The first turn goes by the wall clock: it is the only one that both lives of the controller had.
  turn.first = !last_turn_;
  turn.elapsed = last_turn_ ? at - last_turn_ : book_.time > 0 ? turn.now - book_.time : 0;
  turn.local = site->zone.at(turn.now);
  turn.window = parts_.window(turn.now);
  show_failing();
  auto causes = parts_.causes();
  edit({[causes = std::move(causes), notify = site->notify, turn](Book& book) {
          return notices::turn(book, causes, notify, turn);
        },
        [this, at](const Status& written) {
          turning_ = false;
          if (written.ok()) last_turn_ = at;
        }});
}

void NoticeService::edit(Edit one) {
  edits_.push_back(std::move(one));
  flush();
}

// Edits that come while a row is being written are in the next one.
void NoticeService::flush() {
  if (writing_ || edits_.empty() || !load()) return;
  auto edits = std::make_shared<std::deque<Edit>>(std::exchange(edits_, {}));
  auto next = std::make_shared<Book>(book_);
  bool changed = false;
  for (Edit& one : *edits)
    if (one.apply(*next)) changed = true;
  const auto written = [this, edits, next](const Status& result) {
    writing_ = false;
    if (result.ok()) book_ = std::move(*next);
    if (!result.ok()) log::error("the notices cannot be written", {{"error", result.error().message}});
    for (Edit& one : *edits) one.done(result);
    if (!result.ok()) return;  // the next turn tries again
    flush();
    send_due();
  };
  writing_ = true;
  if (!changed) return written(Ok{});
  parts_.store.write({NoticesRow{1, parts_.reactor.now(), notices::to_text(*next)}},
                     alive_.wrap([written](const Status& result) { written(result); }));
}

void NoticeService::send_due() {
  if (writing_ || !loaded_) return;
  const auto site = parts_.site();
  if (!site.ok()) return;
  const LocalTime local = site->zone.at(parts_.reactor.now());
  for (const auto& [name, receiver] : site->notify.receivers) {
    if (busy_.count(name)) continue;
    const Notice* notice = notices::next_for(book_, receiver, local);
    if (!notice) continue;
    busy_.insert(name);
    // Posted: a `sent` that comes at once would change the book that is being read here.
    parts_.reactor.post(alive_.wrap([this, site = *site, receiver = receiver,
                                     notice = notices::as_wanted(*notice, receiver, site->notify)] {
      send_one(site, receiver, notice);
    }));
  }
}

void NoticeService::send_one(const Site& site, const Receiver& receiver, const Notice& notice) {
  const auto done = [this, name = receiver.name, id = notice.id](const Status& result) {
    sent(name, id, result);
  };
  const auto ready = with_secrets(receiver);
  if (!ready.ok()) return done(ready.error());
  parts_.send(*ready, notice, site.cluster, alive_.wrap(done));
}

void NoticeService::sent(const std::string& receiver, const std::string& id, const Status& result) {
  if (!result.ok())
    log::warning("a notice was not delivered",
                 {{"receiver", receiver}, {"id", id}, {"error", result.error().message}});
  edit({[receiver, id, result, now = parts_.reactor.now()](Book& book) {
          if (result.ok())
            notices::delivered(book, receiver, id, now);
          else
            notices::failed(book, receiver, id, result.error());
          return true;
        },
        [this, receiver, id, result](const Status& written) {
          if (written.ok()) return void(busy_.erase(receiver));
          // Until it is stored, this receiver gets nothing: it would be sent twice more.
          parts_.reactor.after(kTurn,
                               alive_.wrap([this, receiver, id, result] { sent(receiver, id, result); }));
        }});
}

Result<Receiver> NoticeService::with_secrets(const Receiver& receiver) const {
  Receiver out = receiver;
  if (receiver.way != ReceiverWay::webhook) return out;
  Json names = {{"url", receiver.webhook.url}, {"headers", Json::object()}};
  for (const auto& [name, value] : receiver.webhook.headers) names["headers"][name] = value;
  TRY(const Json values, parts_.secrets(names));
  out.webhook.url = values.at("url").get<std::string>();
  for (auto& [name, value] : out.webhook.headers) value = values.at("headers").at(name).get<std::string>();
  return out;
}

std::vector<Cause> NoticeService::recalled() {
  return last_turn_ || !load() ? std::vector<Cause>() : notices::present_causes(book_);
}

Json NoticeService::shown() {
  Json causes = Json::array(), receivers = Json::array();
  if (load())
    for (const auto& [name, open] : book_.causes)
      if (open.present || open.known) causes.push_back(cause_json(open));
  const auto site = parts_.site();
  if (site.ok())
    for (const auto& [name, receiver] : site->notify.receivers) {
      const auto found = book_.receivers.find(name);
      const notices::ReceiverState state =
          found == book_.receivers.end() ? notices::ReceiverState{} : found->second;
      receivers.push_back({{"name", name},
                           {"waiting", notices::waiting_for(book_, name)},
                           {"lost", state.lost},
                           {"failures", state.failures},
                           {"error", state.error},
                           {"failing_since", state.failing_since},
                           {"last_delivery", state.last_delivery}});
    }
  const Counts all = counts();
  return {{"causes", causes}, {"receivers", receivers}, {"waiting", all.waiting}, {"lost", all.lost}};
}

NoticeService::Counts NoticeService::counts() const {
  Counts out;
  for (const Notice& notice : book_.waiting) out.waiting += static_cast<int64_t>(notice.to.size());
  out.lost = book_.lost;
  for (const auto& [name, state] : book_.receivers) out.lost += state.lost;
  if (const auto site = parts_.site(); site.ok())
    for (const auto& [name, receiver] : site->notify.receivers)
      out.failing[name] = notices::is_failing(book_, name);
  return out;
}

// The text has no error, which may differ with each attempt.
void NoticeService::show_failing() {
  const std::string front = notices::receiver_topic("");
  std::erase_if(parts_.problems, [&](const auto& one) { return one.first.starts_with(front); });
  for (const auto& [name, fails] : counts().failing) {
    if (!fails) continue;
    const int64_t lost = book_.receivers.at(name).lost;
    parts_.problems[notices::receiver_topic(name)] = fmt::format(
        "does not take notices{}: see `muster notify`", lost > 0 ? fmt::format(", {} given up", lost) : "");
  }
}

void NoticeService::acknowledge(const std::string& cause, notices::Acknowledged ack, Done done) {
  if (!load()) return done(fail(Code::unavailable, "the notices cannot be read from the store"));
  ack.time = parts_.reactor.now();
  auto found = std::make_shared<Result<notices::OpenCause>>(fail(Code::not_found, cause));
  edit({[cause, ack = std::move(ack), found](Book& book) {
          *found = notices::acknowledge(book, cause, ack);
          return found->ok();
        },
        [found, done = std::move(done)](const Status& written) {
          if (!found->ok()) return done(found->error());
          done(written.ok() ? Result<Json>(cause_json(**found)) : Result<Json>(written.error()));
        }});
}

void NoticeService::test(const std::string& receiver, Done done) {
  const auto site = parts_.site();
  if (!site.ok()) return done(site.error());
  std::vector<Receiver> to;
  for (const auto& [name, one] : site->notify.receivers)
    if (receiver.empty() || receiver == name) to.push_back(one);
  if (to.empty())
    return done(receiver.empty()
                    ? fail(Code::not_found, "the spec declares no receiver: see `notify` in docs/spec.md")
                    : fail(Code::not_found, "no receiver '" + receiver + "' in the spec"));
  struct Results {
    Json list = Json::array();
    size_t open = 0;
  };
  auto results = std::make_shared<Results>();
  results->open = to.size();
  const Notice notice = notices::test_notice(random_hex(kTestId), parts_.reactor.now());
  for (const Receiver& one : to) {
    const auto note = [results, done, name = one.name](const Status& sent) {
      results->list.push_back({{"name", name}, {"error", sent.ok() ? "" : sent.error().message}});
      if (--results->open == 0) done(Json({{"receivers", results->list}}));
    };
    const auto ready = with_secrets(one);
    if (ready.ok())
      parts_.send(*ready, notice, site->cluster, note);
    else
      note(ready.error());
  }
}

}  // namespace muster
