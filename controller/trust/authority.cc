#include "controller/trust/authority.h"

#include <functional>

#include "base/digest.h"
#include "base/os.h"

namespace muster {
namespace {

constexpr size_t kShortestToken = 32;
constexpr int kCaDays = 3650;
constexpr int kServerDays = 825;
constexpr int kServerRenewDays =
    275;  // what must be left of the server's certificate when the controller starts

// Reads `path`, or makes its content once and keeps it. The file exists completely or not at all.
Result<std::string> keep(const Files& files, const std::string& path, unsigned mode,
                         const std::function<Result<std::string>()>& make) {
  if (files.exists(path)) return files.read(path);
  TRY(auto content, make());
  TRY_(files.write(path, content, mode));
  return content;
}

// A key pair in NAME.key and NAME.crt. The certificate is written last: a key without it is replaced.
Result<pki::KeyPair> keep_pair(const Files& files, const std::string& name,
                               const std::function<Result<pki::KeyPair>()>& make) {
  const std::string key = "/pki/" + name + ".key";
  const std::string certificate = "/pki/" + name + ".crt";
  pki::KeyPair pair;
  if (files.exists(key) && files.exists(certificate)) {
    TRY(pair.key_pem, files.read(key));
    TRY(pair.certificate_pem, files.read(certificate));
    return pair;
  }
  TRY(pair, make());
  TRY_(files.write(key, pair.key_pem, 0600));
  TRY_(files.write(certificate, pair.certificate_pem, 0644));
  return pair;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& w : words) all += w + "\n";
  return all;
}

bool expires_before(const std::string& certificate_pem, TimeMs limit) {
  const auto info = pki::read_certificate(certificate_pem);
  return info.ok() && info->not_after < limit;
}

}  // namespace

Result<Authority> Authority::open(const std::string& state, const std::vector<std::string>& addresses,
                                  TimeMs now) {
  const Files files(state);
  TRY_(files.make_directories("/pki", 0700));
  Authority a;
  TRY(a.ca_, keep_pair(files, "ca", [] { return pki::make_ca("muster CA", kCaDays); }));
  TRY(a.report_, keep_pair(files, "report", [] { return pki::make_signing_key(); }));
  // Another address needs another server certificate, and so does one that is old; agents pin the CA, so they
  // do not notice.
  const bool old = expires_before(files.read("/pki/server.crt").value_or(""), now + kServerRenewDays * kDay);
  if (old || files.read("/pki/server.names").value_or("") != joined(addresses)) {
    TRY_(files.remove("/pki/server.crt"));
    TRY_(files.write("/pki/server.names", joined(addresses), 0644));
  }
  TRY(a.server_, keep_pair(files, "server", [&] {
        return pki::issue(a.ca_, {"musterd", kControllerOrganization, addresses, true, kServerDays});
      }));
  a.server_.certificate_pem += a.ca_.certificate_pem;
  TRY(a.operator_token_,
      keep(files, "/operator-token", 0600, [] { return Result<std::string>(random_hex(32)); }));
  while (!a.operator_token_.empty() && a.operator_token_.back() == '\n') a.operator_token_.pop_back();
  // An empty token would open the port to all clients.
  if (a.operator_token_.size() < kShortestToken)
    return fail(Code::corrupt,
                state + "/operator-token is shorter than 32 characters; remove it, and a new one is created");
  TRY(a.ca_fingerprint_, pki::certificate_fingerprint(a.ca_.certificate_pem));
  return a;
}

Result<Authority::AgentCertificate> Authority::sign_agent(const std::string& node,
                                                          const std::string& csr_pem) const {
  AgentCertificate made;
  TRY(made.pem, pki::sign_csr(ca_, csr_pem, {node, kAgentOrganization, {}, false, kAgentDays}));
  TRY(const auto info, pki::read_certificate(made.pem));
  made.serial = info.serial;
  TRY(made.fingerprint, pki::certificate_fingerprint(made.pem));
  return made;
}

}  // namespace muster
