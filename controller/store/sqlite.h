// A thin, typed wrapper around SQLite for controller/store: one connection, cached statements, errors as
// Result. Thread: a Connection belongs to one thread at a time. Never retries, never logs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::sqlite {

using Value = std::variant<std::nullptr_t, int64_t, std::string>;

class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t number(int column) const;  // 0 for NULL
  std::string text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

enum class Mode { read_only, read_write };

class Connection {
 public:
  static Result<Connection> open(const std::string& path, Mode mode);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  // One or more statements without parameters or results.
  Status script(const std::string& sql);
  Status run(const char* sql, const std::vector<Value>& values);
  Status query(const char* sql, const std::vector<Value>& values,
               const std::function<void(const Row&)>& on_row);
  // Return the first column of the first row; 0, or "", if there is no row.
  Result<int64_t> number(const char* sql);
  Result<std::string> text(const char* sql);

 private:
  explicit Connection(sqlite3* db) : db_(db) {}
  Error error(int code, std::string_view doing) const;
  Result<sqlite3_stmt*> prepare(const char* sql);

  sqlite3* db_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

}  // namespace muster::sqlite
