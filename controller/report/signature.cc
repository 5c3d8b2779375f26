#include "controller/report/signature.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "base/record.h"

namespace muster {

MUSTER_RECORD(SignedReport, digest, public_key, value)

namespace {

constexpr std::string_view kEnd = "\n}\n";
constexpr std::string_view kBlock = ",\n  \"signature\": {\n";
constexpr std::string_view kBegin = "-----BEGIN PUBLIC KEY-----\n", kFinish = "\n-----END PUBLIC KEY-----\n";
// SubjectPublicKeyInfo of an Ed25519 key before its 32 bytes (RFC 8410).
constexpr std::string_view kPrefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr size_t kKeyBytes = 32, kValueBytes = 64;

// Decodes base64 in its only canonical form: the unused bits of the last digit must be zero.
Result<std::string> strict_base64(const std::string& text, size_t bytes) {
  TRY(auto decoded, from_base64(text));
  if (decoded.size() != bytes || to_base64(decoded) != text)
    return fail(Code::invalid, "not base64 of the right length");
  return decoded;
}

Error changed(const std::string& what) { return fail(Code::corrupt, what); }

std::string block_of(const SignedReport& s) {
  return fmt::format(
      "{}    \"algorithm\": \"Ed25519\",\n    \"digest\": \"{}\",\n    \"public_key\": \"{}\",\n    "
      "\"value\": \"{}\"\n  }}{}",
      kBlock, s.digest, s.public_key, s.value, kEnd);
}

struct SignatureText {
  std::string algorithm = {};
  SignedReport report = {};
};
MUSTER_RECORD(SignatureText, algorithm, flat(report))

}  // namespace

std::string sign_block(const std::string& body, const std::string& public_key, const std::string& value) {
  return body.substr(0, body.size() - kEnd.size()) + block_of({body, sha256(body), public_key, value});
}

Result<SignedReport> split_signature(const std::string& text) {
  const size_t at = text.rfind(kBlock);
  if (at == std::string::npos) return changed("there is no signature at the end of the report");
  const auto json = parse_json("{" + text.substr(at + 1));
  if (!json.ok()) return changed("the signature block is not well-formed");
  auto read = read_record<SignatureText>(json->value("signature", Json()), "signature");
  if (!read.ok()) return changed(read.error().message);
  SignedReport out = std::move(read->report);
  // Writing the parsed block must give the same text: no byte of the block can vary.
  if (block_of(out) != text.substr(at)) return changed("the signature block was changed");
  if (const auto pem = key_pem(out.public_key); !pem.ok())
    return changed("signature.public_key: " + pem.error().message);
  if (!strict_base64(out.value, kValueBytes).ok())
    return changed("signature.value is not an Ed25519 signature");
  out.body = text.substr(0, at) + std::string(kEnd);
  if (sha256(out.body) != out.digest) return changed("the report's content does not match the signed digest");
  return out;
}

Result<std::string> key_line(const std::string& public_pem) {
  const size_t begin = public_pem.find(kBegin);
  const size_t end = begin == std::string::npos ? begin : public_pem.find(kFinish, begin);
  if (end == std::string::npos) return fail(Code::invalid, "not a public key in PEM form");
  const std::string line = public_pem.substr(begin + kBegin.size(), end - begin - kBegin.size());
  TRY_(key_pem(line));
  return line;
}

Result<std::string> key_pem(const std::string& line) {
  const auto der = strict_base64(line, kPrefix.size() + kKeyBytes);
  if (!der.ok() || der->compare(0, kPrefix.size(), kPrefix) != 0)
    return fail(Code::invalid, "not an Ed25519 public key");
  return std::string(kBegin) + line + std::string(kFinish);
}

std::string key_fingerprint(const std::string& line) { return sha256(from_base64(line).value_or("")); }

}  // namespace muster
