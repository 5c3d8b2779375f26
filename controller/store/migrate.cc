#include "controller/store/migrate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sys/open_way.h"

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

Status copy_checked(const std::string& from, const std::string& to) {
  {
    TRY(sqlite::Connection db, sqlite::Connection::open(from, sqlite::Mode::read_only));
    TRY_(db.run("VACUUM INTO ?", {to}));
  }
  TRY(const int64_t version, inspect_database(to));
  return version == 0 ? fail(Code::failed, to + ": the copy is empty") : Status(Ok{});
}

// The whole content of the file.
Status copy_bytes(const std::string& from, int to) {
  const OpenFd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source.open()) return file_error("opening", from, errno);
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const ssize_t n = ::read(source.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error("reading", from, errno);
    if (n == 0) return Ok{};
    TRY_(write_bytes(to, {buffer.data(), static_cast<size_t>(n)}, "the copy"));
  }
}

// Under the copy's final name, where both are on one file system. False: they are not, or it has no links.
Result<bool> linked(const OpenWay& copy, const OpenWay& target) {
  const std::string from = std::filesystem::path(copy.path()).filename(),
                    to = std::filesystem::path(target.path()).filename();
  const OpenFd file(::openat(copy.folder(), from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.open()) return file_error("opening", copy.path(), errno);
  if (::fchmod(file.get(), 0600) != 0) return file_error("setting the mode of", copy.path(), errno);
  if (::fsync(file.get()) != 0) return file_error("syncing", copy.path(), errno);
  if (::linkat(copy.folder(), from.c_str(), target.folder(), to.c_str(), 0) != 0) {
    if (errno == EEXIST) return fail(Code::conflict, target.path() + ": already exists");
    return false;
  }
  const OpenFd folder(::openat(target.folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open() || (::fsync(folder.get()) != 0 && errno != EINVAL))
    return file_error("syncing the folder of", target.path(), errno);
  return true;
}

// Said before anything is written: SQLite's own error names no size.
Status expect_room(const std::string& from, const std::string& folder) {
  TRY(const int64_t size, copy_size(from));
  std::error_code unknown;
  const auto room = std::filesystem::space(folder, unknown);
  // Root may use the space that is reserved for it.
  if (unknown || room.free >= static_cast<uintmax_t>(size)) return Ok{};
  return fail(Code::failed, fmt::format("{}: a copy of {} needs {} MiB, and {} MiB are free", folder, from,
                                        (size >> 20) + 1, room.free >> 20));
}

}  // namespace

Result<int64_t> copy_size(const std::string& path) {
  TRY(sqlite::Connection db, sqlite::Connection::open(path, sqlite::Mode::read_only));
  TRY(const int64_t pages, db.number("PRAGMA page_count"));
  TRY(const int64_t spare, db.number("PRAGMA freelist_count"));
  TRY(const int64_t page, db.number("PRAGMA page_size"));
  return (pages - spare) * page;
}

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
  TRY(const OpenWay target, OpenWay::to("/", to));
  TRY(const FileState there, target.look());
  if (there.exists) return fail(Code::conflict, to + ": already exists");
  // SQLite opens files by their paths, and others may read what it makes. So its copy is made in a folder
  // that only this user can enter: beside the target, whose file system is to hold it, or beside the database
  // where other users can replace a part of the target's path.
  TRY(const OpenWay database, OpenWay::to("/", from));
  const OpenWay& place = target.others_can_replace() ? database : target;
  TRY_(expect_room(from, std::filesystem::path(place.path()).parent_path()));
  return place.in_private_folder("copy.db", [&](const OpenWay& copy) -> Status {
    TRY_(copy_checked(from, copy.path()));
    TRY(const bool done, linked(copy, target));
    if (done) return Ok{};
    return target.write([&](int fd) { return copy_bytes(copy.path(), fd); }, 0600, {},
                        OpenWay::Existing::kept);
  });
}

Status remove_left_copies(const std::string& folder) {
  TRY(const OpenWay way, OpenWay::to("/", folder + "/copy.db"));
  return way.in_private_folder("copy.db", [](const OpenWay&) -> Status { return Ok{}; });
}

}  // namespace muster
