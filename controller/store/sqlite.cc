#include "controller/store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

namespace muster::sqlite {

namespace {

Code code_of(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
      return Code::invalid;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::corrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::unavailable;
    case SQLITE_CANTOPEN:
      return Code::not_found;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return Code::denied;
    default:
      return Code::failed;
  }
}

// Resets a statement after use: one that did not run to its end (for instance because of an unreadable row)
// would hold its connection at an old snapshot of the database.
class InUse {
 public:
  explicit InUse(sqlite3_stmt* statement) : statement_(statement) {}
  ~InUse() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  sqlite3_stmt* statement_;
};

int bind(sqlite3_stmt* statement, int at, const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return sqlite3_bind_int64(statement, at, *number);
  if (const auto* text = std::get_if<std::string>(&value))
    return sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return sqlite3_bind_null(statement, at);
}

}  // namespace

int64_t Row::number(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Row::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

Result<Connection> Connection::open(const std::string& path, Mode mode) {
  sqlite3* db = nullptr;
  const int flags =
      (mode == Mode::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
      SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  Connection connection(db);
  if (code != SQLITE_OK) return connection.error(code, "opening " + path);
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, 5000);
  return connection;
}

Connection::Connection(Connection&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)), statements_(std::move(other.statements_)) {
  other.statements_.clear();
}

Connection::~Connection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

Error Connection::error(int code, std::string_view doing) const {
  return fail(code_of(code), fmt::format("{}: {}", doing, db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(code)));
}

Status Connection::script(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code, "database");
  return Ok{};
}

Result<sqlite3_stmt*> Connection::prepare(const char* sql) {
  const auto found = statements_.find(std::string_view(sql));
  if (found != statements_.end()) return found->second;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return error(code, "database");
  statements_.emplace(sql, statement);
  return statement;
}

Status Connection::query(const char* sql, const std::vector<Value>& values,
                         const std::function<void(const Row&)>& on_row) {
  TRY(sqlite3_stmt* const statement, prepare(sql));
  const InUse in_use(statement);
  for (size_t i = 0; i < values.size(); ++i)
    if (const int code = bind(statement, static_cast<int>(i) + 1, values[i]); code != SQLITE_OK)
      return error(code, "database");
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW)
    if (on_row) on_row(Row(statement));
  return code == SQLITE_DONE ? Status(Ok{}) : Status(error(code, "database"));
}

Status Connection::run(const char* sql, const std::vector<Value>& values) { return query(sql, values, {}); }

Result<int64_t> Connection::number(const char* sql) {
  int64_t out = 0;
  TRY_(query(sql, {}, [&](const Row& row) { out = row.number(0); }));
  return out;
}

Result<std::string> Connection::text(const char* sql) {
  std::string out;
  TRY_(query(sql, {}, [&](const Row& row) {
    if (out.empty()) out = row.text(0);
  }));
  return out;
}

}  // namespace muster::sqlite
