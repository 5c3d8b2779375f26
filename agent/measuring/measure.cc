#include "agent/measuring/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/core/agent.h"
#include "agent/facts/collect_facts.h"
#include "agent/measuring/descendants.h"
#include "agent/measuring/host_claim.h"
#include "agent/measuring/look_first.h"
#include "agent/measuring/look_tools.h"
#include "agent/measuring/memory_programs.h"
#include "agent/measuring/other_measurement.h"
#include "agent/measuring/own_addresses.h"
#include "agent/measuring/own_folder.h"
#include "agent/measuring/pipe_link.h"
#include "agent/work/work_runner.h"
#include "base/digest.h"
#include "base/json_dump.h"
#include "base/record.h"
#include "base/utf8.h"
#include "base/version.h"
#include "sys/log.h"
#include "sys/reactor.h"

namespace muster {

MUSTER_RECORD(GpuHolder, lenient, gpu, pid, sparse(mib))

namespace {

// Non-blocking exchange over standard input and output on the reactor. Output that cannot be written yet is
// queued; the sender must limit its amount. Callbacks never run inside a call.
class StdStreams {
 public:
  struct Events {
    std::function<void(std::string_view)> in;
    std::function<void()> closed;  // called once, when either stream is closed
  };
  StdStreams(RealReactor& reactor, Events events, int in = 0, int out = 1);
  ~StdStreams();
  StdStreams(const StdStreams&) = delete;
  StdStreams& operator=(const StdStreams&) = delete;

  void send(std::string text);

 private:
  void read_some();
  void write_some();
  void close();

  RealReactor& reactor_;
  Events events_;
  int in_, out_;
  std::string unsent_;
  size_t sent_ = 0;  // of `unsent_`
  bool writing_ = false, closed_ = false;
};

constexpr size_t kPiece = 256 << 10;

void never_block(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

StdStreams::StdStreams(RealReactor& reactor, Events events, int in, int out)
    : reactor_(reactor), events_(std::move(events)), in_(in), out_(out) {
  never_block(in_);
  never_block(out_);
  reactor_.when_ready(in_, RealReactor::Ready::read, [this] { read_some(); });
}

StdStreams::~StdStreams() {
  reactor_.forget(in_);
  reactor_.forget(out_);
}

void StdStreams::close() {
  if (!std::exchange(closed_, true) && events_.closed) events_.closed();
}

void StdStreams::read_some() {
  std::vector<char> buffer(kPiece);
  const ssize_t n = ::read(in_, buffer.data(), buffer.size());
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return close();
  if (n > 0) events_.in(std::string_view(buffer.data(), static_cast<size_t>(n)));
  reactor_.when_ready(in_, RealReactor::Ready::read, [this] { read_some(); });
}

void StdStreams::send(std::string text) {
  if (closed_) return;
  unsent_ += text;
  if (std::exchange(writing_, true)) return;
  reactor_.when_ready(out_, RealReactor::Ready::write, [this] { write_some(); });
}

void StdStreams::write_some() {
  writing_ = false;
  const ssize_t n = ::write(out_, unsent_.data() + sent_, std::min(kPiece, unsent_.size() - sent_));
  if (n < 0 && errno != EAGAIN && errno != EINTR) return close();
  if (n > 0) sent_ += static_cast<size_t>(n);
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
    return;
  }
  writing_ = true;
  reactor_.when_ready(out_, RealReactor::Ready::write, [this] { write_some(); });
}

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr const char* kNvmlProgram = "muster-accept-nvml";
constexpr size_t kWhyBytes = 300;
// For what other processes use; most of it passes while the inventory is made.
constexpr auto kLookFor = std::chrono::seconds(1);
constexpr DurationMs kClaimAgain = 2 * kSecond;

// A journal that stores nothing: no other process ever continues its orders.
class MemoryJournal : public AgentJournal {
 public:
  explicit MemoryJournal(Reactor& reactor) : reactor_(reactor) {}
  Result<std::vector<OrderRecord>> load() override { return std::vector<OrderRecord>{}; }
  void append(const OrderRecord&, Done done) override {
    reactor_.post([done = std::move(done)] { done(Ok{}); });
  }

