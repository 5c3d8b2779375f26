#include "base/digest.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace muster {

struct Sha256::State {
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  State() { EVP_DigestInit_ex(ctx, EVP_sha256(), nullptr); }
  ~State() { EVP_MD_CTX_free(ctx); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) { EVP_DigestUpdate(state_->ctx, bytes.data(), bytes.size()); }

std::string Sha256::finish() {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->ctx, out, &size);
  EVP_DigestInit_ex(state_->ctx, EVP_sha256(), nullptr);
  return "sha256:" + to_hex({reinterpret_cast<char*>(out), size});
}

std::string sha256(std::string_view bytes) {
  Sha256 h;
  h.update(bytes);
  return h.finish();
}

Result<std::string> sha256_open(int fd, const std::string& path) {
  Sha256 h;
  std::vector<char> buffer(1 << 20);
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(Code::failed, path + ": read error");
    if (n == 0) return h.finish();
    h.update({buffer.data(), static_cast<size_t>(n)});
    at += n;
  }
}

Result<std::string> sha256_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(Code::not_found, path + ": cannot be opened");
  auto out = sha256_open(fd, path);
  ::close(fd);
  return out;
}

std::string short_digest(std::string_view digest) {
  constexpr size_t kDigits = 12;
  return std::string(digest.substr(digest.find(':') + 1, kDigits));
}

std::string to_hex(std::string_view bytes) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const unsigned char c : bytes) {
    out += digits[c >> 4];
    out += digits[c & 15];
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int n =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(n));
  return out;
}

Result<std::string> from_base64(std::string_view text) {
  if (text.size() % 4) return fail(Code::invalid, "base64: length is not a multiple of four");
  std::string out(text.size() / 4 * 3 + 1, '\0');
  const int n =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (n < 0) return fail(Code::invalid, "base64: bad character");
  size_t size = static_cast<size_t>(n);
  for (size_t i = text.size(); i > 0 && text[i - 1] == '=' && size > 0; --i) --size;
  out.resize(size);
  return out;
}

std::string random_hex(size_t bytes) {
  std::string raw(bytes, '\0');
  // Without entropy it is not safe to continue: tokens and keys come from here.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(raw.data()), static_cast<int>(bytes)) != 1) std::abort();
  return to_hex(raw);
}

bool constant_time_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace muster
