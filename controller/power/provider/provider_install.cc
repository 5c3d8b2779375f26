#include "controller/power/provider/provider_install.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/printable.h"
#include "base/record.h"
#include "base/utf8.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr const char* kRecord = "install-";
constexpr const char* kAgent = "/usr/sbin/muster-agent";
constexpr const char* kAsk =
    "exec /bin/sh -c '. /etc/os-release; echo \"os $ID-$VERSION_ID\"; "
    "echo \"up $(cut -d. -f1 /proc/uptime)\"; echo \"boot $(cat /proc/sys/kernel/random/boot_id)\"'";

std::string last_words(const Output& output) {
  const std::string said = printable(end_of_output(output.err.empty() ? output.out : output.err, 300));
  return said.empty() ? fmt::format("exit status {}", output.exit_code) : said;
}

// "os debian-12" -> "debian-12"
std::string word_after(const std::string& text, const std::string& key) {
  const size_t at = text.find(key + " ");
  if (at == std::string::npos) return "";
  const size_t from = at + key.size() + 1;
  return text.substr(from, text.find_first_of(" \n", from) - from);
}

bool is_boot_id(const std::string& text) {
  return text.size() == 36 && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

bool is_over(const InstallRecord& record) { return record.stage == "joined" || record.stage == "spent"; }

// Returns letters and digits, at least one of each.
std::string random_password() { return "m1" + random_hex(12); }

}  // namespace

std::string install_record_name(const std::string& node) { return kRecord + node; }

std::string node_of_install_record(const std::string& secret) {
  return secret.starts_with(kRecord) ? secret.substr(std::strlen(kRecord)) : "";
}

MUSTER_RECORD(InstallRecord, server, image, os, address, user, old_host_key, opt(old_boot_id), key, stage,
              requested, locked, opt(approval))

std::string to_text(const InstallRecord& record) { return dump_json(record_json(record)); }

Result<InstallRecord> install_record_from(const std::string& text) {
  TRY(const Json json, parse_json(text));
  return read_record<InstallRecord>(json, "installation");
}

Result<std::unique_ptr<SshSession>> new_system(const InstallRecord& record, DurationMs since_request,
                                               const ProviderInstall::Hooks& hooks) {
  const auto key = hooks.host_key(record.address);
  if (!key.ok())
    return fail(Code::unavailable,
                fmt::format("no SSH response at {}: {}", record.address, key.error().message));
  if (*key == record.old_host_key)
    return fail(Code::unavailable,
                fmt::format("{} still has the previous system's host key ({})", record.address, *key));
  SshTarget target;
  target.address = record.address;
  target.user = record.user;
  target.private_key = record.key;
  target.host_key = *key;
  auto session = hooks.connect(target);
  if (!session.ok())
    return fail(Code::unavailable, fmt::format("{}@{} rejects the key of this installation: {}", record.user,
                                               record.address, session.error().message));
  const auto said = (*session)->run(kAsk, "", kMinute);
  if (!said.ok() || !said->ok())
    return fail(Code::unavailable, fmt::format("{} does not report its operating system: {}", record.address,
                                               said.ok() ? last_words(*said) : said.error().message));
  const std::string os = word_after(said->out, "os"), up = word_after(said->out, "up");
  if (os != record.os)
    return fail(Code::conflict, fmt::format("image '{}' is {}, but the spec says {} (power.install.os)",
                                            record.image, os.empty() ? "unknown" : os, record.os));
  const bool number =
      !up.empty() && up.size() < 10 && up.find_first_not_of("0123456789") == std::string::npos;
  if (!number || std::stol(up) * kSecond > since_request + kMinute)
    return fail(Code::unavailable,
                fmt::format("{} has been up for {} s, since before its installation was ordered",
                            record.address, up));
  const std::string boot = word_after(said->out, "boot");
  if (!is_boot_id(boot)) return fail(Code::unavailable, record.address + " does not report its boot id");
  if (boot == record.old_boot_id)
    return fail(Code::unavailable, fmt::format("{} has not rebooted (boot id {})", record.address, boot));
  return session;
}

