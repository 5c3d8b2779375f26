#include "agent/work/file_journal.h"

#include <algorithm>

#include "base/json_dump.h"
#include "base/split.h"

namespace muster {
namespace {
constexpr size_t kKept = 256;
}

FileJournal::FileJournal(Reactor& reactor, const Files& files, std::string path)
    : reactor_(reactor), files_(files), path_(std::move(path)) {}

void FileJournal::keep(const OrderRecord& record) {
  const auto same = [&](const OrderRecord& r) { return r.order == record.order; };
  records_.erase(std::remove_if(records_.begin(), records_.end(), same), records_.end());
  records_.push_back(record);
  if (records_.size() > kKept) records_.erase(records_.begin());
}

Result<std::vector<OrderRecord>> FileJournal::load() {
  records_.clear();
  if (!files_.exists(path_)) return records_;
  TRY(const std::string text, files_.read(path_));
  for (const std::string& line : split_lines(text)) {
    if (line.empty()) continue;
    auto json = parse_json(line);
    // Atomic writes leave no truncated record, so an unreadable one is damage, not the effect of a crash.
    if (!json.ok()) return fail(Code::corrupt, path_ + ": " + json.error().message);
    TRY(auto record, order_record_from_json(*json));
    keep(record);
  }
  return records_;
}

void FileJournal::append(const OrderRecord& record, Done done) {
  keep(record);
  std::string text;
  for (const auto& r : records_) text += dump_ascii(to_json(r)) + "\n";
  Status status = files_.write(path_, text, 0600);
  reactor_.post([status, done] { done(status); });
}

}  // namespace muster
