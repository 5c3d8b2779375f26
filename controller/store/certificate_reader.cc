#include "controller/store/certificate_reader.h"

#include "controller/store/rows.h"

namespace muster {

Result<std::unique_ptr<CertificateReader>> CertificateReader::open(const std::string& path) {
  TRY(sqlite::Connection db, sqlite::Connection::open(path, sqlite::Mode::read_write));
  TRY_(db.script("PRAGMA query_only = ON"));
  return std::unique_ptr<CertificateReader>(new CertificateReader(std::move(db)));
}

Result<CertificateRow> CertificateReader::find(const std::string& serial) {
  const std::lock_guard hold(mutex_);
  return read_certificate(db_, serial);
}

}  // namespace muster
