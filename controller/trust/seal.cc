#include "controller/trust/seal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/digest.h"

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

}  // namespace muster
