#include "controller/hosts/host_wire.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/alive.h"
#include "base/json_dump.h"
#include "controller/hosts/bootstrap.h"
#include "controller/hosts/host_message.h"
#include "controller/hosts/lost_reason.h"
#include "sys/contain.h"
#include "sys/os.h"
#include "sys/piped_child.h"

namespace muster {
namespace {

constexpr DurationMs kBeat = 10 * kSecond, kSilent = 60 * kSecond;
// How long a command may take to end after its input was closed, and after SIGTERM. A second is left for
// what follows SIGKILL.
constexpr DurationMs kTerminate = 3 * kSecond, kLeave = kLongestLeave - kTerminate - kSecond;
constexpr DurationMs kLeaveEarly = 2 * kSecond;
// From the login until /bin/sh runs. A dead logind holds each login for 25 s.
constexpr DurationMs kStartUp = 30 * kSecond;
constexpr size_t kKeptLine = 4096, kMostStartUp = 1u << 20;

constexpr const char* kTerminal =
    "the login on this host goes through a terminal (a session recorder, or `script` in ForceCommand or a "
    "start-up file), which binary data cannot pass: exempt this account from it, or use --via";
constexpr const char* kReadsAll =
    "a start-up file of the login shell (~/.bashrc, ~/.bash_profile, /etc/profile.d) starts another shell, "
    "which runs nothing before its input ends (fish): start it in interactive shells only";

class RealHostWire : public HostWire {
 public:
  RealHostWire(RealReactor& reactor, HostWireOptions options, HostWireEvents events)
      : reactor_(reactor), options_(std::move(options)), events_(std::move(events)) {
    const auto packed = std::make_shared<Result<PackedProgram>>(fail(Code::failed, "not packed"));
    reactor_.offload(
        [packed, path = options_.agent] {
          *packed = process_pack_cache().get(path, [&path] { return packed_program(Files(), path); });
        },
        alive_.wrap([this, packed] { begin(*packed); }));
  }
  ~RealHostWire() override {
    alive_.end();
    if (timer_) reactor_.cancel(timer_);
  }

  void leave(std::function<void()> done) override {
    left_ = std::move(done);
    if (timer_) reactor_.cancel(std::exchange(timer_, 0));
    if (!child_ || child_over_) return gone();
    if (stage_ == Stage::talks) send(Json{{"leave", true}});
    child_->close_input();
    const DurationMs grace = stage_ == Stage::talks ? kLeave : kLeaveEarly;
    stage_ = Stage::leaves;
    timer_ = reactor_.after(grace, [this] { terminate(SIGTERM); });
  }

 private:
  // connects: until /bin/sh runs; prepares: the script runs, or waits for sudo.
  enum class Stage { connects, prepares, waits_for_sudo, receives_agent, talks, leaves, lost };

  void terminate(int number) {
    child_->signal(number);
    timer_ = reactor_.after(kTerminate, [this] {
      timer_ = 0;
      child_->signal(SIGKILL);
    });
  }

  void gone() {
    stage_ = Stage::leaves;
    reactor_.post(alive_.wrap([this] {
      if (timer_) reactor_.cancel(std::exchange(timer_, 0));
      child_.reset();
      if (left_) std::exchange(left_, nullptr)();
    }));
  }

  // Called once. The command gets a moment to end by itself: a shell in the middle of the script removes what
  // it created.
  void lose(Error why) {
    if (stage_ == Stage::lost || stage_ == Stage::leaves) return;
    stage_ = Stage::lost;
    why_ = std::move(why);
    if (timer_) reactor_.cancel(std::exchange(timer_, 0));
    if (!child_ || child_over_) return report_lost();
    child_->close_input();
    timer_ = reactor_.after(kLeaveEarly, [this] { terminate(SIGTERM); });
  }

  // Posted, not called at once: `lost` may destroy this object.
  void report_lost() {
    reactor_.post(alive_.wrap([this] {
      if (stage_ != Stage::lost) return;
      if (timer_) reactor_.cancel(std::exchange(timer_, 0));
      child_.reset();
      const auto on_lost = events_.lost;
      if (on_lost) on_lost(why_);
    }));
  }

