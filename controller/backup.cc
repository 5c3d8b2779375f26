#include "controller/backup.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace muster {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

Result<Database> open(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) return fail(Code::failed, path + ": " + (raw ? sqlite3_errmsg(raw) : "out of memory"));
  return db;
}

}  // namespace

Status backup_state(const std::string& state, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return fail(Code::conflict, path + " exists already");
  TRY(const auto from, open(state + "/muster.db", SQLITE_OPEN_READONLY));
  const int created = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (created < 0) return fail(Code::failed, path + ": " + std::strerror(errno));
  ::close(created);
  const auto to = open(path, SQLITE_OPEN_READWRITE);
  if (!to.ok()) return to.error();
  sqlite3_backup* copy = sqlite3_backup_init(to->get(), "main", from.get(), "main");
  if (!copy) return fail(Code::failed, std::string("backup: ") + sqlite3_errmsg(to->get()));
  const int stepped = sqlite3_backup_step(copy, -1);
  sqlite3_backup_finish(copy);
  if (stepped == SQLITE_DONE) return Ok{};
  std::filesystem::remove(path, ignored);
  return fail(Code::failed, std::string("backup: ") + sqlite3_errstr(stepped));
}

}  // namespace muster
