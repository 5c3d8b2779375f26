// The text form of a report's signature: where it is and which bytes it covers. Cryptography: sys/pki.h.
//
// A signed report is the report's JSON text with one more key at the end:
//   ,
//     "signature": {
//       "algorithm": "Ed25519",
//       "digest": "sha256:...",          of the text without this key
//       "public_key": "MCowBQYDK2Vw...", DER, base64
//       "value": "..."                   over the text without this key, base64
//     }
//   }
// It covers bytes, not values, so no canonical form is needed. The block itself has exactly one valid
// spelling, so every byte of the file counts. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

struct SignedReport {
  std::string body = {};        // what is signed
  std::string digest = {};      // of body
  std::string public_key = {};  // DER, base64
  std::string value = {};       // base64
};

std::string sign_block(const std::string& body, const std::string& public_key, const std::string& value);
// Splits a signed file. Code::corrupt if there is no well-formed block at its end or the digest is not that
// of the body; the signature itself is not verified.
Result<SignedReport> split_signature(const std::string& text);

// Convert between PEM and the one-line form; Code::invalid for anything but an Ed25519 public key.
Result<std::string> key_line(const std::string& public_pem);
Result<std::string> key_pem(const std::string& key_line);
// Returns the fingerprint that people compare: "sha256:<hex>" of the DER form.
std::string key_fingerprint(const std::string& key_line);

}  // namespace muster
