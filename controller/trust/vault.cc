#include "controller/trust/vault.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/digest.h"
#include "base/secrets.h"
#include "controller/trust/own_ssh_key.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr size_t kKey = 32, kNonce = 12, kTag = 16;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

const unsigned char* bytes(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

Result<std::string> key_bytes(const std::string& hex) {
  if (hex.size() != 2 * kKey || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return fail(Code::corrupt, "the master key is not 64 hexadecimal digits");
  std::string out(kKey, '\0');
  for (size_t i = 0; i < kKey; ++i) out[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return out;
}

// What a text is sealed with: key, nonce and name. The key is erased afterwards.
struct SealedBy {
  std::string& key;
  const std::string &nonce, &name;
};
// One pass of AES-256-GCM over `input`; for opening, `tag` is checked by EVP_CipherFinal.
bool gcm(bool encrypt, const SealedBy& by, const std::string& input, std::string& tag, std::string& output) {
  const auto& [key, nonce, name] = by;
  const Cipher context(EVP_CIPHER_CTX_new());
  int size = 0;
  output.assign(input.size() + kTag, '\0');
  const bool started =
      EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, bytes(key), bytes(nonce), encrypt) == 1 &&
      EVP_CipherUpdate(context.get(), nullptr, &size, bytes(name), static_cast<int>(name.size())) == 1 &&
      EVP_CipherUpdate(context.get(), bytes(output), &size, bytes(input), static_cast<int>(input.size())) ==
          1;
  OPENSSL_cleanse(key.data(), key.size());
  if (!started) return false;
  if (!encrypt &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(kTag), bytes(tag)) != 1)
    return false;
  int rest = 0;
  if (EVP_CipherFinal_ex(context.get(), bytes(output) + size, &rest) != 1) return false;
  output.resize(static_cast<size_t>(size + rest));
  if (!encrypt) return true;
  tag.assign(kTag, '\0');
  return EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(kTag), bytes(tag)) == 1;
}

Error system_error(const std::string& path) {
  return fail(errno == EACCES ? Code::denied : Code::failed,
              fmt::format("{}: {}", path, std::strerror(errno)));
}

// Written under a temporary name first, so that a crash never leaves half a key.
Status make_key(const std::string& path) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return system_error(temporary);
  const std::string text = random_hex(kKey) + "\n";
  const bool written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  ::close(fd);
  Status out = Ok{};
  // link() does not replace a file; a key that another process has just put there will do as well.
  if (!written || (::link(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST)) out = system_error(path);
  ::unlink(temporary.c_str());
  return out;
}

constexpr char kMpiKey[] = "mpi-ssh-key";
constexpr char kNext[] = ".next";
constexpr char kReserved[] = "install-";

}  // namespace

Result<std::string> master_key(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return system_error(path);
    TRY_(make_key(path));
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return system_error(path);
  char buffer[256];
  const bool looked = ::fstat(fd, &info) == 0;
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  ::close(fd);
  if (!looked || n < 0) return system_error(path);
  if (info.st_mode & 077)
    return fail(
        Code::denied,
        fmt::format("{}: others can read the master key (mode {:o}); set mode 600 and replace the secrets",
                    path, info.st_mode & 0777));
  std::string text(buffer, static_cast<size_t>(n));
  OPENSSL_cleanse(buffer, sizeof buffer);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (const auto key = key_bytes(text); !key.ok()) return Error(key.error()).with(path);
  return text;
}

namespace {

bool opens_one(const std::string& key, const std::vector<SecretRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const SecretRow& row) { return unseal(key, row.name, row.sealed).ok(); });
}

}  // namespace

Result<std::string> settled_master_key(const std::string& path, Store& store) {
  const Files files;
  const std::string next_path = path + kNext;
  if (!files.exists(next_path)) return master_key(path);
  TRY(const auto next, master_key(next_path));
  TRY(const auto rows, store.secrets());
  if (opens_one(next, rows)) {
    TRY_(files.write(path, next + "\n", 0600));
  } else if (!rows.empty()) {
    TRY(const auto present, master_key(path));
    if (!opens_one(present, rows))
      return fail(Code::corrupt,
                  fmt::format("neither {} nor {} opens the stored secrets: put back the key with which this "
                              "database was sealed",
                              path, next_path));
  }
  TRY_(files.remove(next_path));
  return master_key(path);
}

Result<std::string> seal(const std::string& key, const std::string& name, const std::string& value) {
  TRY(std::string raw, key_bytes(key));
  if (name.empty() || value.size() > (1 << 20))
    return fail(Code::invalid, "a secret must have a name and be at most 1 MiB long");
  std::string nonce(kNonce, '\0'), tag, hidden;
  if (RAND_bytes(bytes(nonce), static_cast<int>(kNonce)) != 1)
    return fail(Code::failed, "no random numbers available");
  if (!gcm(true, {raw, nonce, name}, value, tag, hidden))
    return fail(Code::failed, "sealing '" + name + "' failed");
  return to_base64(nonce + hidden + tag);
}

