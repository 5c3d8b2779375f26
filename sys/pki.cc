#include "sys/pki.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "base/digest.h"
#include "base/lower.h"
#include "sys/openssl.h"

namespace muster::tls {

Error openssl_error(std::string_view doing) {
  char text[256] = "no reason given";
  unsigned long code = ERR_peek_last_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return fail(Code::invalid, std::string(doing) + ": " + text);
}

namespace {

BioPtr reader_of(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Never reads a pass phrase from a terminal.
int no_pass_phrase(char*, int, int, void*) { return -1; }

template <typename Write>
Result<std::string> to_pem(std::string_view what, Write write) {
  BioPtr out(BIO_new(BIO_s_mem()));
  if (!out || write(out.get()) != 1) return openssl_error("encoding " + std::string(what));
  char* data = nullptr;
  long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

Result<std::vector<CertificatePtr>> read_certificates(const std::string& pem) {
  BioPtr in = reader_of(pem);
  std::vector<CertificatePtr> list;
  while (CertificatePtr next{PEM_read_bio_X509(in.get(), nullptr, no_pass_phrase, nullptr)})
    list.push_back(std::move(next));
  if (list.empty()) return openssl_error("reading a certificate");
  ERR_clear_error();  // at the end of the list, OpenSSL reports "no start line"
  return list;
}

Result<KeyPtr> read_key(const std::string& pem) {
  BioPtr in = reader_of(pem);
  KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_pass_phrase, nullptr));
  if (!key) return openssl_error("reading a private key");
  return key;
}

std::string fingerprint(X509* certificate) {
  unsigned char* der = nullptr;
  int size = i2d_X509(certificate, &der);
  if (size <= 0) return "";
  std::string digest = sha256(std::string_view(reinterpret_cast<char*>(der), static_cast<size_t>(size)));
  OPENSSL_free(der);
  return digest;
}

std::string subject_field(X509* certificate, int nid) {
  X509_NAME* name = X509_get_subject_name(certificate);
  int at = X509_NAME_get_index_by_NID(name, nid, -1);
  if (at < 0) return "";
  unsigned char* text = nullptr;
  int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
  if (size < 0) return "";
  std::string value(reinterpret_cast<char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return value;
}

std::string serial_hex(X509* certificate) {
  BIGNUM* number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* text = number ? BN_bn2hex(number) : nullptr;
  const std::string hex = text ? text : "";
  OPENSSL_free(text);
  BN_free(number);
  return lower(hex);
}

}  // namespace muster::tls

namespace muster::pki {
namespace {

using namespace muster::tls;

constexpr int64_t kDaySeconds = kDay / kSecond;

Result<std::string> key_to_pem(EVP_PKEY* key) {
  return to_pem("a private key", [&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

Result<std::string> certificate_to_pem(X509* certificate) {
  return to_pem("a certificate", [&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  if (value.empty()) return true;
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

// A serial number of 159 random bits is positive, and unique without a stored counter.
bool set_random_serial(X509* certificate) {
  unsigned char bytes[20];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
  BIGNUM* number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
  BN_free(number);
  return ok;
}

bool set_times(X509* certificate, int days) {
  std::time_t now = std::time(nullptr);
  std::time_t end = now + days * kDaySeconds;
  return ASN1_TIME_set(X509_getm_notBefore(certificate), std::min(now, end) - kDaySeconds) &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), end);
}

bool add_extension(X509* certificate, X509V3_CTX& context, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  bool ok = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return ok;
}

struct Extension {
  int nid;
  std::string value;
};

Result<std::string> make_certificate(X509_NAME* issuer_name, X509* issuer, EVP_PKEY* issuer_key,
                                     EVP_PKEY* key, const Leaf& subject,
                                     const std::vector<Extension>& extensions) {
  CertificatePtr made(X509_new());
  X509_NAME* name = made ? X509_get_subject_name(made.get()) : nullptr;
  bool ok = name && X509_set_version(made.get(), X509_VERSION_3) && set_random_serial(made.get()) &&
            set_times(made.get(), subject.days) && add_name(name, "O", subject.organization) &&
            add_name(name, "CN", subject.common_name) && X509_set_pubkey(made.get(), key) &&
            X509_set_issuer_name(made.get(), issuer_name ? issuer_name : name);
  if (!ok) return openssl_error("making a certificate for " + subject.common_name);
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer ? issuer : made.get(), made.get(), nullptr, nullptr, 0);
  for (const auto& [nid, value] : extensions)
    if (!add_extension(made.get(), context, nid, value))
      return openssl_error("adding a certificate extension");
  if (X509_sign(made.get(), issuer_key, EVP_sha256()) <= 0) return openssl_error("signing a certificate");
  return certificate_to_pem(made.get());
}

// The text form of OpenSSL's extensions uses ',' and ':' as syntax, so names are checked, not quoted.
Result<std::string> alternative_names(const std::vector<std::string>& addresses) {
  std::string names;
  for (const auto& address : addresses) {
    unsigned char binary[16];
    bool numeric = ::inet_pton(AF_INET, address.c_str(), binary) == 1 ||
                   ::inet_pton(AF_INET6, address.c_str(), binary) == 1;
    bool plain = !address.empty() && std::all_of(address.begin(), address.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
             c == '-';
    });
    if (!numeric && !plain) return fail(Code::invalid, "not an address or a DNS name: " + address);
    names += (names.empty() ? "" : ",") + std::string(numeric ? "IP:" : "DNS:") + address;
  }
  return names;
}

Result<CsrPtr> read_csr(const std::string& pem) {
  BioPtr in = reader_of(pem);
  CsrPtr csr(PEM_read_bio_X509_REQ(in.get(), nullptr, no_pass_phrase, nullptr));
  if (!csr) return openssl_error("reading a certificate signing request");
  return csr;
}

Result<std::string> sign_leaf(const KeyPair& ca, EVP_PKEY* key, const Leaf& leaf) {
  TRY(auto ca_certificates, read_certificates(ca.certificate_pem));
  TRY(KeyPtr ca_key, read_key(ca.key_pem));
  TRY(std::string names, alternative_names(leaf.addresses));
  if (EVP_PKEY_get_security_bits(key) < 112)
    return fail(Code::invalid, "the key is too weak to be certified");
  X509* issuer = ca_certificates.front().get();
  std::vector<Extension> extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                                       {NID_key_usage, "critical,digitalSignature"},
                                       {NID_ext_key_usage, leaf.server ? "serverAuth" : "clientAuth"},
                                       {NID_subject_key_identifier, "hash"},
                                       {NID_authority_key_identifier, "keyid"}};
  if (!names.empty()) extensions.push_back({NID_subject_alt_name, names});
  return make_certificate(X509_get_subject_name(issuer), issuer, ca_key.get(), key, leaf, extensions);
}

TimeMs to_ms(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return static_cast<TimeMs>(::timegm(&parts)) * kSecond;
}

}  // namespace

Result<KeyPair> make_ca(const std::string& common_name, int days) {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_error("making a key");
  TRY(std::string certificate,
      make_certificate(nullptr, nullptr, key.get(), key.get(),
                       {.common_name = common_name, .organization = "muster", .days = days},
                       {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                        {NID_key_usage, "critical,keyCertSign,cRLSign"},
                        {NID_subject_key_identifier, "hash"}}));
  TRY(std::string key_pem, key_to_pem(key.get()));
  return KeyPair{std::move(key_pem), std::move(certificate)};
}

Result<std::string> make_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_error("making a key");
  return key_to_pem(key.get());
}

Result<std::string> make_csr(const std::string& key_pem, const std::string& common_name) {
  TRY(KeyPtr key, read_key(key_pem));
  CsrPtr csr(X509_REQ_new());
  bool ok = csr && X509_REQ_set_version(csr.get(), X509_REQ_VERSION_1) &&
            add_name(X509_REQ_get_subject_name(csr.get()), "CN", common_name) &&
            X509_REQ_set_pubkey(csr.get(), key.get()) &&
            X509_REQ_sign(csr.get(), key.get(), EVP_sha256()) > 0;
  if (!ok) return openssl_error("making a certificate signing request");
  return to_pem("a certificate signing request",
                [&](BIO* out) { return PEM_write_bio_X509_REQ(out, csr.get()); });
}

Result<std::string> sign_csr(const KeyPair& ca, const std::string& csr_pem, const Leaf& leaf) {
  TRY(CsrPtr csr, read_csr(csr_pem));
  EVP_PKEY* key = X509_REQ_get0_pubkey(csr.get());
  if (!key || X509_REQ_verify(csr.get(), key) != 1)
    return openssl_error("checking a certificate signing request");
  return sign_leaf(ca, key, leaf);
}

Result<KeyPair> issue(const KeyPair& ca, const Leaf& leaf) {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_error("making a key");
  TRY(std::string certificate, sign_leaf(ca, key.get(), leaf));
  TRY(std::string key_pem, key_to_pem(key.get()));
  return KeyPair{std::move(key_pem), std::move(certificate)};
}

Status verify_certificate(const std::string& ca_pem, const std::string& certificate_pem, TimeMs now) {
  TRY(auto roots, read_certificates(ca_pem));
  TRY(auto chain, read_certificates(certificate_pem));
  StorePtr store(X509_STORE_new());
  for (const auto& root : roots)
    if (X509_STORE_add_cert(store.get(), root.get()) != 1) return openssl_error("trusting a certificate");
  std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), nullptr) != 1)
    return openssl_error("checking a certificate");
  X509_STORE_CTX_set_time(context.get(), 0, static_cast<std::time_t>(now / kSecond));
  bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (good) return Ok{};
  return fail(Code::denied, std::string("the certificate is not acceptable: ") +
                                X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
}

Result<CertificateInfo> read_certificate(const std::string& certificate_pem) {
  TRY(auto chain, read_certificates(certificate_pem));
  X509* leaf = chain.front().get();
  return CertificateInfo{.common_name = subject_field(leaf, NID_commonName),
                         .organization = subject_field(leaf, NID_organizationName),
                         .serial = serial_hex(leaf),
                         .not_before = to_ms(X509_get0_notBefore(leaf)),
                         .not_after = to_ms(X509_get0_notAfter(leaf))};
}

Result<std::string> certificate_fingerprint(const std::string& certificate_pem) {
  TRY(auto chain, read_certificates(certificate_pem));
  return fingerprint(chain.front().get());
}

Result<std::vector<std::string>> certificate_fingerprints(const std::string& certificates_pem) {
  TRY(const auto chain, read_certificates(certificates_pem));
  std::vector<std::string> out;
  for (const auto& one : chain) out.push_back(fingerprint(one.get()));
  return out;
}

Result<std::string> public_key_fingerprint(const std::string& pem) {
  std::vector<CertificatePtr> chain;
  CsrPtr csr;
  EVP_PKEY* key = nullptr;
  if (pem.find("CERTIFICATE REQUEST-----") != std::string::npos) {
    TRY(csr, read_csr(pem));
    key = X509_REQ_get0_pubkey(csr.get());
  } else {
    TRY(chain, read_certificates(pem));
    key = X509_get0_pubkey(chain.front().get());
  }
  unsigned char* der = nullptr;
  int size = key ? i2d_PUBKEY(key, &der) : -1;
  if (size <= 0) return openssl_error("reading a public key");
  std::string digest = sha256(std::string_view(reinterpret_cast<char*>(der), static_cast<size_t>(size)));
  OPENSSL_free(der);
  return digest;
}

Result<KeyPair> make_signing_key() {
  KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return openssl_error("making a signing key");
  TRY(std::string public_pem,
      to_pem("a public key", [&](BIO* out) { return PEM_write_bio_PUBKEY(out, key.get()); }));
  TRY(std::string key_pem, key_to_pem(key.get()));
  return KeyPair{std::move(key_pem), std::move(public_pem)};
}

using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;

Result<std::string> sign(const std::string& key_pem, const std::string& message) {
  TRY(KeyPtr key, read_key(key_pem));
  DigestPtr context(EVP_MD_CTX_new());
  unsigned char signature[64];
  size_t size = sizeof signature;
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  if (EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519)
    return fail(Code::invalid, "the signing key is not Ed25519");
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), signature, &size, data, message.size()) != 1)
    return openssl_error("signing");
  return to_base64(std::string_view(reinterpret_cast<char*>(signature), size));
}

Result<bool> verify(const std::string& public_pem, const std::string& message, const std::string& signature) {
  BioPtr in = reader_of(public_pem);
  KeyPtr key(PEM_read_bio_PUBKEY(in.get(), nullptr, no_pass_phrase, nullptr));
  if (!key) return openssl_error("reading a public key");
  if (EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519)
    return fail(Code::invalid, "the signing key is not Ed25519");
  auto bytes = from_base64(signature);
  if (!bytes.ok()) return false;
  DigestPtr context(EVP_MD_CTX_new());
  if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1)
    return openssl_error("verifying");
  bool good =
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(bytes->data()), bytes->size(),
                       reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace muster::pki
