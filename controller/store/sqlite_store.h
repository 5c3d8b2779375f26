// The Store on SQLite: WAL, synchronous=FULL, one writer thread that commits whatever has queued up as one
// transaction.
//
// One controller per database: a second one is refused (Code::conflict names the pid). A damaged, foreign or
// newer database is refused and left unchanged. An older one is copied to a backup in the same folder before
// it is migrated. The destructor writes what is queued; callbacks that have not run by then never run.
#pragma once

#include <memory>

#include "controller/ports/store.h"
#include "controller/store/migrate.h"
#include "sys/reactor.h"

namespace muster {

// `post` must run a task on the reactor's thread; it is called on the writer thread.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 std::function<void(Reactor::Task)> post, TimeMs now = 0);
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, Reactor& reactor);

}  // namespace muster
