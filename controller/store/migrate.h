// Checks whether the controller can use a database, and migrates an older one to the current schema.
// schema/migrations/NNNN_name.sql are embedded; PRAGMA user_version is the number of the last one applied. A
// newer, foreign or damaged database is refused before anything is written to it. Thread: any, before the
// store is in use.
#pragma once

#include <string>

#include "controller/store/sqlite.h"

namespace muster {

constexpr int64_t kApplicationId = 0x4d757374;  // "Must"
int64_t newest_schema();

// Returns the schema version (0: the file does not exist or is empty). Writes nothing: reads the header and
// runs quick_check on a read-only connection. Code::corrupt: damaged, or not a muster database; Code::denied:
// newer than this program.
Result<int64_t> inspect_database(const std::string& path);
// Each in a transaction of its own.
Status migrate(sqlite::Connection& db);
// In a stable order; equal to schema/current.sql.
Result<std::string> dump_schema(sqlite::Connection& db);

// How many bytes a copy of the database has, at most.
Result<int64_t> copy_size(const std::string& path);
// Copies a database, even while a controller uses it, to a new file, which is checked and synced before it
// gets its final name. Fails if `to` exists. Needs the space of one copy, where `to` is; a second one beside
// the database only if other users can replace a part of the path to another file system.
Status backup_store(const std::string& from, const std::string& to);
// Removes what a killed process left of copies in a folder that only one process uses: their private folders
// go when another is made there (sys/private_folder.h).
Status remove_left_copies(const std::string& folder);

}  // namespace muster