  void begin(const Result<PackedProgram>& packed) {
    if (stage_ != Stage::connects) return;
    if (!packed.ok()) return lose(Error(packed.error()).with("muster-agent"));
    agent_ = *packed;
    auto child = PipedChild::start(reactor_, options_.argv,
                                   {.out = [this](std::string_view bytes) { receive(bytes); },
                                    .err = [this](std::string_view bytes) { take_err(bytes); },
                                    .out_end = [this] { child_->close_input(); },
                                    .ended = [this](int status) { child_ended(status); }});
    if (!child.ok()) return lose(child.error());
    child_ = std::move(child).value();
    last_sign_ = reactor_.steady();
    beat();
  }

  // Checks periodically that the other end is alive, and sends a keep-alive message.
  void beat() {
    // Outgoing bytes count too: the agent has several megabytes, and the line may be slow.
    const size_t unsent = child_->unsent();
    if (unsent < std::exchange(unsent_, unsent)) last_sign_ = reactor_.steady();
    const DurationMs limit = most_silence();
    if (reactor_.steady() - last_sign_ >= limit) {
      probes_ = stage_ == Stage::connects;
      return lose(silence(std::to_string(limit / kSecond) + " s"));
    }
    if (stage_ == Stage::talks) send(Json{{"alive", true}});
    // Again with each beat: a start-up file that reads a line takes the first one.
    if (stage_ == Stage::connects) child_->send(bootstrap_first_line());
    timer_ = reactor_.after(std::min(kBeat, limit / 3), [this] {
      timer_ = 0;
      beat();
    });
  }

  DurationMs most_silence() const {
    if (stage_ == Stage::talks) return kSilent;
    const bool starts_up = stage_ == Stage::connects && err_.logged_in();
    return starts_up ? std::min(options_.patience, kStartUp) : options_.patience;
  }

  Error silence(const std::string& limit) const {
    if (stage_ == Stage::waits_for_sudo)
      return fail(Code::timeout, "`sudo -n` has not answered for " + limit);
    if (stage_ == Stage::connects && err_.logged_in())
      return fail(Code::unavailable, "logged in, but /bin/sh has not started for " + limit +
                                         ": a start-up file of the login shell waits (~/.bashrc, "
                                         "/etc/profile.d)");
    return fail(Code::unavailable, "the host sent nothing for " + limit);
  }

  void take_err(std::string_view bytes) {
    const bool before = err_.logged_in();
    err_.take(bytes);
    if (err_.logged_in() != before) last_sign_ = reactor_.steady();
  }

  // After a long silence the input was closed. A shell that reads all of it before it runs anything answers
  // now, to the first line.
  void take_late(std::string_view bytes) {
    if (!probes_) return;
    line_.append(bytes);
    if (line_.find("\n" + std::string(kShellLine) + "\n") != std::string::npos)
      why_ = fail(Code::failed, kReadsAll);
    if (line_.size() > kMostStartUp) probes_ = false;
  }

  void child_ended(int status) {
    child_over_ = true;
    if (stage_ == Stage::leaves) return gone();
    if (stage_ == Stage::lost) return report_lost();
    if (shows_output()) keep_line(line_);
    lose(lost_reason({status, err_, start_up_line_, stage_ != Stage::connects, stage_ == Stage::talks}));
  }

  // What is printed after the agent was sent may be its bytes.
  bool shows_output() const {
    return stage_ == Stage::connects || stage_ == Stage::prepares || stage_ == Stage::waits_for_sudo;
  }
  void keep_line(const std::string& line) {
    if (!line.empty()) start_up_line_ = line.substr(0, kKeptLine);
  }

  void send(const Json& message) { child_->send(dump_json(message) + "\n"); }
  void answer(uint64_t number, Json message) {
    if (!child_ || stage_ != Stage::talks) return;
    message["n"] = number;
    send(message);
  }
  void refuse(uint64_t number, const Error& error) {
    answer(number, {{"error", {{"code", to_string(error.code)}, {"message", error.message}}}});
  }

  void receive(std::string_view bytes) {
    if (stage_ == Stage::lost) return take_late(bytes);
    last_sign_ = reactor_.steady();
    const auto alive = alive_.watch();
    while (!bytes.empty() && *alive && stage_ != Stage::lost && stage_ != Stage::leaves) {
      const size_t end = bytes.find('\n');
      line_.append(bytes.substr(0, end));
      if (stage_ != Stage::talks && (start_up_ += std::min(end, bytes.size())) > kMostStartUp)
        return lose(fail(Code::invalid, "the host's shell start-up files print more than 1 MiB"));
      if (line_.size() > kLongestLine)
        return lose(fail(Code::invalid, "the host sent a line that is too long"));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      const std::string line = std::exchange(line_, {});
      stage_ == Stage::talks ? take_message(line) : take_start_up(line);
    }
  }

