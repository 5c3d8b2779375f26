#include "controller/store/migrate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "sys/path_kind.h"

namespace muster {

namespace embedded {
extern const char* const migrations[];  // ends with nullptr
}

namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);

Status check_header(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char header[100] = {};
  file.read(header, sizeof header);
  if (file.gcount() != sizeof header || std::string_view(header, 16) != kMagic)
    return fail(Code::corrupt, path + ": not a database (or its beginning is damaged)");
  return Ok{};
}

Status sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool ok = fd >= 0 && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  if (!ok) return fail(Code::failed, fmt::format("{}: {}", path, std::strerror(errno)));
  return Ok{};
}

// The copy belongs to its owner alone from its first byte on: SQLite keeps the mode of an empty file, also for
// the journal beside it.
Status copy_checked(const std::string& from, const std::string& to) {
  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return fail(Code::failed, fmt::format("{}: {}", to, std::strerror(errno)));
  ::close(fd);
  {
    TRY(sqlite::Connection db, sqlite::Connection::open(from, sqlite::Mode::read_only));
    TRY_(db.run("VACUUM INTO ?", {to}));
  }
  TRY(const int64_t version, inspect_database(to));
  if (version == 0) return fail(Code::failed, to + ": the copy is empty");
  return sync_file(to);
}

}  // namespace

int64_t newest_schema() {
  int64_t count = 0;
  while (embedded::migrations[count]) ++count;
  return count;
}

Result<int64_t> inspect_database(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || info.st_size == 0) return int64_t{0};
  TRY_(check_header(path));
  TRY(sqlite::Connection db, sqlite::Connection::open(path, sqlite::Mode::read_only));
  // Read through SQLite, not from the header: after a crash the current values may be in the write-ahead log.
  const auto id = db.number("PRAGMA application_id");
  const auto tables = db.number("SELECT count(*) FROM sqlite_master");
  if (id.ok() && tables.ok() && *id == 0 && *tables == 0)
    return int64_t{0};  // the controller died between creation and the first migration
  if (id.ok() && *id != kApplicationId) return fail(Code::corrupt, path + ": belongs to a different program");
  const auto version = db.number("PRAGMA user_version");
  if (!version.ok())
    return fail(Code::corrupt, fmt::format("{}: damaged ({})", path, version.error().message));
  if (*version > newest_schema())
    return fail(
        Code::denied,
        fmt::format(
            "{}: written by a newer muster (schema {}, this program supports up to {}); it was not changed",
            path, *version, newest_schema()));
  const auto check = db.text("PRAGMA quick_check(1)");
  if (!check.ok() || *check != "ok")
    return fail(Code::corrupt, fmt::format("{}: damaged ({}); it was not changed: restore a backup", path,
                                           check.ok() ? *check : check.error().message));
  return *version;
}

Status migrate(sqlite::Connection& db) {
  TRY(int64_t version, db.number("PRAGMA user_version"));
  for (; embedded::migrations[version]; ++version) {
    const std::string script = fmt::format("BEGIN IMMEDIATE;\n{}\nPRAGMA user_version = {};\nCOMMIT;",
                                           embedded::migrations[version], version + 1);
    if (Status applied = db.script(script); !applied.ok()) {
      (void)db.script("ROLLBACK");
      return std::move(applied).error().with(fmt::format("migration {:04}", version + 1));
    }
  }
  return Ok{};
}

Result<std::string> dump_schema(sqlite::Connection& db) {
  std::string out;
  TRY_(
      db.query("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY "
               "type DESC, name",
               {}, [&](const sqlite::Row& row) { out += row.text(0) + ";\n"; }));
  return out;
}

Status backup_store(const std::string& from, const std::string& to) {
  TRY(const int64_t version, inspect_database(from));
  if (version == 0) return fail(Code::not_found, from + ": no such database");
  TRY_(expect_at(to, {PathKind::nothing}));
  // In a folder of its own: others may write into the target's, and put a link or a journal in the copy's way.
  std::string folder = to + ".XXXXXX";
  if (!::mkdtemp(folder.data())) return fail(Code::failed, fmt::format("{}: {}", to, std::strerror(errno)));
  const std::string copy = folder + "/copy";
  Status copied = copy_checked(from, copy);
  // link() fails if the name exists; rename() would replace the file.
  if (copied.ok() && ::link(copy.c_str(), to.c_str()) != 0)
    copied = errno == EEXIST ? fail(Code::conflict, to + ": already exists")
                             : fail(Code::failed, fmt::format("{}: {}", to, std::strerror(errno)));
  for (const char* left : {"", "-journal", "-wal", "-shm"}) ::unlink((copy + left).c_str());
  ::rmdir(folder.c_str());
  if (!copied.ok()) return copied;
  const size_t slash = to.rfind('/');
  return sync_file(slash == std::string::npos ? "." : slash == 0 ? "/" : to.substr(0, slash));
}

}  // namespace muster
