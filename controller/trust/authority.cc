#include "controller/trust/authority.h"

#include <sys/stat.h>

#include <utility>

#include "sys/lock_file.h"

namespace muster {
namespace {

constexpr size_t kShortestToken = 32;
constexpr char kIdentity[] = "/pki/identity";
constexpr int kCaDays = 3650;
constexpr int kServerDays = 825;
constexpr int kServerRenewDays =
    275;  // the controller reissues the server's certificate at its start if fewer days are left

// NAME.key and NAME.crt.
PairPaths paths_of(const std::string& name) { return {"/pki/" + name + ".key", "/pki/" + name + ".crt"}; }

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& w : words) all += w + "\n";
  return all;
}

bool expires_before(const std::string& certificate_pem, TimeMs limit) {
  const auto info = pki::read_certificate(certificate_pem);
  return info.ok() && info->not_after < limit;
}

// At the time of its making: the clock of today may be wrong.
bool is_signed_by(const pki::KeyPair& ca, const std::string& certificate_pem) {
  const auto info = pki::read_certificate(certificate_pem);
  return info.ok() &&
         pki::verify_certificate(ca.certificate_pem, certificate_pem, info->not_before + kDay).ok();
}

// The end of the second in which the file was written, or written back from a backup.
TimeMs written_by(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? (static_cast<TimeMs>(info.st_mtim.tv_sec) + 1) * kSecond : 0;
}

Result<pki::KeyPair> make_own_ca() { return pki::make_ca("muster CA", kCaDays); }

// The present CA is withdrawn once the next one's key is in its place: what follows is repeated here if
// musterd was killed in between. A next key without a certificate is from a beginning that was killed.
Status complete_withdrawal(const Files& files) {
  const PairPaths ca = paths_of("ca"), next = paths_of("ca-next");
  if (!files.exists(next.open)) return files.remove(next.secret);
  TRY(const auto key, files.read(next.secret));
  if (files.read(ca.secret).value_or("") != key) return Ok{};  // both are in use
  TRY(const auto certificate, files.read(next.open));
  TRY_(files.write(ca.open, certificate, 0644));
  TRY_(files.remove(next.open));
  return files.remove(next.secret);
}

}  // namespace

Result<std::string> kept_text(const Files& files, const std::string& path, unsigned mode,
                              const std::function<Result<std::string>()>& make) {
  if (files.exists(path)) return files.read(path);
  TRY(auto content, make());
  TRY_(files.write(path, content, mode));
  return content;
}

Result<pki::KeyPair> kept_pair(const Files& files, const PairPaths& paths,
                               const std::function<Result<pki::KeyPair>()>& make) {
  pki::KeyPair pair;
  if (files.exists(paths.secret) && files.exists(paths.open)) {
    TRY(pair.key_pem, files.read(paths.secret));
    TRY(pair.certificate_pem, files.read(paths.open));
    return pair;
  }
  TRY(pair, make());
  TRY_(files.write(paths.secret, pair.key_pem, 0600));
  TRY_(files.write(paths.open, pair.certificate_pem, 0644));
  return pair;
}

Result<pki::KeyPair> shared_pair(const std::string& folder, const PairPaths& paths,
                                 const std::function<Result<pki::KeyPair>()>& make) {
  TRY(auto lock, LockFile::wait(folder + paths.secret + ".lock"));
  return kept_pair(Files(folder), paths, make);
}

