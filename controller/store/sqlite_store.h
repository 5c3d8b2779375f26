// The Store on SQLite: WAL, synchronous=FULL, one writer thread that commits whatever has queued up as one
// transaction. One controller per database: a second one is refused (Code::conflict names the pid). A
// damaged, foreign or newer database is refused and left unchanged. An older one is copied to a backup in the
// same folder before it is migrated. The destructor writes what is queued; callbacks that have not run by
// then never run.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "controller/ports/store.h"
#include "controller/store/migrate.h"
#include "controller/store/sqlite.h"
#include "sys/reactor.h"

namespace muster {

// `post` must run a task on the reactor's thread; it is called on the writer thread.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 std::function<void(Reactor::Task)> post, TimeMs now = 0);
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, Reactor& reactor);

// Reads the rows of certificates for threads that must not wait for the reactor's thread: the servers look up
// a client's certificate, by its serial number, while they read the header of a request. It has a database
// connection of its own, so that it reads the last commit. Thread: any.

class CertificateReader {
 public:
  // `path`: of the database, which open_sqlite_store() must have opened before.
  static Result<std::unique_ptr<CertificateReader>> open(const std::string& path);
  // Code::not_found: this controller issued no certificate with that serial number.
  Result<CertificateRow> find(const std::string& serial);

 private:
  explicit CertificateReader(sqlite::Connection db) : db_(std::move(db)) {}

  std::mutex mutex_;
  sqlite::Connection db_;
};

}  // namespace muster
