// Encrypts stored secrets with AES-256-GCM under the controller's master key. The secret's name is
// authenticated as well, so a sealed value moved to a different name cannot be unsealed. Thread safety:
// stateless functions; master_key accesses the file it is given.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// Returns the key in `path` (64 hexadecimal digits); creates it with mode 0600 if there is none. Code::denied
// if group or others may read the file; Code::corrupt if it does not contain a key. Never replaces an
// existing file, since all secrets would be lost.
Result<std::string> master_key(const std::string& path);

// Returns base64(nonce + ciphertext + tag), different each time. `key`: from master_key().
Result<std::string> seal(const std::string& key, const std::string& name, const std::string& value);
// Code::corrupt if the value was changed, belongs to a different name, or was sealed with a different key.
Result<std::string> unseal(const std::string& key, const std::string& name, const std::string& sealed);

}  // namespace muster
