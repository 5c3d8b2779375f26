#include "controller/trust/kept_keys.h"

#include "sys/lock_file.h"

namespace muster {

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

}  // namespace muster
