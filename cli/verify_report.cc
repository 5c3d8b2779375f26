#include "cli/verify_report.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_at.h"
#include "sys/pki.h"

namespace muster::cli {
namespace {

ReportIdentity identity_of(const std::string& body) {
  const Json json = parse_json(body).value_or(Json());
  return {text_at(json, "cluster"), text_at(json, "kind"), integer_at(json, "run"),
          integer_at(json, "started_ms"), integer_at(json, "ended_ms")};
}

// "" if it is the expected one.
std::string difference(const ReportIdentity& is, const ExpectedReport& expected) {
  if (!expected.cluster.empty() && is.cluster != expected.cluster)
    return fmt::format("it is of cluster {}, not of {}", is.cluster, expected.cluster);
  if (expected.run != 0 && is.run != expected.run)
    return fmt::format("it is of run {}, not of {}", is.run, expected.run);
  if (is.ended < expected.since)
    return fmt::format("its run ended at {}, before {}", to_iso8601(is.ended), to_iso8601(expected.since));
  return "";
}

}  // namespace

Verified verify_report_text(const std::string& text, const std::string& trusted,
                            const ExpectedReport& expected) {
  using V = Verified::Verdict;
  const auto parts = split_signature(text);
  if (!parts.ok()) return {V::changed, parts.error().message};
  const auto pem = key_pem(parts->public_key);
  const bool genuine = pem.ok() && pki::verify(*pem, parts->body, parts->value).value_or(false);
  if (!genuine) return {V::changed, "the signature does not match the content"};
  const ReportIdentity identity = identity_of(parts->body);
  if (parts->public_key != trusted)
    return {V::other_key, "unchanged, but signed by a different key: " + key_fingerprint(parts->public_key),
            *parts, identity};
  const std::string other = difference(identity, expected);
  return {other.empty() ? V::valid : V::other_report, other, *parts, identity};
}

}  // namespace muster::cli
