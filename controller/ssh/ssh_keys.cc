#include "controller/ssh/ssh_keys.h"

#include <libssh/libssh.h>

#include <algorithm>
#include <sstream>

#include "base/split.h"

namespace muster {
namespace {

// Parses "TYPE BASE64 ..."; null if it is not a public key.
KeyPtr public_key(const std::string& line) {
  std::istringstream words(line);
  std::string type, base64;
  words >> type >> base64;
  ssh_key key = nullptr;
  const ssh_keytypes_e kind = ssh_key_type_from_name(type.c_str());
  if (kind == SSH_KEYTYPE_UNKNOWN || ssh_pki_import_pubkey_base64(base64.c_str(), kind, &key) != SSH_OK)
    return nullptr;
  return KeyPtr(key);
}

// Parses a line of known_hosts: SSH_OK with the fingerprint; SSH_AGAIN if the line is for a different host;
// SSH_ERROR if it is not such a line.
int known_host(const std::string& line, const std::string& host, std::string& fingerprint) {
  ssh_knownhosts_entry* entry = nullptr;
  const int said = ssh_known_hosts_parse_line(host.c_str(), line.c_str(), &entry);
  if (said != SSH_OK) return said;
  const auto found = fingerprint_of(entry->publickey);
  ssh_knownhosts_entry_free(entry);
  if (!found.ok()) return SSH_ERROR;
  fingerprint = *found;
  return SSH_OK;
}

}  // namespace

void KeyFree::operator()(ssh_key_struct* key) const { ssh_key_free(key); }

Result<std::string> fingerprint_of(ssh_key key) {
  unsigned char* hash = nullptr;
  size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != 0)
    return fail(Code::failed, "the host key cannot be hashed");
  char* text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
  ssh_clean_pubkey_hash(&hash);
  const std::string fingerprint = text ? text : "";
  ssh_string_free_char(text);
  return fingerprint;
}

Result<std::vector<std::string>> host_keys_in(const std::string& text, const std::string& host) {
  constexpr size_t kDigits = 7 + 43;  // "SHA256:" and base64 of 32 bytes without padding
  constexpr std::string_view kRevoked = "@revoked";
  std::vector<std::string> found, revoked;
  bool others = false;
  for (std::string line : split_lines(text)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line[begin] == '#') continue;
    line.erase(0, begin);
    const bool is_revoked = line.substr(0, line.find_first_of(" \t")) == kRevoked;
    if (is_revoked) line.erase(0, line.find_first_not_of(" \t", kRevoked.size()));
    if (line.empty()) continue;
    if (line[0] == '@') continue;  // a certificate's authority
    if (const auto at = line.find("SHA256:"); at != std::string::npos) {
      (is_revoked ? revoked : found).push_back(line.substr(at, kDigits));
      continue;
    }
    std::string fingerprint;
    if (const KeyPtr key = public_key(line)) {
      TRY(fingerprint, fingerprint_of(key.get()));
    } else {
      const int said = known_host(line, host, fingerprint);
      others = others || said == SSH_AGAIN;
      if (said == SSH_AGAIN) continue;
      if (said != SSH_OK)
        return fail(Code::invalid, "'" + line.substr(0, line.find(' ')) +
                                       " ...' is not a fingerprint (SHA256:...), a public key or a line of "
                                       "known_hosts");
    }
    (is_revoked ? revoked : found).push_back(fingerprint);
  }
  std::erase_if(found, [&](const std::string& one) {
    return std::find(revoked.begin(), revoked.end(), one) != revoked.end();
  });
  if (found.empty())
    return fail(Code::invalid, others ? "no host key of " + host + " is listed, only host keys of other hosts"
                                      : "no host key is listed");
  return found;
}

std::optional<std::string> public_key_in(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  if (!public_key(line)) return std::nullopt;
  std::istringstream words(line);
  std::string type, base64;
  words >> type >> base64;
  return base64;
}

}  // namespace muster
