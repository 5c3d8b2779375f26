#include "controller/run/journal_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace muster {

JournalWriter::JournalWriter(Reactor& reactor, Store& store)
    : reactor_(reactor), store_(store), alive_(std::make_shared<bool>(true)) {}

JournalWriter::~JournalWriter() { *alive_ = false; }

void JournalWriter::write(Rows rows, std::function<void()> then) {
  std::move(rows.begin(), rows.end(), std::back_inserter(unwritten_));
  if (then) after_write_.push_back(std::move(then));
  if (!writing_) flush();
}

void JournalWriter::flush() {
  if (unwritten_.empty() && after_write_.empty()) return;
  writing_ = true;
  auto rows = std::make_shared<Rows>(std::exchange(unwritten_, {}));
  auto then = std::make_shared<Thens>(std::exchange(after_write_, {}));
  commit(rows, then);
}

void JournalWriter::commit(std::shared_ptr<Rows> rows, std::shared_ptr<Thens> then) {
  store_.write(*rows, [this, alive = alive_, rows, then](Status status) {
    if (!*alive) return;
    if (!status.ok()) {
      if (!std::exchange(complained_, true))
        log::error("the store cannot be written; trying again every second",
                   {{"error", status.error().message}});
      reactor_.after(kSecond, [this, alive, rows, then] {
        if (*alive) commit(rows, then);
      });
      return;
    }
    writing_ = complained_ = false;
    flush();
    for (const auto& next : *then)
      if (*alive) next();
  });
}

}  // namespace muster
