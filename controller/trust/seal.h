// Secrets at rest: AES-256-GCM under the controller's master key. The secret's name is authenticated with it,
// so a sealed value moved to another name does not open. Thread: pure functions; master_key touches the file
// it is given.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// The key in `path` (64 hexadecimal digits), made on first use with mode 0600. Code::denied when group or
// others may read the file; Code::corrupt if it contains no key. Never replaces an existing file: all secrets
// would be lost.
Result<std::string> master_key(const std::string& path);

// base64(nonce + ciphertext + tag), different each time. `key` as from master_key().
Result<std::string> seal(const std::string& key, const std::string& name, const std::string& value);
// Code::corrupt when the value was changed, belongs to another name, or was sealed under another key.
Result<std::string> unseal(const std::string& key, const std::string& name, const std::string& sealed);

}  // namespace muster
