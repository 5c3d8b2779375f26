#include "controller/hosts/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/alive.h"
#include "base/digest.h"
#include "controller/bringup/report_forms.h"
#include "controller/hosts/accept_core.h"
#include "controller/hosts/program_files.h"
#include "controller/hosts/reached.h"
#include "controller/spec/own_variables.h"

namespace muster {
namespace {

// A plan is rejected, and made again without them, if nodes stopped responding after they were reached.
constexpr int kMostPlans = 5;

ListedNames listed_names(const std::vector<HostToAccept>& hosts) {
  ListedNames out;
  std::map<std::string, size_t> count;
  for (const auto& host : hosts) ++count[host.short_name];
  for (const auto& host : hosts)
    if (count[host.short_name] == 1) out[host.short_name] = host.name;
  for (const auto& host : hosts) out[host.name] = host.name;
  out.erase("");
  return out;
}

class Session : public AcceptSession {
 public:
  Session(RealReactor& reactor, SessionOptions options, Events events)
      : reactor_(reactor), options_(std::move(options)), events_(std::move(events)) {}
  ~Session() override { alive_.end(); }

  Status prepare();
  void start() override;
  void cancel(const std::string& reason) override;
  Progress progress() override;

 private:
  enum class Phase { reaching, greeting, planning, running, ending, done };
  struct Host {
    HostToAccept given;
    HostHello hello;
    std::optional<ReachedHost> reached;
    std::optional<HostOutcome> out;  // set when the host is left out or drops out
    bool polled = false;             // its agent requested orders in this session
    bool awaited() const { return !reached && !out; }
  };

  HostLinks::Events link_events();
  void on_hello(const std::string& name, const HostHello& hello);
  void on_looked(const std::string& name, const HostLooked& looked);
  void on_gone(const std::string& name, const Error& error);
  void refuse(const std::string& name, HostVerdict verdict, const std::string& reason);
  void fail_in_run(const std::string& name, const std::string& reason);

  void settle();
  void gathered();
  void find_addresses();
  void meet_machines();
  void write_spec();
  void greet();
  void greeted(bool late);
  void plan();
  void planned(Result<MadePlanPtr> made);
  void refused(const std::vector<Refusal>& refusals);
  void look_ahead(const Plan& plan);
  void approve(const MadePlan& made);
  void ended(const RunRow& run);
  void end(Status with);
  void finish();

  std::vector<ReachedHost> present() const;
  std::vector<std::string> present_names() const;
  AddedToRun added() const;
  HostOutcome outcome_of_host(const Host& host) const;