 private:
  Reactor& reactor_;
};

class Measure {
 public:
  Measure(const std::map<std::string, std::string>& options, const OwnFolder& own)
      : options_(options),
        own_(own),
        plain_(make_process()),
        process_(*plain_),
        reactor_(make_reactor(1)),
        boot_id_(files_.read_line(kBootId)) {}

  int run() {
    ::signal(SIGPIPE, SIG_IGN);
    leave_no_file();
    StdStreams streams(
        *reactor_, {[this](std::string_view bytes) { link_->receive(bytes); }, [this] { link_->closed(); }});
    PipeLink link(
        *reactor_, boot_id_,
        {[&](std::string text) { streams.send(std::move(text)); }, [this](const Error& why) { end(why); }});
    link_ = &link;
    MemoryPrograms programs(
        process_, {[&](const auto& digest, const auto& cancelled) { return link.fetch(digest, cancelled); },
                   [this] { return folder(); }, [](const std::string& text) { log::warning(text); }});
    programs_ = &programs;
    reactor_->on_stop_signal([this] { end(fail(Code::cancelled, "a signal")); });
    streams.send("\nMUSTER1 " + dump_json(hello()) + "\n");
    reactor_->offload([this] { look(); }, [this] { serve(); });
    reactor_->run();
    // Exits without joining the threads, because their work may never end by itself.
    end_descendants();
    ::_exit(status_);
  }

 private:
  std::string option(const std::string& name) const {
    const auto it = options_.find(name);
    return it == options_.end() ? "" : it->second;
  }

