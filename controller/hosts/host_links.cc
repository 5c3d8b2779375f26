#include "controller/hosts/host_links.h"

#include <algorithm>
#include <utility>

namespace muster {

HostLinks::HostLinks(Reactor& reactor, Open open, Events events, HostLinkTiming timing)
    : reactor_(reactor), open_(std::move(open)), events_(std::move(events)), timing_(timing) {}

HostLinks::~HostLinks() {
  alive_.end();
  for (auto& [host, link] : links_) stop_timer(link);
}

// ---- opening ----

void HostLinks::add(HostWireOptions options) {
  const std::string host = options.host;
  links_[host].options = std::move(options);
  waiting_.push_back(host);
  reactor_.post(alive_.wrap([this] { fill(); }));
}

void HostLinks::fill() {
  while (opening_ < timing_.at_once && next_waiting_ < waiting_.size()) {
    const std::string host = waiting_[next_waiting_++];
    if (!links_[host].left) open(host);
  }
}

void HostLinks::open(const std::string& host) {
  Link& link = links_[host];
  link.opened = ++opened_;
  ++link.tries;
  link.tried = reactor_.steady();
  if (!std::exchange(link.opening, true)) ++opening_;
  link.wire = open_(link.options, events_for(host, link.opened));
}

// Null if the host was left, or a newer wire is open.
HostLinks::Link* HostLinks::current(const std::string& host, uint64_t opened) {
  const auto found = links_.find(host);
  if (found == links_.end() || found->second.left || found->second.opened != opened) return nullptr;
  return &found->second;
}

HostWireEvents HostLinks::events_for(const std::string& host, uint64_t opened) {
  const auto now = [this, alive = alive_.watch(), host, opened]() -> Link* {
    return *alive ? current(host, opened) : nullptr;
  };
  HostWireEvents out;
  out.hello = [this, now, host, opened](const HostHello& hello) {
    Link* link = now();
    if (!link) return;
    link->tried = reactor_.steady();  // it is answered: what is lost from now on was dropped
    set_timer(*link, timing_.look, [this, host, opened] {
      if (current(host, opened))
        on_lost(host, fail(Code::failed, "its agent returned no inventory within " + to_human(timing_.look)));
    });
    events_.hello(host, hello);
  };
  out.looked = [this, now, host](const HostLooked& looked) {
    if (now()) on_looked(host, looked);
  };
  out.poll = [this, now, host](std::set<std::string> have, const Presence& present,
                               std::function<void(wire::PollReply)> answer) {
    const Link* link = now();
    if (link && !link->opening) events_.poll(host, std::move(have), present, std::move(answer));
  };
  out.post = [this, now, host](wire::EventBatch batch, std::function<void(Result<uint64_t>)> answer) {
    const Link* link = now();
    if (link && !link->opening) events_.post(host, std::move(batch), std::move(answer));
  };
  out.lost = [this, now, host](const Error& error) {
    if (now()) on_lost(host, error);
  };
  return out;
}

void HostLinks::on_looked(const std::string& host, const HostLooked& looked) {
  Link& link = links_[host];
  stop_timer(link);
  if (std::exchange(link.opening, false)) --opening_;
  link.reached = true;
  link.lost_since = {};
  link.pause = 0;
  fill();
  events_.looked(host, looked);
}

// ---- lost connections ----

// A host whose sudo does not answer is measured as a plain user. One that was reached keeps its user.
bool HostLinks::goes_without_sudo(Link& link, const Error& error) {
  if (link.reached || error.code != Code::timeout || link.options.as_user) return false;
  link.options.as_user = true;
  link.options.why_user = error.message;
  --link.tries;
  return true;
}

bool HostLinks::worth_another(const Link& link, const Error& error) const {
  if (error.code == Code::invalid) return false;  // it does not follow the protocol
  if (link.reached)
    return link.breaks <= timing_.breaks && reactor_.steady() < link.lost_since + timing_.give_up;
  return error.code == Code::unavailable && link.tries < timing_.first_tries &&
         reactor_.steady() < link.tried + timing_.dropped;
}

void HostLinks::on_lost(const std::string& host, const Error& error) {
  Link& link = links_[host];
  stop_timer(link);
  bury(link);
  link.opened = ++opened_;  // events of that wire are ignored from now on
  if (std::exchange(link.opening, false)) --opening_;
  const bool broke = link.reached && !link.lost_since;
  if (broke) link.lost_since = reactor_.steady(), ++link.breaks;
  if (goes_without_sudo(link, error) || worth_another(link, error)) {
    link.pause = std::min(link.pause > 0 ? 2 * link.pause : timing_.again_first, timing_.again_last);
    set_timer(link, link.pause, [this, host] {
      if (!links_[host].left) open(host);
    });
    if (broke) events_.broken(host, error);
  } else {
    link.left = true;
    events_.gone(host, error);
  }
  fill();
}

// The wire may be the caller, so it must not be destroyed here.
void HostLinks::bury(Link& link) {
  if (!link.wire) return;
  const std::shared_ptr<HostWire> wire = std::move(link.wire);
  reactor_.post([wire] {});
}

void HostLinks::set_timer(Link& link, DurationMs delay, std::function<void()> then) {
  stop_timer(link);
  Link* const self = &link;  // elements of a map keep their addresses
  link.timer = reactor_.after(delay, alive_.wrap([self, then = std::move(then)] {
    self->timer = 0;
    then();
  }));
}

void HostLinks::stop_timer(Link& link) {
  if (const auto timer = std::exchange(link.timer, 0)) reactor_.cancel(timer);
}

// ---- leaving ----

void HostLinks::part(Link& link) {
  link.left = true;
  stop_timer(link);
  if (std::exchange(link.opening, false)) --opening_;
  if (!link.wire) return;
  const uint64_t id = ++opened_;
  HostWire& wire = *(leaving_[id] = std::move(link.wire));
  wire.leave([this, alive = alive_.watch(), id] {
    if (!*alive) return;
    // The wire must not be destroyed inside its own call.
    reactor_.post([this, alive, id] {
      if (!*alive) return;
      leaving_.erase(id);
      if (leaving_.empty()) all_left();
    });
  });
}

void HostLinks::leave(const std::string& host) {
  const auto found = links_.find(host);
  if (found == links_.end() || found->second.left) return;
  part(found->second);
  reactor_.post(alive_.wrap([this] { fill(); }));
}

void HostLinks::leave_all(std::function<void()> done) {
  on_all_left_ = std::move(done);
  waiting_.resize(next_waiting_);
  for (auto& [host, link] : links_)
    if (!link.left) part(link);
  leave_timer_ = reactor_.after(kLongestLeave, alive_.wrap([this] {
    leaving_.clear();  // which ends their commands
    all_left();
  }));
  if (leaving_.empty()) all_left();
}

void HostLinks::all_left() {
  if (!on_all_left_) return;
  reactor_.cancel(leave_timer_);
  reactor_.post(std::exchange(on_all_left_, nullptr));
}

}  // namespace muster
