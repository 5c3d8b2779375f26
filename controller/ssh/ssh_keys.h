// Reads SSH public keys, fingerprints and lines of known_hosts. Thread safety: stateless functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

struct ssh_key_struct;  // libssh's

namespace muster {

struct KeyFree {
  void operator()(ssh_key_struct* key) const;
};
using KeyPtr = std::unique_ptr<ssh_key_struct, KeyFree>;

// Returns the key's fingerprint, "SHA256:...", as ssh-keygen prints it.
Result<std::string> fingerprint_of(ssh_key_struct* key);

// Returns the fingerprints of the keys in `text`: "SHA256:..." words (as `ssh-keygen -l` prints them), public
// keys, one per line (as in *.pub files), or lines of known_hosts (as ssh-keyscan prints them), of which only
// those for `host` ("10.20.0.31", "[10.20.0.31]:2222") that are not revoked are used. Code::invalid if there
// is no key, or a line has another form.
Result<std::vector<std::string>> host_keys_in(const std::string& text, const std::string& host);

// Returns the key in `text`, a *.pub file, as base64; none if the file contains anything else.
std::optional<std::string> public_key_in(const std::string& text);

}  // namespace muster
