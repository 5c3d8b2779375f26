// SSH public keys as text: what a file or an operator says, to fingerprints and to single keys. Pure; any
// thread.
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
// count that are about `host` ("10.20.0.31", "[10.20.0.31]:2222"), and none that is revoked. invalid when
// there is none, or a line is none of these.
Result<std::vector<std::string>> host_keys_in(const std::string& text, const std::string& host);

// The key that `text`, a *.pub file, holds, as base64; none where it holds something else.
std::optional<std::string> public_key_in(const std::string& text);

}  // namespace muster
