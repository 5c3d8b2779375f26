// SSH keys as text: makes Ed25519 keys in OpenSSH's format, and writes their line for authorized_keys. With
// OpenSSL alone, so that a muster without libssh (cmake/portable.cmake) has it too. Thread safety: stateless
// functions. Texts of private keys are secret.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// Returns a new key, unencrypted: what `ssh-keygen -t ed25519 -N ""` writes to its file.
Result<std::string> make_ssh_key();
// Returns "ssh-ed25519 <base64> <comment>" of a key that make_ssh_key() returned. Code::corrupt if the text
// is not such a key.
Result<std::string> public_ssh_key(const std::string& pem, const std::string& comment);

}  // namespace muster
