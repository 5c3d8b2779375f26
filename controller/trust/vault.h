// Vault: secrets by name. Sealed in the store, opened only at the moment they are used.
//
// Secrets: BMC passwords ("user:password"), and the ones the controller makes itself (`mpi-ssh-key`,
// `munge-key`, the keys of Ceph and BeeGFS). A value never reaches a plan, a log or a report; the API lists
// names only. Thread: the reactor's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/reactor.h"
#include "base/result.h"
#include "controller/store/store.h"

namespace muster {

// A new Ed25519 key, in OpenSSH's format; and the line that goes into authorized_keys.
Result<std::string> make_ssh_key();
Result<std::string> public_ssh_key(const std::string& pem, const std::string& comment);

// Reserved for muster's own keys (controller/power/sakura/provider_install.h): operators can neither set nor
// delete them, nor name them in a spec or a playbook, which would send them to a node or a BMC.
bool is_reserved_secret(const std::string& name);

class Vault {
 public:
  // Reads or makes STATE/master.key; denied when others may read it.
  static Result<std::unique_ptr<Vault>> open(const std::string& state, Reactor& reactor, Store& store);

  struct Name {
    std::string name;
    TimeMs time;
  };
  Result<std::vector<Name>> list();
  Result<std::string> get(const std::string& name);
  // Of "user:password". denied: reserved.
  struct Login {
    std::string user, password;
  };
  Result<Login> login(const std::string& name);
  void put(const std::string& name, const std::string& value, Store::Done done);
  void remove(const std::string& name, Store::Done done);

  // Every string "secret:NAME" in `params`, replaced by the secret. Code::not_found names the one that is
  // missing; denied: reserved.
  Result<Json> resolve(const Json& params);

  // Makes each of them once; afterwards public_values() has the public part of the MPI key.
  void make_own_secrets(Store::Done done);
  // {"mpi_ssh_key": "ssh-ed25519 AAAA... muster-mpi"}: what playbooks may name as public.*
  Json public_values();

 private:
  Result<std::string> named(const std::string& name);
  void make_from(size_t first, Store::Done done);
  void make_once(const std::string& name, const std::function<Result<std::string>()>& make, Store::Done done);
  Vault(std::string key, Reactor& reactor, Store& store)
      : key_(std::move(key)), reactor_(reactor), store_(store) {}
  std::string key_;
  Reactor& reactor_;
  Store& store_;
};

}  // namespace muster