Status hand_over_by_ssh(SshSession& session, const std::string& agent_binary, const Json& job,
                        DurationMs deadline, Permit& permit) {
  TRY_(put_agent(session, agent_binary, deadline));
  TRY(const auto ready,
      session.run(std::string(kAgent) + " hand-over --stdin", dump_json(job) + "\n", deadline));
  if (ready.exit_code == 4)
    return fail(Code::denied, "its new system cannot hand over to the RAM system: " + last_words(ready));
  if (!ready.ok())
    return fail(Code::failed, "its new system did not get ready to hand over: " + last_words(ready));
  if (!permit.take()) return fail(Code::cancelled, "cancelled before its new system handed over");
  // The connection breaks when the system goes down; whether before or after the reply does not matter.
  const auto left = session.run(std::string(kAgent) + " hand-over --now", "", kMinute);
  if (left.ok() && left->exit_code > 0)
    return fail(Code::failed, "its new system did not hand over: " + last_words(*left));
  return Ok{};
}

struct ProviderInstall::Job {
  std::string node, image, os, approval;
  InstallRecord record;
  Done done;  // null: no longer needed
  SteadyMs phase = {};
  std::function<Result<std::unique_ptr<Reinstall>>()> provider;
  std::string last;  // the last observation, for error messages
  // Permit for the order to the provider, once the order is recorded; null: this job sends no order.
  std::shared_ptr<Permit> order = {};
  std::shared_ptr<Permit> leave = {};  // permit for the handover of the new system
};

ProviderInstall::ProviderInstall(Reactor& reactor, Hooks hooks, const Times& times)
    : reactor_(reactor), hooks_(std::move(hooks)), times_(times) {}
ProviderInstall::~ProviderInstall() { alive_.end(); }

bool ProviderInstall::gone(const JobPtr& job) const {
  const auto found = jobs_.find(job->node);
  return found == jobs_.end() || found->second != job;
}

template <typename T>
void ProviderInstall::call(const JobPtr& job, std::function<Result<T>()> work,
                           std::function<void(Result<T>)> then) {
  auto result = std::make_shared<Result<T>>(fail(Code::failed, "the call did not run"));
  hooks_.offload([result, work = std::move(work)] { *result = work(); },
                 alive_.wrap([this, job, result, then = std::move(then)] {
                   if (!gone(job)) then(std::move(*result));
                 }));
}

void ProviderInstall::later(const JobPtr& job, DurationMs delay, std::function<void()> then) {
  reactor_.after(delay, alive_.wrap([this, job, then = std::move(then)] {
    if (!gone(job)) then();
  }));
}

// Stores the record and continues only when it is durable.
void ProviderInstall::keep(const JobPtr& job, std::function<void()> then) {
  hooks_.save(job->node, to_text(job->record), alive_.wrap([this, job, then](Status saved) {
    if (gone(job)) return;
    if (saved.ok()) return then();
    end(job, fail(Code::unavailable, "the installation cannot be recorded: " + saved.error().message), false);
  }));
}

void ProviderInstall::end(const JobPtr& job, Status result, bool forget_record) {
  if (forget_record) hooks_.erase(job->node);
  jobs_.erase(job->node);
  if (job->done) job->done(std::move(result));
}

// Ends an installation that will not complete; the approval is used up.
void ProviderInstall::spend(const JobPtr& job, const Error& error) {
  job->record.stage = "spent";
  job->record.key.clear();
  keep(job, [this, job, error] { end(job, error, false); });
}

