#include "controller/trust/own_ssh_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/digest.h"

namespace muster {
namespace {

// The format is OpenSSH's PROTOCOL.key: after the magic, strings with their length before them.
constexpr char kMagicText[] = "openssh-key-v1";
constexpr std::string_view kMagic{kMagicText, sizeof kMagicText};  // its terminating zero is part of it
constexpr std::string_view kType = "ssh-ed25519", kPlain = "none";
constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----\n",
                           kEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr size_t kRaw = 32, kLine = 70, kBlock = 8;

std::string number(size_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}
std::string counted(std::string_view text) { return number(text.size()) + std::string(text); }

// Takes the next string off the front; false if the text is too short.
bool take(std::string_view& rest, std::string_view& out) {
  if (rest.size() < 4) return false;
  size_t size = 0;
  for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(rest[i]);
  rest.remove_prefix(4);
  if (rest.size() < size) return false;
  out = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

void erase(std::string& secret) { OPENSSL_cleanse(secret.data(), secret.size()); }

std::string wrapped(const std::string& base64) {
  std::string out(kBegin);
  for (size_t at = 0; at < base64.size(); at += kLine) out += base64.substr(at, kLine) + '\n';
  return out + std::string(kEnd) + '\n';
}

// The public part, as authorized_keys has it before it is encoded.
std::string public_blob(std::string_view raw) { return counted(kType) + counted(raw); }

// The private part: any four bytes twice, by which a wrong passphrase is noticed; padded to whole blocks.
std::string private_blob(std::string_view seed, std::string_view raw) {
  const std::string random = random_hex(2);
  std::string secret(seed);
  secret += raw;
  std::string out = random + random + counted(kType) + counted(raw) + counted(secret) + counted("");
  erase(secret);
  for (char pad = 1; out.size() % kBlock != 0; ++pad) out += pad;
  return out;
}

}  // namespace

Result<std::string> make_ssh_key() {
  const std::unique_ptr<EVP_PKEY, FreeKey> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  std::array<unsigned char, kRaw> raw{}, seed{};
  size_t raw_size = raw.size(), seed_size = seed.size();
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), raw.data(), &raw_size) != 1 ||
      EVP_PKEY_get_raw_private_key(key.get(), seed.data(), &seed_size) != 1 || raw_size != kRaw ||
      seed_size != kRaw)
    return fail(Code::failed, "an SSH key could not be created");
  const auto text = [](const auto& part) {
    return std::string_view(reinterpret_cast<const char*>(part.data()), part.size());
  };
  std::string secret = private_blob(text(seed), text(raw));
  OPENSSL_cleanse(seed.data(), seed.size());
  std::string all = std::string(kMagic) + counted(kPlain) + counted(kPlain) + counted("") + number(1) +
                    counted(public_blob(text(raw))) + counted(secret);
  erase(secret);
  std::string base64 = to_base64(all), out = wrapped(base64);
  erase(all);
  erase(base64);
  return out;
}

Result<std::string> public_ssh_key(const std::string& pem, const std::string& comment) {
  const auto unreadable = [] { return fail(Code::corrupt, "the stored SSH key cannot be read"); };
  const size_t begin = pem.find(kBegin), end = pem.find(kEnd);
  if (begin != 0 || end == std::string::npos) return unreadable();
  std::string base64 = pem.substr(kBegin.size(), end - kBegin.size());
  std::erase(base64, '\n');
  auto all = from_base64(base64);
  erase(base64);
  if (!all.ok()) return unreadable();
  std::string_view rest = *all, cipher, derived, options, blob, type, raw;
  const bool read = rest.starts_with(kMagic) && (rest.remove_prefix(kMagic.size()), take(rest, cipher)) &&
                    take(rest, derived) && take(rest, options) && rest.starts_with(number(1)) &&
                    (rest.remove_prefix(4), take(rest, blob));
  std::string_view inner = blob;
  std::string line;
  if (read && cipher == kPlain && take(inner, type) && type == kType && take(inner, raw) &&
      raw.size() == kRaw)
    line = std::string(kType) + " " + to_base64(blob) + " " + comment;
  erase(*all);
  if (line.empty()) return unreadable();
  return line;
}

}  // namespace muster
