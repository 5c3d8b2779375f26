// ProviderInstall: starts the RAM system on a rented machine that cannot be booted from the network: the
// provider installs one of its own systems with a single-use key, that system is reached over SSH, and it
// starts the RAM system by kexec.
//
// One record per node, sealed in the vault under "install-NODE", contains its progress and the key. The
// record is durable before the order is sent: the provider cannot distinguish a repeated order from a second
// one, so a controller that restarted, or got no response, checks what the machine does and orders again only
// if nothing began. The provider never reports success. The proof is a system that accepts the one-time key,
// has a host key different from the previous one, has a boot id different from the last one seen on that
// machine, is the declared operating system, and started after the order. If the RAM system does not join, or
// is lost after that, the machine returns to the installed system, which then starts the RAM system again
// without another installation. An approval is used up by one installation. The record contains the approval,
// and is kept if the installation turned out useless ("spent"): under the same approval nothing is ordered
// again, under a different one it is. It is deleted with the run in which the RAM system joined, with the
// node, or if the provider certainly began nothing. The host key of a new system is accepted unverified: it
// cannot be known beforehand, and that system gets only the one-time token that an iPXE script would show
// (docs/decisions/0004-first-boot-stage.md). Thread: the reactor's; what blocks runs through `offload`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/alive.h"
#include "base/json.h"
#include "base/result.h"
#include "controller/ports/reinstall.h"
#include "controller/power/sakura/declared_address.h"
#include "controller/ssh/ssh.h"
#include "sys/reactor.h"

namespace muster {

struct InstallRecord {
  std::string server, image, os;
  std::string address, user;  // of the new system
  std::string old_host_key;   // of the previous system; "": none
  std::string old_boot_id;    // of the last system seen on that machine; "": none
  std::string key;            // private; secret
  // intended: possibly ordered; accepted; ended: the provider is done; joined: the RAM system joined; spent:
  // no longer usable, and the key is deleted.
  std::string stage;
  TimeMs requested = 0;
  bool locked = false;   // the installation was seen running
  std::string approval;  // digest of the plan that it belongs to
};
std::string to_text(const InstallRecord& record);
Result<InstallRecord> install_record_from(const std::string& text);
// Returns the name of the record's secret. A node's row and record are deleted together.
std::string install_record_name(const std::string& node);
// Returns the node of such a secret; "" for any other secret.
std::string node_of_install_record(const std::string& secret);

class ProviderInstall {
 public:
  using Done = std::function<void(Status)>;
  struct Hooks {
    // Called on a worker thread, except the first three.
    std::function<Result<std::function<Result<std::unique_ptr<Reinstall>>()>>(const std::string& node)>
        provider;
    std::function<DeclaredAddresses(const std::string& node)> addresses;
    std::function<std::string(const std::string& node)> known_boot;  // its agent's last boot id; "" none
    std::function<Result<std::string>(const std::string& address)> host_key;
    std::function<Result<std::unique_ptr<SshSession>>(const SshTarget&)> connect;
    std::function<Result<std::string>()> agent;  // content of the agent's binary
    // Reactor's thread.
    std::function<void(Reactor::Task work, Reactor::Task done)> offload;
    std::function<void(const std::string& node, Done)> power_on;
    std::function<void(const std::string& node, std::function<void(Result<Json>)>)> leave_order;
    std::function<Result<std::string>(const std::string& node)> load;  // not_found: there is none
    std::function<void(const std::string& node, const std::string& text, Done)> save;
    std::function<void(const std::string& node)> erase;
    std::function<void(const std::string& node, const std::string& what)> note;  // live log
    std::function<Result<std::string>()> make_key;                               // private
    std::function<Result<std::string>(const std::string& key)> public_key;       // "ssh-ed25519 AAAA... x"
  };
  struct Times {
    DurationMs call = 90 * kSecond;      // one request, budget and all
    DurationMs look = 20 * kSecond;      // interval between two queries
    DurationMs grace = 2 * kMinute;      // no lock for this long: the new system may already run
    DurationMs begins = 10 * kMinute;    // no lock and no new system for this long: nothing started
    DurationMs installs = 60 * kMinute;  // a lock for longer than this: it has failed
    DurationMs answers = 15 * kMinute;   // the new system answers within this, after the provider was done
  };
  // Time limit for the check of the new system and for the handover to the RAM system.
  static constexpr DurationMs kSsh = 3 * kMinute;

  ProviderInstall(Reactor& reactor, Hooks hooks) : ProviderInstall(reactor, std::move(hooks), Times()) {}
  ProviderInstall(Reactor& reactor, Hooks hooks, const Times& times);
  ~ProviderInstall();

  // `order`: {"image", "os", "approval"}. Done: Ok when the RAM system is about to start. unavailable: not
  // now, nothing was begun; failed: this attempt has failed; denied, invalid: retrying cannot help.
  void install(const std::string& node, const Json& order, Done done);
  // Stops the installation: nothing more is sent to the provider or to its new system. What was, or may have
  // been, sent before is reported; the provider's operation continues.
  void forget(const std::string& node);
  void joined(const std::string& node);
  // To be called when a run has ended, and its approval with it: deletes spent records of its nodes.
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
  Alive alive_;
  std::map<std::string, JobPtr> jobs_;
};

// Checks the system at the record's address. Ok: it is the ordered one, and the session is logged in.
// unavailable: not yet; conflict: it is a different one, which will not change. Worker thread.
Result<std::unique_ptr<SshSession>> new_system(const InstallRecord& record, DurationMs since_request,
                                               const ProviderInstall::Hooks& hooks);
// Copies the agent to the system, which starts the RAM system of `job` (wire::KexecJob). denied: the system
// does not allow it. `permit` is taken right before the kexec; cancelled: the system keeps running.
Status hand_over_by_ssh(SshSession& session, const std::string& agent_binary, const Json& job,
                        DurationMs deadline, Permit& permit);

}  // namespace muster