Result<Authority> Authority::open(const std::string& state, const std::vector<std::string>& addresses,
                                  TimeMs now) {
  const Files files(state);
  TRY_(files.make_directories("/pki", 0700));
  TRY_(complete_withdrawal(files));
  Authority a;
  a.state_ = state;
  a.addresses_ = addresses;
  TRY(a.ca_, kept_pair(files, paths_of("ca"), make_own_ca));
  if (files.exists(paths_of("ca-next").open)) {
    TRY(a.next_, kept_pair(files, paths_of("ca-next"), make_own_ca));
  }
  TRY(a.report_, kept_pair(files, paths_of("report"), [] { return pki::make_signing_key(); }));
  // Agents pin the CA, so a reissued server certificate does not affect them.
  const std::string served = files.read("/pki/server.crt").value_or("");
  const bool old = expires_before(served, now + kServerRenewDays * kDay) || !is_signed_by(a.ca_, served);
  if (old || files.read("/pki/server.names").value_or("") != joined(addresses)) {
    TRY_(files.remove("/pki/server.crt"));
    TRY_(files.write("/pki/server.names", joined(addresses), 0644));
  }
  TRY(a.server_, kept_pair(files, paths_of("server"), [&] {
        return pki::issue(a.ca_, {"musterd", kControllerOrganization, addresses, true, kServerDays});
      }));
  a.server_.certificate_pem += a.ca_.certificate_pem;
  TRY(a.operator_token_,
      kept_text(files, "/operator-token", 0600, [] { return Result<std::string>(random_hex(32)); }));
  while (!a.operator_token_.empty() && a.operator_token_.back() == '\n') a.operator_token_.pop_back();
  // An empty token would give all clients access.
  if (a.operator_token_.size() < kShortestToken)
    return fail(
        Code::corrupt,
        state + "/operator-token is shorter than 32 characters; remove the file, and a new token is created");
  a.ca_pem_ = a.ca_.certificate_pem + a.next_.certificate_pem;
  TRY(a.ca_fingerprint_, pki::certificate_fingerprint(a.ca_.certificate_pem));
  a.identity_ = files.read_line(kIdentity, a.ca_fingerprint_);
  if (a.replacing_ca())
    a.trust_changed_ = written_by(state + paths_of("ca-next").open);
  else if (a.identity_ != a.ca_fingerprint_)
    a.trust_changed_ = written_by(state + paths_of("ca").open);
  return a;
}

Status Authority::replace_token() {
  const std::string token = random_hex(32);
  TRY_(Files(state_).write("/operator-token", token, 0600));
  operator_token_ = token;
  return Ok{};
}

Status Authority::begin_ca(TimeMs now) {
  if (replacing_ca()) return Ok{};
  TRY_(kept_pair(Files(state_), paths_of("ca-next"), make_own_ca));
  TRY(*this, open(state_, addresses_, now));
  trust_changed_ = now;
  return Ok{};
}

Status Authority::withdraw_ca(TimeMs now) {
  if (!replacing_ca()) return Ok{};
  const Files files(state_);
  TRY_(kept_text(files, kIdentity, 0644, [this] { return Result<std::string>(ca_fingerprint_); }));
  TRY_(files.write(paths_of("ca").secret, next_.key_pem, 0600));  // from here on there is no way back
  TRY(*this, open(state_, addresses_, now));
  trust_changed_ = now;
  return Ok{};
}

std::map<std::string, TimeMs> Authority::certificate_ends() const {
  std::map<std::string, TimeMs> out;
  for (const auto& [name, pem] :
       {std::pair<const char*, const std::string&>{"ca", ca_.certificate_pem},
        std::pair<const char*, const std::string&>{"server", server_.certificate_pem}})
    if (const auto info = pki::read_certificate(pem); info.ok()) out[name] = info->not_after;
  return out;
}

Result<Authority::AgentCertificate> Authority::sign_agent(const std::string& node,
                                                          const std::string& csr_pem) const {
  AgentCertificate made;
  TRY(made.pem, pki::sign_csr(replacing_ca() ? next_ : ca_, csr_pem,
                              {node, kAgentOrganization, {}, false, kAgentDays}));
  TRY(const auto info, pki::read_certificate(made.pem));
  made.serial = info.serial;
  TRY(made.fingerprint, pki::certificate_fingerprint(made.pem));
  return made;
}

}  // namespace muster