void ProviderInstall::forget(const std::string& node) {
  const auto found = jobs_.find(node);
  if (found == jobs_.end()) return;
  const JobPtr job = found->second;
  jobs_.erase(found);
  if (job->order && job->order->withdraw()) {
    hooks_.erase(node);  // the record states that an order may have been sent, but none was
    return hooks_.note(node, "cancelled before the installation was ordered from the provider");
  }
  if (is_over(job->record)) return;  // its RAM system has joined, or nothing is running
  if (job->leave && !job->leave->withdraw())
    return hooks_.note(
        node, "cancelled after its new system was ordered to hand over: the handover may still happen");
  if (job->record.stage == "intended")
    hooks_.note(node, "cancelled while the order was being sent: the provider may still install the node");
  else if (!job->record.stage.empty())
    hooks_.note(node, "cancelled, but the provider continues the installation");
}

// The caller waits for the RAM system's hello. If it never arrives, the machine still has the installed
// system.
void ProviderInstall::joined(const std::string& node) {
  jobs_.erase(node);
  const auto text = hooks_.load(node);
  if (!text.ok()) return;
  auto record = install_record_from(*text);
  if (!record.ok()) return;
  record->stage = "joined";
  hooks_.save(node, to_text(*record), [node](const Status& saved) {
    if (!saved.ok())
      log::error("could not record that the RAM system joined",
                 {{"node", node}, {"error", saved.error().message}});
  });
}

void ProviderInstall::run_over(const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) {
    const auto text = hooks_.load(node);
    const auto record = text.ok() ? install_record_from(*text) : Result<InstallRecord>(text.error());
    if (record.ok() && is_over(*record)) hooks_.erase(node);
  }
}

void ProviderInstall::install(const std::string& node, const Json& order, Done done) {
  const std::string approval = order.is_object() ? order.value("approval", "") : "";
  const auto running = jobs_.find(node);
  if (running != jobs_.end() && running->second->approval == approval) {
    running->second->done = std::move(done);
    return;
  }
  forget(node);
  auto job = std::make_shared<Job>();
  job->node = node;
  job->approval = approval;
  job->image = order.is_object() ? order.value("image", "") : "";
  job->os = order.is_object() ? order.value("os", "") : "";
  job->done = std::move(done);
  job->phase = reactor_.steady();
  jobs_[node] = job;
  reactor_.post(alive_.wrap([this, job] {
    if (!gone(job)) resume(job);
  }));
}

// If there is a record, the machine's state shows how far the installation got; otherwise none was ordered.
void ProviderInstall::resume(const JobPtr& job) {
  if (job->approval.empty())
    return end(job, fail(Code::invalid, "the reinstall order has no approval"), false);
  auto provider = hooks_.provider(job->node);
  if (!provider.ok()) return end(job, provider.error(), false);
  job->provider = std::move(*provider);
  const auto text = hooks_.load(job->node);
  if (!text.ok()) return text.error().code == Code::not_found ? prepare(job) : end(job, text.error(), false);
  auto record = install_record_from(*text);
  if (!record.ok()) return end(job, std::move(record).error().with(install_record_name(job->node)), false);
  const bool same = record->approval == job->approval;
  if (!same && is_over(*record)) return prepare(job);
  if (record->stage == "spent")
    return end(job,
               fail(Code::denied,
                    "the approved installation was already ordered and did not complete: ask the provider, "
                    "then plan again"),
               false);
  if (record->image != job->image || record->os != job->os) {
    if (same)
      return end(job, fail(Code::denied, "another installation under this approval is running"), false);
    // The old record is overwritten when the new installation is ordered.
    hooks_.note(
        job->node,
        fmt::format("the earlier installation, of image {}, no longer matches the spec and is ignored",
                    record->image));
    return prepare(job);
  }
  job->record = std::move(*record);
  job->record.approval = job->approval;  // this order's approval replaces the recorded one
  go_on(job);
}

// Checks the declared server before anything is done on the recorded one.
void ProviderInstall::go_on(const JobPtr& job) {
  call<Reinstall::Look>(
      job,
      [this, provider = job->provider, server = job->record.server]() -> Result<Reinstall::Look> {
        TRY(const auto outside, provider());
        return outside->look(server, times_.call);
      },
      [this, job](const Result<Reinstall::Look>& look) {
        if (!look.ok()) return end(job, look.error(), false);
        hooks_.note(job->node, "continuing with the installation that was already ordered");
        const bool done = job->record.stage == "ended" || job->record.stage == "joined";
        if (done && *look == Reinstall::Look::idle) return provider_is_done(job);
        watch(job);
      });
}

