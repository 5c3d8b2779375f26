// CertificateReader: what the store says of a certificate, for threads that must not wait for the reactor's.
//
// The servers ask while they read a request's header, where all they have to decide by is the certificate's
// serial number. Has a connection of its own, so that what it says is what was committed last. Thread: any.
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
  // not_found: this controller never made one with that number.
  Result<CertificateRow> find(const std::string& serial);

 private:
  explicit CertificateReader(sqlite::Connection db) : db_(std::move(db)) {}

  std::mutex mutex_;
  sqlite::Connection db_;
};

}  // namespace muster