  // After the unmount, the file system exists as long as this process has its folder open.
  void leave_no_file() {
    const std::string mounted = option("mounted");
    if (!mounted.empty()) {
      unmounted_ = ::open(mounted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (::umount2(mounted.c_str(), MNT_DETACH) == 0 && unmounted_ >= 0)
        folder_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(unmounted_);
    }
  }

  // In memory if the script found such a place. Created when first needed; the guard removes it.
  Result<std::string> folder() {
    TRY_(made_folder());
    return folder_;
  }
  Status made_folder() {
    if (!folder_.empty()) return Ok{};
    TRY_(own_.make());
    folder_ = own_.path();
    return Ok{};
  }

  Json hello() const {
    utsname system = {};
    ::uname(&system);
    Json out = {{"version", 1},
                {"boot_id", boot_id_},
                {"incarnation", incarnation_},
                {"machine", system.machine},
                {"hostname", system.nodename},
                {"root", ::geteuid() == 0},
                {"how", option("how")},
                {"folder", option("place")},
                {"agent_version", kProgramVersion},
                {"addresses", own_addresses()},
                {"ssh_server", ssh_server_address(files_, ::getpid())}};
    if (const std::string why = option("why"); !why.empty())
      out["why_user"] = std::string(last_bytes(why, kWhyBytes));
    return out;
  }

  // Runs in a thread of the pool.
  void look() {
    LookInput input;
    input.self = ::getpid();
    input.session = option("session");
    const auto begun = std::chrono::steady_clock::now();
    input.earlier = process_table(files_);
    claim(input);
    auto facts = collect_facts(files_);
    if (facts.ok()) look_at_gpus(*facts, input);
    std::this_thread::sleep_until(begun + kLookFor);
    looked_ = to_json(look_first(files_, input));
    const char* path = std::getenv("PATH");
    looked_["tools"] = look_tools(files_, path ? path : "");
    facts_ = facts.ok() ? to_json(*facts) : Json{{"error", facts.error().message}};
  }

  bool loads() const { return !option("session").empty() && option("session") != kNoSession; }

  void claim(LookInput& input) {
    if (!loads()) return;
    auto taken = claim_.take();
    if (taken.ok())
      input.holder = *taken;
    else
      input.no_lock = taken.error().message;
  }

  // The agent from before a lost connection has the lock until it ends.
  void claim_again() {
    if (!loads() || claim_.held()) return;
    if (const auto taken = claim_.take(); !taken.ok() || claim_.held()) return;
    reactor_->after(kClaimAgain, [this] { claim_again(); });
  }

  void look_at_gpus(const HardwareFacts& facts, LookInput& input) {
    const auto gpus = compute_gpus(facts);
    if (gpus == 0) return;
    input.of_gpus = static_cast<int>(gpus);
    input.gpus_looked_at = false;
    if (!files_.exists("/dev/nvidiactl") || option("nvml").empty()) return;
    const auto ready = programs_->ready({{kNvmlProgram, option("nvml"), 0}}, {});
    if (!ready.ok()) return log::warning("GPUs", {{"error", ready.error().message}});
    const auto output = process_.run({.argv = {ready->at(kNvmlProgram)}, .deadline = 30 * kSecond});
    if (!output.ok() || !output->ok()) return;
    const auto reading = parse_json(output->out);
    if (!reading.ok() || !reading->is_object() || !reading->contains("holders")) return;
    input.gpus_looked_at = true;
    for (const Json& one : (*reading)["holders"])
      if (auto holder = read_record<GpuHolder>(one, "holder"); holder.ok())
        input.holders.push_back(std::move(*holder));
  }

  // Returns only functions that do not change this machine.
  WorkFunctions functions() {
    WorkFunctions out;
    out.folder = folder_.empty() ? own_.path() : folder_;
    out.programs = [this](const Json& params, const std::vector<CarriedProgram>& programs,
                          const CancelCheck& cancelled) -> Result<std::map<std::string, std::string>> {
      if (dump_json(params).find("{folder}") != std::string::npos) TRY_(made_folder());
      return programs_->ready(programs, cancelled);
    };
    return out;
  }

  void serve() {
    link_->send_looked(facts_, looked_);
    claim_again();
    AgentIdentity identity;
    identity.mode = wire::Mode::adopted;
    identity.boot_id = boot_id_;
    identity.incarnation = incarnation_;
    identity.version = kProgramVersion;
    identity.jitter_seed = std::hash<std::string>()(incarnation_);
    runner_ = make_work_runner(*reactor_, files_, process_, option("node"), functions());
    agent_ = std::make_unique<Agent>(*reactor_, *link_, journal_, *runner_, identity);
    if (const Status started = agent_->start(); !started.ok()) end(started.error());
  }

  void end(const Error& why) {
    if (why.code != Code::cancelled) log::warning("ends", {{"reason", why.message}});
    status_ = why.code == Code::invalid ? 1 : 0;
    reactor_->stop();
  }

  const std::map<std::string, std::string>& options_;
  const OwnFolder& own_;
  Files files_;
  std::unique_ptr<Process> plain_;
  TiedProcess process_;
  std::unique_ptr<RealReactor> reactor_;
  std::string boot_id_, incarnation_ = random_hex(8);
  MemoryJournal journal_{*reactor_};
  HostClaim claim_;
  PipeLink* link_ = nullptr;
  MemoryPrograms* programs_ = nullptr;
  std::unique_ptr<WorkRunner> runner_;
  std::unique_ptr<Agent> agent_;
  int unmounted_ = -1, status_ = 0;
  std::string folder_;
  Json facts_, looked_;
};

}  // namespace

int run_measure(const std::map<std::string, std::string>& options) {
  const auto folder = options.find("folder");
  const std::string made = folder == options.end() ? "" : folder->second;
  // Every user can see this name in the list of processes, so it is not used again.
  const OwnFolder own(made);
  if (!made.empty()) {
    (void)Files().remove(made + "/muster-agent");
    (void)Files().remove(made);
  }
  return run_guarded([&] { return Measure(options, own).run(); }, [&own] { own.remove(); });
}

}  // namespace muster