void ProviderInstall::prepare(const JobPtr& job) {
  struct Seen {
    Reinstall::Ready ready;
    std::string host_key;
  };
  call<Seen>(
      job,
      [this, provider = job->provider, image = job->image, node = job->node,
       declared = hooks_.addresses(job->node)]() -> Result<Seen> {
        TRY(const auto outside, provider());
        Seen seen;
        TRY(seen.ready, outside->prepare(image, times_.call));
        TRY(seen.ready.address, address_of_server(node, seen.ready.server, seen.ready.address, declared));
        seen.host_key = hooks_.host_key(seen.ready.address).value_or("");
        return seen;
      },
      [this, job, old_boot = hooks_.known_boot(job->node)](Result<Seen> seen) {
        if (!seen.ok()) return end(job, seen.error(), false);
        write_intent(job, seen->ready, seen->host_key, old_boot);
      });
}

void ProviderInstall::write_intent(const JobPtr& job, const Reinstall::Ready& ready,
                                   const std::string& old_host_key, const std::string& old_boot_id) {
  auto key = hooks_.make_key();
  if (!key.ok()) return end(job, key.error(), false);
  job->record = {ready.server, job->image, job->os,    ready.address,  ready.user, old_host_key,
                 old_boot_id,  *key,       "intended", reactor_.now(), false,      job->approval};
  job->order = std::make_shared<Permit>();
  keep(job, [this, job] { begin(job); });
}

void ProviderInstall::begin(const JobPtr& job) {
  const auto public_key = hooks_.public_key(job->record.key);
  if (!public_key.ok()) return end(job, public_key.error(), true);
  const Reinstall::Order order{job->record.image, *public_key, random_password(), job->record.server,
                               job->order};
  call<Ok>(
      job,
      [this, provider = job->provider, order]() -> Status {
        TRY(const auto outside, provider());
        return outside->begin(order, times_.call);
      },
      [this, job](const Status& begun) {
        // If the request failed before it was sent, nothing began, whatever the error code.
        if (!begun.ok() && job->order->withdraw())
          return end(job,
                     begun.error().code == Code::timeout ? fail(Code::unavailable, begun.error().message)
                                                         : begun.error(),
                     true);
        if (!begun.ok() && begun.error().code != Code::timeout && begun.error().code != Code::failed)
          return end(job, begun, true);
        hooks_.note(job->node, begun.ok()
                                   ? "the provider accepted its installation"
                                   : "the provider's answer to the installation order was lost; checking");
        if (begun.ok()) job->record.stage = "accepted";
        keep(job, [this, job] { watch(job); });
      });
}

void ProviderInstall::watch(const JobPtr& job) {
  later(job, times_.look, [this, job] {
    call<Reinstall::Look>(
        job,
        [this, provider = job->provider, server = job->record.server]() -> Result<Reinstall::Look> {
          TRY(const auto outside, provider());
          return outside->look(server, times_.call);
        },
        [this, job](const Result<Reinstall::Look>& look) { looked(job, look); });
  });
}

void ProviderInstall::looked(const JobPtr& job, const Result<Reinstall::Look>& look) {
  if (!look.ok() && look.error().code == Code::denied) return end(job, look.error(), false);
  job->last = look.ok() ? "" : look.error().message;
  if (reactor_.steady() - job->phase >= times_.installs)
    return end(
        job,
        fail(Code::failed,
             fmt::format("the installation is not done after {}: ask the provider, then repeat the command{}",
                         to_human(times_.installs), job->last.empty() ? "" : "; " + job->last)),
        false);
  if (!look.ok() || *look == Reinstall::Look::busy) return watch(job);
  if (*look == Reinstall::Look::idle) return job->record.locked ? provider_is_done(job) : nothing_runs(job);
  if (job->record.locked) return watch(job);
  hooks_.note(job->node, "its installation is running");
  job->record.locked = true;
  job->record.stage = "accepted";
  keep(job, [this, job] { watch(job); });
}

