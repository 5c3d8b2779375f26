#include "sys/pki.h"

#include <chrono>

#include "tests/catch.h"

namespace muster {
namespace {

TimeMs now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}
constexpr TimeMs kDayMs = 24 * 60 * kMinute;

}  // namespace

TEST_CASE("a CA signs a request and the chain holds, under that CA only") {
  auto ca = pki::make_ca("gaggle CA", 3650).value();
  auto other = pki::make_ca("gaggle CA", 3650).value();
  std::string key = pki::make_key().value();
  std::string csr = pki::make_csr(key, "whatever").value();
  pki::Leaf leaf{.common_name = "gpu01", .organization = "muster-agent", .days = 30};
  std::string certificate = pki::sign_csr(ca, csr, leaf).value();

  REQUIRE(pki::verify_certificate(ca.certificate_pem, certificate, now()).ok());
  auto refused = pki::verify_certificate(other.certificate_pem, certificate, now());
  REQUIRE(refused.error().code == Code::denied);

  auto info = pki::read_certificate(certificate).value();
  REQUIRE(info.common_name == "gpu01");
  REQUIRE(info.organization == "muster-agent");
  REQUIRE(info.serial.size() == 40);
  REQUIRE(info.not_before < now() - kDayMs + kMinute);
  REQUIRE(info.not_after > now() + 29 * kDayMs);
  REQUIRE(pki::public_key_fingerprint(csr).value() == pki::public_key_fingerprint(certificate).value());
  REQUIRE(pki::public_key_fingerprint(csr).value() !=
          pki::public_key_fingerprint(ca.certificate_pem).value());
  // The same request signed twice: two certificates of one key.
  std::string again = pki::sign_csr(ca, csr, leaf).value();
  REQUIRE(pki::read_certificate(again).value().serial != info.serial);
  REQUIRE(pki::certificate_fingerprint(again).value() != pki::certificate_fingerprint(certificate).value());
}

TEST_CASE("an expired certificate, and one that is not valid yet, are refused") {
  auto ca = pki::make_ca("CA", 3650).value();
  auto expired = pki::issue(ca, {.common_name = "old", .organization = "o", .days = -2}).value();
  REQUIRE(pki::verify_certificate(ca.certificate_pem, expired.certificate_pem, now()).error().code ==
          Code::denied);
  auto fresh = pki::issue(ca, {.common_name = "new", .organization = "o", .days = 10}).value();
  REQUIRE(pki::verify_certificate(ca.certificate_pem, fresh.certificate_pem, now()).ok());
  REQUIRE_FALSE(pki::verify_certificate(ca.certificate_pem, fresh.certificate_pem, now() - 3 * kDayMs).ok());
  REQUIRE_FALSE(pki::verify_certificate(ca.certificate_pem, fresh.certificate_pem, now() + 11 * kDayMs).ok());
}

TEST_CASE("a leaf cannot sign, and neither can a request with a broken signature be signed") {
  auto ca = pki::make_ca("CA", 100).value();
  auto leaf = pki::issue(ca, {.common_name = "leaf", .organization = "o"}).value();
  auto below = pki::issue(leaf, {.common_name = "below", .organization = "o"}).value();
  REQUIRE_FALSE(pki::verify_certificate(leaf.certificate_pem, below.certificate_pem, now()).ok());

  std::string csr = pki::make_csr(pki::make_key().value(), "x").value();
  size_t end = csr.find("\n-----END");
  // Some character of the signature, well before the padding.
  csr[end - 12] = csr[end - 12] == 'A' ? 'B' : 'A';
  REQUIRE(pki::sign_csr(ca, csr, {.common_name = "x", .organization = "o"}).error().code == Code::invalid);
  REQUIRE(pki::sign_csr(ca, "nonsense", {.common_name = "x", .organization = "o"}).error().code ==
          Code::invalid);
}

TEST_CASE("names that are OpenSSL syntax are refused as alternative names") {
  auto ca = pki::make_ca("CA", 100).value();
  auto with = [&](std::string name) {
    return pki::issue(
        ca, {.common_name = "c", .organization = "o", .addresses = {std::move(name)}, .server = true});
  };
  REQUIRE(with("10.20.0.1").ok());
  REQUIRE(with("fd00::1").ok());
  REQUIRE(with("controller.example").ok());
  REQUIRE(with("a,DNS:b").error().code == Code::invalid);
  REQUIRE(with("").error().code == Code::invalid);
}

TEST_CASE("Ed25519 signatures hold for the message and the key they were made with") {
  auto pair = pki::make_signing_key().value();
  auto other = pki::make_signing_key().value();
  std::string signature = pki::sign(pair.key_pem, "report").value();
  REQUIRE(pki::verify(pair.certificate_pem, "report", signature).value());
  REQUIRE_FALSE(pki::verify(pair.certificate_pem, "report.", signature).value());
  REQUIRE_FALSE(pki::verify(other.certificate_pem, "report", signature).value());
  REQUIRE_FALSE(pki::verify(pair.certificate_pem, "report", "not base64!").value());
  REQUIRE_FALSE(pki::verify(pair.certificate_pem, "report", "").value());
  signature[3] = signature[3] == 'A' ? 'B' : 'A';
  REQUIRE_FALSE(pki::verify(pair.certificate_pem, "report", signature).value());
  REQUIRE(pki::verify("nonsense", "report", signature).error().code == Code::invalid);
  REQUIRE(pki::sign(pki::make_key().value(), "report").error().code == Code::invalid);
}

}  // namespace muster