Result<std::string> unseal(const std::string& key, const std::string& name, const std::string& sealed) {
  TRY(std::string raw, key_bytes(key));
  const auto blob = from_base64(sealed);
  if (!blob.ok() || blob->size() < kNonce + kTag)
    return fail(Code::corrupt, "secret '" + name + "' is damaged");
  const std::string nonce = blob->substr(0, kNonce),
                    hidden = blob->substr(kNonce, blob->size() - kNonce - kTag);
  std::string tag = blob->substr(blob->size() - kTag), value;
  if (!gcm(false, {raw, nonce, name}, hidden, tag, value))
    return fail(Code::corrupt,
                "secret '" + name +
                    "' cannot be opened: it was changed, or sealed with a different name or master key");
  return value;
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
  const std::string path = Files(state).real("/master.key");
  TRY(auto key, settled_master_key(path, store));
  return std::unique_ptr<Vault>(new Vault(path, std::move(key), reactor, store));
}

Result<std::vector<Vault::Name>> Vault::list() {
  TRY(const auto rows, store_.secrets());
  std::vector<Name> names;
  for (const auto& row : rows) names.push_back({row.name, row.time});
  return names;
}

Result<std::string> Vault::get(const std::string& name) {
  const auto row = store_.secret(name);
  if (row.ok()) {
    const auto value = unseal(key_, name, row->sealed);
    return value.ok() || next_key_.empty() ? value : unseal(next_key_, name, row->sealed);
  }
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
  store_row(SecretRow{name, reactor_.now(), *sealed}, {}, std::move(done));
}

void Vault::remove(const std::string& name, Store::Done done) {
  store_row(DeleteSecret{name}, {}, std::move(done));
}

// Not while all are re-sealed: the row would keep the old key's seal.
void Vault::store_row(Write row, const WriteRow& write, Store::Done done) {
  if (!next_key_.empty())
    return reactor_.post(
        [done] { done(fail(Code::unavailable, "the master key is being replaced: retry")); });
  ++writing_;
  const auto written = [this, done = std::move(done)](Status status) {
    --writing_;
    done(std::move(status));
  };
  if (write) return write(std::move(row), written);
  store_.write({std::move(row)}, written);
}

Result<std::vector<Write>> Vault::resealed(const std::string& key) {
  TRY(const auto rows, store_.secrets());
  std::vector<Write> out;
  for (const SecretRow& row : rows) {
    const auto value = unseal(key_, row.name, row.sealed);
    if (!value.ok())
      return Error(value.error()).with("nothing was replaced; set or remove this secret first");
    TRY(auto sealed, seal(key, row.name, *value));
    out.push_back(ResealSecret{row.name, std::move(sealed)});
  }
  return out;
}

void Vault::replace_master_key(Store::Done done) {
  const auto refuse = [&](Error why) { reactor_.post([done, why = std::move(why)] { done(why); }); };
  if (writing_ > 0 || !next_key_.empty())
    return refuse(fail(Code::unavailable, "a secret is being stored at this moment: retry"));
  const std::string next = random_hex(kKey);
  auto rows = resealed(next);
  if (!rows.ok()) return refuse(rows.error());
  // Durable before a row is sealed with it. Without secrets the file would be taken back.
  const Files files;
  const Status kept = files.write(path_ + (rows->empty() ? "" : kNext), next + "\n", 0600);
  if (!kept.ok()) return refuse(kept.error());
  next_key_ = next;
  store_.write(std::move(*rows), [this, done = std::move(done)](Status written) {
    // Whatever the store says, its rows say which key it is.
    auto key = settled_master_key(path_, store_);
    if (!key.ok()) return done(key.error());  // both keys stay in use: next_key_ is not cleared
    const bool replaced = *key == next_key_;
    key_ = std::move(*key);
    next_key_.clear();
    if (!replaced && written.ok())
      written = fail(Code::unavailable, "all secrets were removed meanwhile: retry");
    done(replaced ? Status(Ok{}) : std::move(written));
  });
}

std::string Vault::master_key_id() const { return short_digest(sha256("master key " + key_)); }

Result<Json> Vault::resolve(const Json& params) {
  if (params.is_string()) {
    const auto& text = params.get_ref<const std::string&>();
    if (!is_secret_reference(text)) return params;
    TRY(const auto value, named(text.substr(kSecretPrefix.size())));
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

void Vault::replace_own(const std::string& name, const WriteRow& write, Store::Done done) {
  const auto own =
      std::find_if(std::begin(kOwn), std::end(kOwn), [&](const OwnSecret& one) { return one.name == name; });
  const auto made = own == std::end(kOwn)
                        ? Result<std::string>(fail(Code::not_found, name + " is not made by the controller"))
                        : own->make();
  const auto sealed = made.ok() ? seal(key_, name, *made) : made;
  if (!sealed.ok()) return reactor_.post([done, error = sealed.error()] { done(error); });
  store_row(SecretRow{name, reactor_.now(), *sealed}, write, std::move(done));
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
