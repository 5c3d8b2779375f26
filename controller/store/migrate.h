// Which databases the controller accepts, and how an older one becomes a current one.
//
// schema/migrations/NNNN_name.sql are embedded; PRAGMA user_version is the number of the last one applied. A
// database that is newer, foreign or damaged is refused before anything is written to it. Thread: any, before
// the store is in use.
#pragma once

#include <string>

#include "controller/store/sqlite.h"

namespace muster {

constexpr int64_t kApplicationId = 0x4d757374;  // "Must"
int64_t newest_schema();

// Looks only: reads the header and runs quick_check over a read-only connection. Ok for a file that does not
// exist or is empty. Returns its schema version (0: nothing there). Code::corrupt: damaged or not ours;
// Code::denied: newer than this program.
Result<int64_t> inspect_database(const std::string& path);
// Applies what is missing, each migration in a transaction of its own.
Status migrate(sqlite::Connection& db);
// The whole schema as text, in a stable order; equal to schema/current.sql.
Result<std::string> dump_schema(sqlite::Connection& db);

// Copies a store, also while a controller uses it, into a new file that is checked and synced before it
// appears under its name. Refuses an existing `to`.
Status backup_store(const std::string& from, const std::string& to);

}  // namespace muster
