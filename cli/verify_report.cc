#include "cli/verify_report.h"

#include "sys/pki.h"

namespace muster::cli {

Verified verify_report_text(const std::string& text, const std::string& trusted) {
  using V = Verified::Verdict;
  const auto parts = split_signature(text);
  if (!parts.ok()) return {V::changed, parts.error().message};
  const auto pem = key_pem(parts->public_key);
  const bool genuine = pem.ok() && pki::verify(*pem, parts->body, parts->value).value_or(false);
  if (!genuine) return {V::changed, "the signature does not match the content"};
  if (parts->public_key == trusted) return {V::valid, "", *parts};
  return {V::other_key, "unchanged, but signed by a different key: " + key_fingerprint(parts->public_key),
          *parts};
}

}  // namespace muster::cli