// No operation runs: it has not begun yet, is already over, or never began. A system that accepts the
// one-time key proves success.
void ProviderInstall::nothing_runs(const JobPtr& job) {
  const DurationMs waited = reactor_.steady() - job->phase;
  if (waited < times_.grace) return watch(job);
  call<Ok>(
      job,
      [this, record = job->record,
       since = std::max(waited, reactor_.now() - job->record.requested)]() -> Status {
        TRY(const auto session, new_system(record, since, hooks_));
        return Ok{};
      },
      [this, job, waited](Status there) {
        if (there.ok()) return provider_is_done(job);
        if (there.error().code == Code::conflict)
          return spend(job, fail(Code::denied, there.error().message));
        if (waited < times_.begins) return watch(job);
        const bool accepted = job->record.stage != "intended";
        const Error error = fail(
            accepted ? Code::denied : Code::failed,
            fmt::format("the provider {} the installation request, but no installation started within {}; {}",
                        accepted ? "accepted" : "may have accepted", to_human(times_.begins),
                        there.error().message));
        // The provider may still begin an installation that it accepted.
        accepted ? spend(job, error) : end(job, error, true);
      });
}

// Switches the machine on: it is unknown whether the provider leaves it on.
void ProviderInstall::provider_is_done(const JobPtr& job) {
  if (job->record.stage != "joined") job->record.stage = "ended";
  job->phase = reactor_.steady();
  keep(job, [this, job] {
    hooks_.note(job->node, "the provider has finished; waiting for the new system");
    hooks_.power_on(job->node, alive_.wrap([this, job](Status on) {
      if (gone(job)) return;
      if (!on.ok() && (on.error().code == Code::denied || on.error().code == Code::invalid))
        return end(job, on, false);
      await_system(job);
    }));
  });
}

void ProviderInstall::await_system(const JobPtr& job) {
  const DurationMs waited = reactor_.steady() - job->phase;
  const DurationMs since = std::max(waited, reactor_.now() - job->record.requested);
  call<Ok>(
      job,
      [this, record = job->record, since]() -> Status {
        TRY(const auto session, new_system(record, since, hooks_));
        return Ok{};
      },
      [this, job, waited](Status there) {
        if (there.ok()) return hand_over(job);
        const bool never = there.error().code == Code::conflict;
        if (!never && waited < times_.answers)
          return later(job, times_.look, [this, job] { await_system(job); });
        spend(job, fail(Code::denied, never ? there.error().message
                                            : fmt::format("the provider reports the installation as done, "
                                                          "but no new system was found within {}: {}",
                                                          to_human(times_.answers), there.error().message)));
      });
}

void ProviderInstall::hand_over(const JobPtr& job) {
  hooks_.leave_order(job->node, alive_.wrap([this, job](const Result<Json>& order) {
    if (gone(job)) return;
    if (!order.ok()) return end(job, order.error(), false);
    const DurationMs since = std::max(reactor_.steady() - job->phase, reactor_.now() - job->record.requested);
    job->leave = std::make_shared<Permit>();
    call<Ok>(
        job,
        [this, record = job->record, since, params = *order, permit = job->leave]() -> Status {
          TRY(const std::string agent, hooks_.agent());
          TRY(auto session, new_system(record, since, hooks_));
          if (record.user != "root") session = as_root(std::move(session));
          return hand_over_by_ssh(*session, agent, params, kSsh, *permit);
        },
        [this, job](Status left) {
          if (left.ok()) hooks_.note(job->node, "its new system is handing over to the RAM system (kexec)");
          if (left.ok() || left.error().code == Code::denied) return end(job, left, false);
          end(job, fail(Code::failed, left.error().message), false);
        });
  }));
}

}  // namespace muster
