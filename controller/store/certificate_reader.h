// CertificateReader: what the store holds about a certificate, for threads that must not wait for the
// reactor's.
//
// The servers look a certificate up while they read a request's header, when its serial number is all they
// have. The class has a connection of its own, so that it reads what was committed last. Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "controller/store/sqlite.h"
#include "controller/store/store.h"

namespace muster {

class CertificateReader {
 public:
  // `path`: the database, which open_sqlite_store() has opened before.
  static Result<std::unique_ptr<CertificateReader>> open(const std::string& path);
  // not_found: this controller never issued one with that number.
  Result<CertificateRow> find(const std::string& serial);

 private:
  explicit CertificateReader(sqlite::Connection db) : db_(std::move(db)) {}

  std::mutex mutex_;
  sqlite::Connection db_;
};

}  // namespace muster