  RealReactor& reactor_;
  const SessionOptions options_;
  const std::string id_ = random_hex(8);
  const Events events_;
  Alive alive_;
  std::unique_ptr<AcceptCore> core_;
  std::shared_ptr<const ProgramFiles> programs_;
  std::optional<KnownMachines> machines_;
  std::unique_ptr<HostLinks> links_;
  std::map<std::string, Host> hosts_;
  Phase phase_ = Phase::reaching;
  bool cancelled_ = false;
  int plans_ = 0;
  Reactor::TimerId greet_timer_ = 0;
  std::vector<std::string> notes_;
  ListedNames names_;
  SessionOutcome outcome_;
};

// ---- beginning ----

Status Session::prepare() {
  if (options_.hosts.empty()) return fail(Code::not_found, "no hosts");
  if (options_.core.agent_binary.empty())
    return fail(Code::not_found,
                "muster-agent, which runs on the hosts during the measurement, is not installed next to this "
                "program");
  if (options_.core.accept_binary.empty())
    return fail(Code::not_found,
                "muster-accept, which runs the measurements, is not installed next to this program");
  AcceptCore::Owner owner{[this] { return added(); }, [this](const RunRow& run) { ended(run); }};
  TRY(core_, AcceptCore::open(reactor_, options_.core, options_.keys, std::move(owner)));
  if (!options_.drift_only) TRY_(core_->find_profile(options_.profile));
  core_->images.programs().offer_gpu(options_.gpu.by_cuda);
  TRY(auto files, program_files(core_->images));
  programs_ = std::make_shared<const ProgramFiles>(std::move(files));
  TRY(machines_, KnownMachines::read(core_->options.state));
  for (const auto& host : options_.hosts) hosts_[host.name].given = host;
  names_ = listed_names(options_.hosts);
  HostLinks::Open open = options_.open;
  if (!open)
    open = [this](HostWireOptions wire, HostWireEvents events) {
      return open_host_wire(reactor_, std::move(wire), std::move(events));
    };
  links_ = std::make_unique<HostLinks>(reactor_, std::move(open), link_events(), options_.timing);
  return Ok{};
}

void Session::start() {
  for (const auto& host : options_.hosts) {
    HostWireOptions wire;
    wire.host = host.name;
    wire.argv = host.argv;
    wire.as_user = options_.as_user;
    wire.agent = core_->options.agent_binary;
    wire.nvml = programs_->nvml;
    if (!options_.beside_jobs && !options_.drift_only) wire.session = id_;
    wire.program = [files = programs_](const std::string& sha256) { return program_of(*files, sha256); };
    links_->add(std::move(wire));
  }
}

HostLinks::Events Session::link_events() {
  HostLinks::Events out;
  out.hello = [this](const std::string& host, const HostHello& hello) { on_hello(host, hello); };
  out.looked = [this](const std::string& host, const HostLooked& looked) { on_looked(host, looked); };
  out.gone = [this](const std::string& host, const Error& error) { on_gone(host, error); };
  out.broken = [this](const std::string& host, const Error&) { core_->link.hang_up(NodeName(host)); };
  out.poll = [this](const std::string& host, std::set<std::string> have, const Presence& present,
                    std::function<void(wire::PollReply)> answer) {
    core_->link.poll(NodeName(host), std::move(have), std::move(answer), present);
    hosts_[host].polled = true;
    if (phase_ == Phase::greeting) greeted(false);
  };
  out.post = [this](const std::string& host, wire::EventBatch batch,
                    std::function<void(Result<uint64_t>)> answer) {
    core_->link.take(NodeName(host), std::move(batch), std::move(answer));
  };
  return out;
}

// ---- hosts that come and go ----

void Session::on_hello(const std::string& name, const HostHello& hello) {
  Host& host = hosts_[name];
  const std::string before = host.hello.boot_id;
  host.hello = hello;
  if (!host.reached || before.empty() || before == hello.boot_id) return;
  if (phase_ == Phase::running) return fail_in_run(name, "the host was restarted during the measurement");
  refuse(name, HostVerdict::refused,
         "the host was restarted, or another machine answers, since it was reached");
}

void Session::on_looked(const std::string& name, const HostLooked& looked) {
  Host& host = hosts_[name];
  auto reached = reached_host(name, looked);
  if (!reached.ok()) return refuse(name, HostVerdict::refused, reached.error().message);
  reached->group = host.given.group;
  if (host.reached) reached->address = host.reached->address;
  reached->boot_id = host.hello.boot_id;
  reached->hostname = host.hello.hostname;
  reached->addresses = {name, host.given.address, host.given.looked_up, host.hello.ssh_server,
                        host.hello.addresses};
  if (host.reached && compare_machines(host.reached->parts, reached->parts).same == SameMachine::no)
    return phase_ == Phase::running ? fail_in_run(name, "a different machine now answers for this host")
                                    : refuse(name, HostVerdict::refused,
                                             "two different machines answer alternately for this host");
  const bool again = host.reached.has_value();
  host.reached = std::move(*reached);
  if (again && phase_ == Phase::running) return;
  const std::string busy = busy_words(host.reached->look);
  if (!busy.empty() && !options_.beside_jobs && !options_.drift_only)
    return refuse(name, HostVerdict::busy, busy);
  if (!again) settle();
}

void Session::on_gone(const std::string& name, const Error& error) {
  core_->link.hang_up(NodeName(name));
  if (phase_ == Phase::running)
    return fail_in_run(name, "the connection was lost and could not be restored: " + error.message);
  refuse(name, HostVerdict::not_reached, error.message);
}

// Leaves out a host: called before the run, or for a host that does not take part in it.
void Session::refuse(const std::string& name, HostVerdict verdict, const std::string& reason) {
  Host& host = hosts_[name];
  links_->leave(name);
  if (host.out || phase_ == Phase::ending || phase_ == Phase::done) return;
  host.out = HostOutcome{name, verdict, reason, host.hello.how, host.hello.why_user};
  if (events_.out) events_.out(*host.out);
  reactor_.post(alive_.wrap([this] { settle(); }));
}

void Session::fail_in_run(const std::string& name, const std::string& reason) {
  links_->leave(name);
  core_->link.hang_up(NodeName(name));
  if (hosts_[name].out) return;
  core_->executor.quarantine(NodeName(name), reason);
}

std::vector<ReachedHost> Session::present() const {
  std::vector<ReachedHost> out;
  for (const auto& [name, host] : hosts_)
    if (host.reached && !host.out) out.push_back(*host.reached);
  return out;
}

std::vector<std::string> Session::present_names() const {
  std::vector<std::string> out;
  for (const auto& host : present()) out.push_back(host.name);
  return out;
}

// ---- from hosts to a plan ----

void Session::settle() {
  if (phase_ == Phase::greeting) return greeted(false);
  if (phase_ != Phase::reaching) return;
  for (const auto& [name, host] : hosts_)
    if (host.awaited()) return;
  gathered();
}

void Session::gathered() {
  phase_ = Phase::greeting;
  std::vector<ReachedHost> all;
  for (const auto& [name, host] : hosts_)
    if (host.reached) all.push_back(*host.reached);
  const auto mistaken = mistaken_hosts(all, names_);
  for (const auto& [name, why] : mistaken) refuse(name, HostVerdict::refused, why);
  std::erase_if(all, [&](const ReachedHost& host) { return mistaken.count(host.name) > 0; });
  if (auto note = note_of_names(all, names_); !note.empty()) notes_.push_back(std::move(note));
  outcome_.drift = drift_of(all);
  if (options_.drift_only) return end(Ok{});
  find_addresses();
  if (present().empty()) return end(Ok{});
  meet_machines();
  write_spec();
}

void Session::find_addresses() {
  std::vector<HostAddresses> known;
  for (const auto& host : present()) known.push_back(host.addresses);
  const auto chosen = choose_addresses(known, core_->needs_addresses(options_.profile));
  for (const auto& [name, address] : chosen.address) hosts_[name].reached->address = address;
  for (const auto& [name, why] : chosen.refused) refuse(name, HostVerdict::refused, why);
}

void Session::meet_machines() {
  const int64_t newest = core_->newest_run();
  for (const auto& host : present()) {
    const MachineChange change = machines_->meet(host.name, host.parts, newest);
    if (change.same == SameMachine::no)
      notes_.push_back(fmt::format(
          "{} is not the machine that had this name in the last run, so its history starts over: {}",
          host.name, fmt::join(change.changed, "; ")));
  }
  for (auto& note : look_notes(present())) notes_.push_back(std::move(note));
}

void Session::write_spec() {
  if (const auto kept = machines_->write(); !kept.ok()) return end(kept.error());
  const auto hosts = present();
  core_->options.lab = all_simulated(hosts);
  const auto made = hosts_spec(options_.cluster, options_.profile, accept_hosts(hosts), options_.vars);
  if (!made.ok()) return end(made.error());
  notes_.insert(notes_.end(), made->notes.begin(), made->notes.end());
  const auto newest = core_->store->spec(0);
  if (newest.ok() && newest->text == made->text) return greet();
  SpecRow row;
  row.revision = core_->store->next_spec_revision();
  row.time = reactor_.now();
  row.text = made->text;
  row.digest = sha256(row.text);
  row.note = "generated from a list of hosts";
  core_->store->write({row}, alive_.wrap([this](Status written) {
    if (!written.ok()) return end(written.error());
    core_->spec.changed();
    greet();
  }));
}

// The hosts' inventories become the nodes'. A plan is made only for agents whose first poll has come.
void Session::greet() {
  if (phase_ != Phase::greeting) return;
  for (const auto& host : present()) core_->take_inventory(host);
  greet_timer_ = reactor_.after(options_.first_words, alive_.wrap([this] { greeted(true); }));
  greeted(false);
}

void Session::greeted(bool late) {
  if (phase_ != Phase::greeting || greet_timer_ == 0) return;
  for (const auto& name : present_names()) {
    if (hosts_[name].polled && core_->executor.mode_of(NodeName(name))) continue;
    if (!late) return;
    refuse(name, HostVerdict::not_reached,
           "its agent did not report within " + to_human(options_.first_words));
  }
  reactor_.cancel(std::exchange(greet_timer_, 0));
  plan();
}

void Session::plan() {
  phase_ = Phase::planning;
  const auto names = present_names();
  if (names.empty()) return end(Ok{});
  if (++plans_ > kMostPlans) return end(fail(Code::failed, "hosts stopped responding one after another"));
  Bringup::Request request;
  request.kind = RequestKind::accept;
  request.nodes = names;
  request.profile = options_.profile;
  core_->bringup->plan_and_store(request, {},
                                 alive_.wrap([this](Result<MadePlanPtr> made) { planned(std::move(made)); }));
}

void Session::planned(Result<MadePlanPtr> made) {
  if (phase_ != Phase::planning) return;
  if (!made.ok()) return end(made.error());
  const MadePlan& plan = **made;
  if (!plan.refusals.empty()) return refused(plan.refusals);
  if (plan.plan->empty())
    return end(fail(Code::failed, "the profile " + options_.profile + " measures nothing on these hosts"));
  if (const auto harmless = measures_only(*plan.plan); !harmless.ok()) return end(harmless.error());
  look_ahead(*plan.plan);
  approve(plan);
}

void Session::look_ahead(const Plan& plan) {
  std::vector<HostRights> rights;
  for (const auto& [name, host] : hosts_) rights.push_back({name, host.hello.root, host.hello.why_user});
  const auto hosts = present();
  auto found = forecast(
      {plan, hosts, rights, options_.gpu, options_.vars.count(own_variable::kLibs) > 0, programs_->perftest});
  const bool first = outcome_.not_measured.empty();  // a plan may be made again
  outcome_.not_measured = std::move(found);
  if (first && !outcome_.not_measured.empty() && events_.not_measured)
    events_.not_measured(outcome_.not_measured);
}

void Session::refused(const std::vector<Refusal>& refusals) {
  const auto names = present_names();
  for (const auto& refusal : refusals) {
    if (std::find(names.begin(), names.end(), refusal.node) == names.end())
      return end(fail(Code::denied, refusal.rule + ": " + refusal.message));
    if (refusal.rule == "not-running")
      refuse(refusal.node, HostVerdict::not_reached, "its agent stopped responding before the measurement");
    else
      refuse(refusal.node, HostVerdict::refused, refusal.rule + ": " + refusal.message);
  }
  plan();
}

void Session::approve(const MadePlan& made) {
  core_->bringup->approve(made.digest, options_.by, alive_.wrap([this](Result<int64_t> run) {
    if (phase_ != Phase::planning) return;
    if (!run.ok() && run.error().code == Code::conflict) return plan();
    if (!run.ok()) return end(run.error());
    outcome_.run = *run;
    phase_ = Phase::running;
    if (cancelled_) core_->executor.cancel("interrupted");
  }));
}

// ---- the end ----

AddedToRun Session::added() const {
  AddedToRun out;
  out.notes = notes_;
  out.history_after = machines_->history_after();
  for (const auto& [name, host] : hosts_)
    if (host.out)
      out.not_measured[name] = fmt::format("{}: {}", to_string(host.out->verdict), host.out->reason);
  return out;
}

void Session::ended(const RunRow& run) {
  if (phase_ != Phase::running || run.id != outcome_.run) return;
  phase_ = Phase::ending;
  struct Work {
    KnownOfRun run;
    std::shared_ptr<RunArchive> archive;
    Result<Report> report = fail(Code::failed, "no report was made");
    std::map<std::string, std::string> files = {};
  };
  const auto work = std::make_shared<Work>(Work{known_of(core_->executor, run), core_->store->archive()});
  work->run.added = added();
  reactor_.offload(
      [work] {
        work->report = report_of(*work->archive, work->run);
        if (auto files = report_folder(*work->archive, work->run); files.ok())
          work->files = std::move(files).value();
      },
      alive_.wrap([this, work] {
        outcome_.report = std::move(work->files);
        if (!work->report.ok()) return end(work->report.error());
        outcome_.title = title(*work->report);
        outcome_.look = work->report->kind == kLook;
        for (const auto& node : work->report->nodes) {
          Host& host = hosts_[node.name];
          if (host.out) continue;
          host.out = outcome_of(node, cancelled_);
          host.out->how = host.hello.how;
          host.out->why_user = host.hello.why_user;
        }
        outcome_.notes = work->report->notes;
        end(Ok{});
      }));
}

void Session::cancel(const std::string& reason) {
  if (std::exchange(cancelled_, true) || phase_ == Phase::done) return;
  if (phase_ == Phase::running) return core_->executor.cancel(reason);
  // Nothing can be cancelled between approval and the run's first row.
  if (phase_ == Phase::ending || core_->executor.active()) return;
  end(Ok{});
}

void Session::end(Status with) {
  if (phase_ == Phase::done) return;
  phase_ = Phase::done;
  if (greet_timer_) reactor_.cancel(std::exchange(greet_timer_, 0));
  outcome_.ended = std::move(with);
  outcome_.cancelled = cancelled_;
  if (outcome_.notes.empty()) outcome_.notes = notes_;
  links_->leave_all(alive_.wrap([this] { finish(); }));
}

HostOutcome Session::outcome_of_host(const Host& host) const {
  if (host.out) return *host.out;
  HostOutcome out;
  out.name = host.given.name;
  out.how = host.hello.how;
  out.why_user = host.hello.why_user;
  out.verdict = HostVerdict::cancelled;
  out.reason = cancelled_ ? "interrupted before the host was measured" : "not measured";
  return out;
}

void Session::finish() {
  for (const auto& host : options_.hosts) {
    HostOutcome out = outcome_of_host(hosts_[host.name]);
    if (options_.drift_only && !hosts_[host.name].out && hosts_[host.name].reached && !cancelled_) {
      out.verdict = HostVerdict::looked_at;
      out.reason.clear();
    }
    out.written = host.written;
    outcome_.hosts.push_back(std::move(out));
  }
  if (outcome_.title.empty()) outcome_.title = title_of(options_.cluster, outcome_.hosts);
  core_->link.close();
  events_.done(std::move(outcome_));
}

AcceptSession::Progress Session::progress() {
  Progress out;
  out.hosts = hosts_.size();
  for (const auto& [name, host] : hosts_) {
    if (host.out) ++out.out;
    if (host.reached) ++out.reached;
    if (host.awaited()) out.awaited.push_back(name);
  }
  out.running = phase_ == Phase::running;
  if (out.running) out.status = core_->status();
  return out;
}

}  // namespace

Result<std::unique_ptr<AcceptSession>> AcceptSession::open(RealReactor& reactor, SessionOptions options,
                                                           Events events) {
  auto session = std::make_unique<Session>(reactor, std::move(options), std::move(events));
  TRY_(session->prepare());
  return std::unique_ptr<AcceptSession>(std::move(session));
}

}  // namespace muster
