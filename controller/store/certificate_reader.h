// CertificateReader: reads the rows of certificates from the store, for threads that must not wait for the
// reactor's thread.
//
// The servers look up a client's certificate, by its serial number, while they read the header of a request.
// The class has a database connection of its own, so that it reads the last commit. Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "controller/ports/store.h"
#include "controller/store/sqlite.h"

namespace muster {

class CertificateReader {
 public:
  // `path`: of the database, which open_sqlite_store() must have opened before.
  static Result<std::unique_ptr<CertificateReader>> open(const std::string& path);
  // Returns the row. Code::not_found: this controller issued no certificate with that serial number.
  Result<CertificateRow> find(const std::string& serial);

 private:
  explicit CertificateReader(sqlite::Connection db) : db_(std::move(db)) {}

  std::mutex mutex_;
  sqlite::Connection db_;
};

}  // namespace muster
