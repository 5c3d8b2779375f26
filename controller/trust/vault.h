// Vault: secrets by name. Stored encrypted, and decrypted only at the moment they are used.
//
// Secrets: BMC passwords ("user:password"), and those that the controller creates itself (`mpi-ssh-key`,
// `munge-key`, the keys of Ceph and BeeGFS). A value never appears in a plan, a log or a report; the API
// lists names only. Thread: the reactor's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

// Returns the key in `path` (64 hexadecimal digits); creates it with mode 0600 if there is none. Code::denied
// if group or others may read the file; Code::corrupt if it does not contain a key. Never replaces an
// existing file, since all secrets would be lost.
Result<std::string> master_key(const std::string& path);

// The key with which the stored secrets are sealed. They are re-sealed in one transaction, with a key that is
// durable in `path`.next before it: if that file is there, musterd ended in between, and this completes the
// replacement or takes it back. Code::corrupt, and both files stay, if neither key opens a secret.
Result<std::string> settled_master_key(const std::string& path, Store& store);

// Encrypts with AES-256-GCM. The secret's name is authenticated, so a sealed value cannot be unsealed under
// another name. Returns base64(nonce + ciphertext + tag), different each time. `key`: from master_key().
Result<std::string> seal(const std::string& key, const std::string& name, const std::string& value);
// Code::corrupt if the value was changed, belongs to a different name, or was sealed with a different key.
Result<std::string> unseal(const std::string& key, const std::string& name, const std::string& sealed);

// True for the names of muster's own keys (controller/power/provider/provider_install.h): operators can
// neither set, delete nor name them in a spec or a playbook, which would send them to a node or a BMC.
bool is_reserved_secret(const std::string& name);

class Vault {
 public:
  // Reads STATE/master.key, or creates it; denied if others may read it.
  static Result<std::unique_ptr<Vault>> open(const std::string& state, Reactor& reactor, Store& store);

  struct Name {
    std::string name;
    TimeMs time;
  };
  Result<std::vector<Name>> list();
  Result<std::string> get(const std::string& name);
  // Returns the two parts of a secret "user:password". denied: reserved.
  struct Login {
    std::string user, password;
  };
  Result<Login> login(const std::string& name);
  // unavailable: the master key is being replaced at this moment.
  void put(const std::string& name, const std::string& value, Store::Done done);
  void remove(const std::string& name, Store::Done done);

  // Seals all secrets with a new master key. After a failure either key is in use, and nothing is lost.
  // unavailable: a secret is being stored at this moment. corrupt: one cannot be opened; nothing was done.
  void replace_master_key(Store::Done done);
  // Replaces one of the secrets that make_own_secrets() makes; not_found: it is none. `write` stores the row,
  // with others in one batch.
  using WriteRow = std::function<void(Write row, Store::Done done)>;
  void replace_own(const std::string& name, const WriteRow& write, Store::Done done);
  // Tells one master key from another, and reveals neither.
  std::string master_key_id() const;

  // Replaces every string "secret:NAME" in `params`. not_found names the missing secret; denied: reserved.
  Result<Json> resolve(const Json& params);

  // Creates each of muster's secrets once; afterwards public_values() has the public part of the MPI key.
  void make_own_secrets(Store::Done done);
  // Returns {"mpi_ssh_key": "ssh-ed25519 AAAA... muster-mpi"}, which playbooks use as public.*
  Json public_values();

 private:
  Result<std::string> named(const std::string& name);
  void make_from(size_t first, Store::Done done);
  void make_once(const std::string& name, const std::function<Result<std::string>()>& make, Store::Done done);
  Vault(std::string path, std::string key, Reactor& reactor, Store& store)
      : path_(std::move(path)), key_(std::move(key)), reactor_(reactor), store_(store) {}
  void store_row(Write row, const WriteRow& write, Store::Done done);
  Result<std::vector<Write>> resealed(const std::string& key);
  const std::string path_;  // of the master key
  std::string key_;
  std::string next_key_;  // while all secrets are being sealed with it
  int writing_ = 0;       // secrets that are being stored
  Reactor& reactor_;
  Store& store_;
};

}  // namespace muster
