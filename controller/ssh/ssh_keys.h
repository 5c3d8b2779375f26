// SSH public keys as text: from a file or an operator to fingerprints and single keys. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

struct ssh_key_struct;  // libssh's

namespace muster {

// "SHA256:..." as ssh-keygen prints it.
Result<std::string> fingerprint_of(ssh_key_struct* key);

// Fingerprints named by `text`: "SHA256:..." words (as `ssh-keygen -l` prints them), public keys, one per
// line (as *.pub files hold them), or lines of known_hosts (as ssh-keyscan prints them), of which only those
// for `host` ("10.20.0.31", "[10.20.0.31]:2222") count, without revoked ones. invalid when there is none, or
// a line is none of these.
Result<std::vector<std::string>> host_keys_in(const std::string& text, const std::string& host);

// The key in `text`, a *.pub file, as base64; none if the file holds anything else.
std::optional<std::string> public_key_in(const std::string& text);

}  // namespace muster
