// ProviderInstall: from a rented machine that cannot be booted from the network to one that starts the RAM
// system: its provider installs a system of its own with a single-use key, that system is reached over SSH
// and hands over by kexec.
//
// One record per node, sealed in the vault under "install-NODE", has its progress and the key. It is durable
// before the order is sent: the provider cannot distinguish a repeated order from a second one, so a
// controller that restarted, or got no answer, checks what the machine does and orders again only if nothing
// began. The provider never reports success. What counts is a system that accepts the one-time key, has
// another host key than the one before, runs in another boot than the last one seen on that machine, is the
// declared operating system, and started after the order. A RAM system that did not join, or was lost after
// it, leads back to the installed system, which then hands over again without another installation. An
// approval is used up by one installation. The record has it, and stays if the installation turned out
// useless ("spent"): under the same approval nothing is ordered again, under a different one it is. It ends
// with the run in which the RAM system joined, with the node, or when it is certain that the provider began
// nothing. The host key of a new system is accepted as it is: it cannot be known beforehand, and that system
// gets only the one-time token that an iPXE script would show (docs/decisions/0004-first-boot-stage.md).
// Thread: the reactor's; what blocks runs through `offload`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/reactor.h"
#include "base/result.h"
#include "controller/power/reinstall.h"
#include "controller/power/sakura/declared_address.h"
#include "controller/ssh/ssh.h"

namespace muster {

// The stored progress of one reinstallation.
struct InstallRecord {
  std::string server, image, os;
  std::string address, user;  // of the new system
  std::string old_host_key;   // of the system that answered before; "" none
  std::string old_boot_id;    // of the last system seen on that machine; "" none
  std::string key;            // private; secret
  // intended: perhaps ordered; accepted; ended: the provider is done; joined: the RAM system joined; spent:
  // of no more use, and the key is gone.
  std::string stage;
  TimeMs requested = 0;
  bool locked = false;   // it was seen running
  std::string approval;  // digest of the plan that it belongs to
};
std::string to_text(const InstallRecord& record);
Result<InstallRecord> install_record_from(const std::string& text);
// The name of its secret. A node's row and record are deleted together.
std::string install_record_name(const std::string& node);
// The node of such a secret; "" it is a different one.
std::string node_of_install_record(const std::string& secret);

class ProviderInstall {
 public:
  using Done = std::function<void(Status)>;
  struct Hooks {
    // Worker thread, but for the first three.
    std::function<Result<std::function<Result<std::unique_ptr<Reinstall>>()>>(const std::string& node)>
        provider;
    std::function<DeclaredAddresses(const std::string& node)> addresses;
    std::function<std::string(const std::string& node)> known_boot;  // its agent's last boot id; "" none
    std::function<Result<std::string>(const std::string& address)> host_key;
    std::function<Result<std::unique_ptr<SshSession>>(const SshTarget&)> connect;
    std::function<Result<std::string>()> agent;  // the program's content
    // Reactor's thread.
    std::function<void(Reactor::Task work, Reactor::Task done)> offload;
    std::function<void(const std::string& node, Done)> power_on;
    std::function<void(const std::string& node, std::function<void(Result<Json>)>)> leave_order;
    std::function<Result<std::string>(const std::string& node)> load;  // not_found: there is none
    std::function<void(const std::string& node, const std::string& text, Done)> save;
    std::function<void(const std::string& node)> erase;
    std::function<void(const std::string& node, const std::string& what)> tell;  // live log
    std::function<Result<std::string>()> make_key;                               // private
    std::function<Result<std::string>(const std::string& key)> public_key;       // "ssh-ed25519 AAAA... x"
  };
  struct Times {
    DurationMs call = 90 * kSecond;      // one request, budget and all
    DurationMs look = 20 * kSecond;      // between two looks
    DurationMs grace = 2 * kMinute;      // no lock for this long: there may be a new system already
    DurationMs begins = 10 * kMinute;    // no lock and no new system for this long: nothing started
    DurationMs installs = 60 * kMinute;  // a lock for longer than this: it has failed
    DurationMs answers = 15 * kMinute;   // the new system answers within this, after the provider was done
  };
  // What hand_over() and look_at() of the new system may take.
  static constexpr DurationMs kSsh = 3 * kMinute;

  ProviderInstall(Reactor& reactor, Hooks hooks) : ProviderInstall(reactor, std::move(hooks), Times()) {}
  ProviderInstall(Reactor& reactor, Hooks hooks, const Times& times);
  ~ProviderInstall();

  // `order`: {"image", "os", "approval"}. Done: Ok when the RAM system is on its way. unavailable: not now,
  // nothing was begun; failed: this attempt has failed; denied, invalid: no attempt can help.
  void install(const std::string& node, const Json& order, Done done);
  // No longer needed: from here on nothing is sent, neither to the provider nor to its new system. What was
  // sent before, or may have been, is reported; the provider's operation goes on.
  void forget(const std::string& node);
  // The RAM system joined.
  void joined(const std::string& node);
  // A run has ended, and its approval with it: spent records of its nodes are deleted.
  void run_over(const std::vector<std::string>& nodes);

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;
  template <typename T>
  void call(const JobPtr& job, std::function<Result<T>()> work, std::function<void(Result<T>)> then);
  void later(const JobPtr& job, DurationMs delay, std::function<void()> then);
  void keep(const JobPtr& job, std::function<void()> then);
  void end(const JobPtr& job, Status result, bool forget_record);
  void spend(const JobPtr& job, const Error& error);
  bool gone(const JobPtr& job) const;
  void resume(const JobPtr& job);
  void go_on(const JobPtr& job);
  void prepare(const JobPtr& job);
  void write_intent(const JobPtr& job, const Reinstall::Ready& ready, const std::string& old_host_key,
                    const std::string& old_boot_id);
  void begin(const JobPtr& job);
  void watch(const JobPtr& job);
  void looked(const JobPtr& job, const Result<Reinstall::Look>& look);
  void nothing_runs(const JobPtr& job);
  void provider_is_done(const JobPtr& job);
  void await_system(const JobPtr& job);
  void hand_over(const JobPtr& job);

  Reactor& reactor_;
  const Hooks hooks_;
  const Times times_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::map<std::string, JobPtr> jobs_;
};

// Checks the system that answers at the record's address. Ok: it is the ordered one, and the session is
// logged in. unavailable: not yet; conflict: it is a different one, for good. Worker thread.
Result<std::unique_ptr<SshSession>> new_system(const InstallRecord& record, DurationMs since_request,
                                               const ProviderInstall::Hooks& hooks);
// Copies the agent to it and orders it to hand over to the RAM system that `job` (wire::KexecJob) names.
// denied: that system does not allow it.
// `permit` is taken right before it leaves; cancelled: it stays.
Status hand_over_by_ssh(SshSession& session, const std::string& agent_binary, const Json& job,
                        DurationMs deadline, Permit& permit);

}  // namespace muster
