// Writes the files of this folder: run once, against revision 2994356b, whose records were written by hand.
// Not part of any build. From a checkout of that revision, with THIS naming this folder:
//
//   for m in schema/migrations/*.sql; do printf 'R"~(%s)~",\n' "$(cat $m)"; done >/tmp/migrations.inc
//   g++ -std=c++20 -I. -I/tmp -ffunction-sections -Wl,--gc-sections $THIS/old_writers.cc base/{json,json_dump,
//     digest,facts,facts_text,manifest,wire,result,utf8,log,lock_file_linux,os_linux,fmt_library,time}.cc
//     agent/{identity,journal}.cc agent/disk/{marker,block_device}.cc controller/nodes/{states,held_by}.cc
//     controller/plan/{plan,action_params,json_pieces,shared_text}.cc controller/report/{report,report_json,
//     drift,drift_table,history,measured,signature}.cc controller/rollout/{rollout_record,rollout_row_json,
//     approval}.cc controller/store/{mark,migrate,rows,sqlite,sqlite_store}.cc -lsqlite3 -lcrypto -lfmt
//     -o /tmp/old_writers
//   /tmp/old_writers FOLDER
//   python3 $THIS/dump.py FOLDER/muster.db >FOLDER/muster.sql
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>

#include "agent/disk/marker.h"
#include "agent/identity.h"
#include "agent/journal.h"
#include "base/facts_text.h"
#include "base/json_dump.h"
#include "base/manifest.h"
#include "base/wire.h"
#include "controller/plan/plan.h"
#include "controller/report/history.h"
#include "controller/report/report.h"
#include "controller/report/signature.h"
#include "controller/rollout/rollout_record.h"
#include "controller/rollout/rollout_row_json.h"
#include "controller/store/mark.h"
#include "controller/store/sqlite_store.h"
#include "tests/fakes/temp_dir.h"
#include "values.inc"

namespace muster::embedded {
extern const char* const migrations[];
const char* const migrations[] = {
#include "migrations.inc"
    nullptr};
}  // namespace muster::embedded

using namespace muster;

namespace {

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

void write_database(const std::string& path) {
  std::mutex mutex;
  std::condition_variable wake;
  Reactor::Task task;
  auto store = open_sqlite_store(path, [&](Reactor::Task t) {
    const std::lock_guard hold(mutex);
    task = std::move(t);
    wake.notify_one();
  });
  if (!store.ok()) give_up(store.error().message);
  (*store)->write(kept::rows(), [](Status written) {
    if (!written.ok()) give_up(written.error().message);
  });
  std::unique_lock hold(mutex);
  wake.wait(hold, [&] { return bool(task); });
  task();
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  kept::take_all([&](const std::string& file, std::string text, const kept::Again& again) {
    if (again) {
      const auto copy = again(text);
      if (!copy.ok()) give_up(file + ": " + copy.error().message);
      if (*copy != text) give_up(file + ": written again it is\n" + *copy);
    }
    while (text.ends_with('\n')) text.pop_back();
    std::ofstream(folder + "/" + file, std::ios::binary) << text << "\n";
  });
  write_database(folder + "/muster.db");
}