  void take_start_up(std::string line) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const bool scripted = stage_ == Stage::prepares || stage_ == Stage::waits_for_sudo;
    if (stage_ == Stage::connects && line == kShellLine) {
      send_script();
    } else if (stage_ == Stage::connects && line == kTerminalLine) {
      lose(fail(Code::failed, kTerminal));
    } else if (stage_ == Stage::prepares && line == kSudoLine) {
      stage_ = Stage::waits_for_sudo;
    } else if (stage_ == Stage::waits_for_sudo && line == kUserLine) {
      stage_ = Stage::prepares;
    } else if (scripted && line == kGoLine) {
      stage_ = Stage::receives_agent;
      child_->send(agent_.bytes);
    } else if (stage_ != Stage::connects && line.compare(0, kNoLine.size(), kNoLine) == 0) {
      lose(refusal_of(line.substr(kNoLine.size())));
    } else if (stage_ == Stage::receives_agent && line.compare(0, kHelloLine.size(), kHelloLine) == 0) {
      take_hello(line.substr(kHelloLine.size()));
    } else if (shows_output() && line != kShellLine) {
      keep_line(line);
    }
  }

  // Start-up files are done: nothing of what they wrote is a reason for what comes.
  void send_script() {
    stage_ = Stage::prepares;
    err_.forget();
    start_up_line_.clear();
    child_->send(bootstrap_script({options_.host, options_.as_user, agent_.bytes->size(), agent_.size,
                                   options_.nvml, options_.why_user, options_.session}));
  }

  void take_hello(const std::string& text) {
    const auto hello = host_hello_of(text);
    if (!hello.ok()) return lose(hello.error());
    stage_ = Stage::talks;
    const auto on_hello = events_.hello;
    if (on_hello) on_hello(*hello);
  }

  void take_message(const std::string& line) {
    if (line.empty()) return;
    auto message = host_message_of(line);
    if (!message.ok()) return lose(message.error());
    const uint64_t number = message->number;
    // Copies, because a callback may destroy this object.
    const HostWireEvents events = events_;
    switch (message->kind) {
      case HostMessage::Kind::alive:
        return;
      case HostMessage::Kind::looked:
        return events.looked ? events.looked(message->looked) : void();
      case HostMessage::Kind::program:
        return send_program(number, message->program);
      case HostMessage::Kind::poll:
        return events.poll(std::move(message->have), std::move(message->present),
                           alive_.wrap([this, number](const wire::PollReply& reply) {
                             answer(number, {{"orders", to_json(reply)}});
                           }));
      case HostMessage::Kind::post:
        return events.post(std::move(message->batch),
                           alive_.wrap([this, number](const Result<uint64_t>& taken) {
                             taken.ok() ? answer(number, {{"ack", *taken}}) : refuse(number, taken.error());
                           }));
    }
  }

  void send_program(uint64_t number, const std::string& sha256) {
    if (!options_.program) return refuse(number, fail(Code::not_found, "no programs are available"));
    const auto packed = std::make_shared<Result<PackedProgram>>(fail(Code::failed, "not packed"));
    reactor_.offload(
        [packed, sha256, read = options_.program] {
          *packed = process_pack_cache().get(sha256, [&] { return read(sha256); });
        },
        alive_.wrap([this, number, packed] {
          if (!child_ || stage_ != Stage::talks) return;
          if (!packed->ok()) return refuse(number, packed->error());
          const PackedProgram& program = **packed;
          answer(number, {{"bytes", program.bytes->size()}, {"raw", program.size}});
          child_->send(program.bytes);
        }));
  }

  RealReactor& reactor_;
  HostWireOptions options_;
  HostWireEvents events_;
  std::unique_ptr<PipedChild> child_;
  PackedProgram agent_;
  Stage stage_ = Stage::connects;
  ErrorText err_;
  std::string line_, start_up_line_;
  size_t start_up_ = 0, unsent_ = 0;
  bool child_over_ = false;
  bool probes_ = false;  // whether a shell waits for the end of its input
  Error why_;            // why it was lost
  SteadyMs last_sign_;
  Reactor::TimerId timer_ = 0;
  std::function<void()> left_;
  Alive alive_;
};

}  // namespace

std::unique_ptr<HostWire> open_host_wire(RealReactor& reactor, HostWireOptions options,
                                         HostWireEvents events) {
  return std::make_unique<RealHostWire>(reactor, std::move(options), std::move(events));
}

}  // namespace muster
