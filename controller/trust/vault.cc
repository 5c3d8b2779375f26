#include "controller/trust/vault.h"

#include <libssh/libssh.h>

#include "base/digest.h"
#include "controller/trust/seal.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr char kMpiKey[] = "mpi-ssh-key";
constexpr char kReference[] = "secret:";
constexpr char kReserved[] = "install-";

struct SshKey {
  ssh_key key = nullptr;
  ~SshKey() { ssh_key_free(key); }
};

}  // namespace

Result<std::string> make_ssh_key() {
  SshKey made;
  char* text = nullptr;
  if (ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &made.key) != SSH_OK ||
      ssh_pki_export_privkey_base64(made.key, nullptr, nullptr, nullptr, &text) != SSH_OK)
    return fail(Code::failed, "an SSH key could not be created");
  std::string pem = text;
  ssh_string_free_char(text);
  if (pem.empty() || pem.back() != '\n') pem += '\n';
  return pem;
}

Result<std::string> public_ssh_key(const std::string& pem, const std::string& comment) {
  SshKey key;
  char* text = nullptr;
  if (ssh_pki_import_privkey_base64(pem.c_str(), nullptr, nullptr, nullptr, &key.key) != SSH_OK ||
      ssh_pki_export_pubkey_base64(key.key, &text) != SSH_OK)
    return fail(Code::corrupt, "the stored SSH key cannot be read");
  const std::string line = std::string("ssh-ed25519 ") + text + " " + comment;
  ssh_string_free_char(text);
  return line;
}

namespace {

// The key is text because orders are text; munged and BeeGFS accept any bytes.
Result<std::string> make_text() { return random_hex(128); }

// The format of cephx keys: type 1 (AES), no creation time, 16 bytes.
Result<std::string> make_ceph_key() {
  std::string bytes("\1\0\0\0\0\0\0\0\0\0\20\0", 12);
  const std::string hex = random_hex(16);
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return to_base64(bytes);
}

struct OwnSecret {
  const char* name;
  Result<std::string> (*make)();
};
constexpr OwnSecret kOwn[] = {{kMpiKey, make_ssh_key},           {"munge-key", make_text},
                              {"beegfs-key", make_text},         {"ceph-mon-key", make_ceph_key},
                              {"ceph-admin-key", make_ceph_key}, {"ceph-client-key", make_ceph_key}};

}  // namespace

bool is_reserved_secret(const std::string& name) { return name.starts_with(kReserved); }

Result<std::unique_ptr<Vault>> Vault::open(const std::string& state, Reactor& reactor, Store& store) {
  TRY(auto key, master_key(Files(state).real("/master.key")));
  return std::unique_ptr<Vault>(new Vault(std::move(key), reactor, store));
}

Result<std::vector<Vault::Name>> Vault::list() {
  TRY(const auto rows, store_.secrets());
  std::vector<Name> names;
  for (const auto& row : rows) names.push_back({row.name, row.time});
  return names;
}

Result<std::string> Vault::get(const std::string& name) {
  const auto row = store_.secret(name);
  if (row.ok()) return unseal(key_, name, row->sealed);
  if (row.error().code != Code::not_found) return row.error();
  return fail(Code::not_found, "secret '" + name + "' is not set: run `muster secret set " + name + "`");
}

// Looked up by a name from a spec or a playbook.
Result<std::string> Vault::named(const std::string& name) {
  if (!is_reserved_secret(name)) return get(name);
  return fail(Code::denied,
              "secret '" + name + "' is reserved: names that begin with 'install-' are muster's own");
}

Result<Vault::Login> Vault::login(const std::string& name) {
  TRY(const auto secret, named(name));
  const auto colon = secret.find(':');
  if (colon == std::string::npos)
    return fail(Code::invalid, "secret '" + name + "' must have the form user:password");
  return Login{secret.substr(0, colon), secret.substr(colon + 1)};
}

void Vault::put(const std::string& name, const std::string& value, Store::Done done) {
  const auto sealed = seal(key_, name, value);
  if (!sealed.ok()) return reactor_.post([done, error = sealed.error()] { done(error); });
  store_.write({SecretRow{name, reactor_.now(), *sealed}}, std::move(done));
}

void Vault::remove(const std::string& name, Store::Done done) {
  store_.write({DeleteSecret{name}}, std::move(done));
}

Result<Json> Vault::resolve(const Json& params) {
  if (params.is_string()) {
    const auto& text = params.get_ref<const std::string&>();
    if (!text.starts_with(kReference)) return params;
    TRY(const auto value, named(text.substr(sizeof kReference - 1)));
    return Json(value);
  }
  Json out = params;
  if (params.is_structured())
    for (auto& [key, value] : out.items()) {
      TRY(auto resolved, resolve(value));
      value = std::move(resolved);
    }
  return out;
}

void Vault::make_own_secrets(Store::Done done) { make_from(0, std::move(done)); }

void Vault::make_from(size_t first, Store::Done done) {
  if (first == std::size(kOwn)) return done(Ok{});
  make_once(kOwn[first].name, kOwn[first].make, [this, first, done](Status made) {
    if (!made.ok()) return done(std::move(made));
    make_from(first + 1, done);
  });
}

void Vault::make_once(const std::string& name, const std::function<Result<std::string>()>& make,
                      Store::Done done) {
  const auto present = get(name);
  if (present.ok()) return reactor_.post([done] { done(Ok{}); });
  if (present.error().code != Code::not_found)
    return reactor_.post([done, error = present.error()] { done(error); });
  const auto made = make();
  if (!made.ok()) return reactor_.post([done, error = made.error()] { done(error); });
  put(name, *made, std::move(done));
}

Json Vault::public_values() {
  Json values = Json::object();
  const auto pem = get(kMpiKey);
  if (!pem.ok()) return values;
  const auto line = public_ssh_key(*pem, "muster-mpi");
  if (line.ok()) values["mpi_ssh_key"] = *line;
  return values;
}

}  // namespace muster
