#include "controller/store/mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/digest.h"
#include "base/event_kind.h"
#include "base/json_dump.h"
#include "base/record.h"
#include "controller/nodes/states.h"

namespace muster {

MUSTER_RECORD(Mark::Reading, start, next, commits)

namespace {

constexpr size_t kBytes = 256;  // constant size, padded with spaces

// Returns why this is not the database that the controller last used; "" if it is.
std::string mismatch(const std::string& start, int64_t commits, const std::optional<Mark::Reading>& mark) {
  if (!mark && start.empty()) return "";  // a new database, or one of a version without marks
  if (!mark) return "there is no journal.mark next to the database, so it was copied from elsewhere";
  if (start != mark->start && start != mark->next)
    return "the controller has been started since this copy was made";
  if (commits < mark->commits)
    return fmt::format("the controller has written {} times since this copy was made",
                       mark->commits - commits);
  return "";
}

// The progress of runs since the copy was made is unknown: they end as cancelled, and a new history begins.
Status disown(sqlite::Connection& db, const std::string& why, TimeMs now) {
  const std::string reason =
      "the database is an older copy, so no run is continued: plan again (" + why + ")";
  const std::string running(to_string(RunState::running)), cancelled(to_string(RunState::cancelled));
  const Json ended = {{"state", cancelled}, {"reason", reason}};
  TRY_(
      db.run("INSERT INTO journal (run, action, node, attempt, event, time, data) SELECT id, '', '', 0, "
             "'ended', ?, ? FROM run WHERE state = ? ORDER BY id",
             {now, dump_json(ended), running}));
  TRY_(db.run("UPDATE run SET state = ?, ended = ? WHERE state = ?", {cancelled, now, running}));
  TRY_(db.run("INSERT INTO event (time, run, node, kind, json) VALUES (?, 0, '', ?, ?)",
              {now, std::string(EventKind("restored").word()), dump_json(Json{{"reason", reason}})}));
  return db.run("UPDATE history SET name = ?, restored = ?", {random_hex(8), now});
}

Status enter(sqlite::Connection& db, const std::string& start, const std::string& why, TimeMs now,
             int64_t commits) {
  TRY_(db.script("BEGIN IMMEDIATE"));
  Status done = why.empty() ? Status(Ok{}) : disown(db, why, now);
  if (done.ok())
    done = db.run("UPDATE history SET start = ?, commits = ?, name = iif(name = '', ?, name)",
                  {start, commits, random_hex(8)});
  if (done.ok()) done = db.script("COMMIT");
  if (!done.ok()) (void)db.script("ROLLBACK");
  return done;
}

}  // namespace

Mark::~Mark() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Mark> Mark::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail(Code::failed, fmt::format("{}: {}", path, std::strerror(errno)));
  return Mark(path, fd);
}

std::optional<Mark::Reading> Mark::read() const {
  char bytes[kBytes];
  const ssize_t got = ::pread(fd_, bytes, sizeof bytes, 0);
  if (got != static_cast<ssize_t>(sizeof bytes)) return std::nullopt;
  const auto json = parse_json(std::string(bytes, sizeof bytes));
  if (!json.ok()) return std::nullopt;
  const auto reading = read_record<Reading>(*json, "mark");
  return reading.ok() ? std::optional(*reading) : std::nullopt;
}

Status Mark::write(const Reading& reading, bool sync) {
  std::string text = dump_json(record_json(reading));
  text.resize(kBytes - 1, ' ');
  text += '\n';
  if (::pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      (sync && ::fdatasync(fd_) != 0))
    return fail(Code::failed, fmt::format("{}: {}", path_, std::strerror(errno)));
  return Ok{};
}

std::string mark_path(const std::string& database) {
  const auto slash = database.rfind('/');
  return (slash == std::string::npos ? "" : database.substr(0, slash + 1)) + "journal.mark";
}

Result<std::string> enter_start(sqlite::Connection& db, Mark& mark, TimeMs now, Mark::Reading& entered) {
  TRY(const std::string start, db.text("SELECT start FROM history"));
  TRY(const int64_t commits, db.number("SELECT commits FROM history"));
  const auto was = mark.read();
  const std::string why = mismatch(start, commits, was);
  const std::string next = random_hex(8);
  // Numbers must never decrease: otherwise an older copy that is restored later would count as newer.
  entered = {next, next, std::max(commits, was ? was->commits : 0) + 1};
  // The mark first announces this start, then confirms it, so that a controller that dies in between still
  // recognises its database. For a rejected copy the start is not announced: until the cancellation is
  // durable, the mark must not match.
  if (why.empty()) TRY_(mark.write({start, next, commits}, true));
  TRY_(enter(db, next, why, now, entered.commits));
  TRY_(mark.write(entered, true));
  return why;
}

}  // namespace muster
