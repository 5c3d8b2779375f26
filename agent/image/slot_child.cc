#include "agent/image/slot_child.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <mutex>
#include <thread>

#include "agent/image/image_job.h"
#include "agent/image/own_slots.h"
#include "agent/image/write_slot.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "sys/clock.h"

namespace muster {
namespace {

constexpr const char* kAgent = "/usr/sbin/muster-agent";

// Writes lines to standard output from several threads.
class Lines {
 public:
  void put(const Json& line) {
    const std::string text = dump_ascii(line) + "\n";
    const std::lock_guard lock(mutex_);
    // The agent, which reads this pipe, is gone; its next order continues from this point.
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      std::_Exit(1);
  }

 private:
  std::mutex mutex_;
};

// Prints a line every second, because the agent checks for withdrawal only when it receives output.
class Beat {
 public:
  explicit Beat(Lines& lines) : thread_([this, &lines] { beat(lines); }) {}
  ~Beat() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void beat(Lines& lines) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; }))
      lines.put({{"kind", "beat"}});
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

Json progress_of(uint64_t done, uint64_t total, int64_t started, int64_t now) {
  const double rate =
      now > started ? static_cast<double>(done) / 1048.576 / static_cast<double>(now - started) : 0;
  return {{"done", done},
          {"total", total},
          {"unit", "bytes"},
          {"text", fmt::format("writing the unused slot, {:.0f} MB/s", rate)}};
}

Result<Json> carry_out(const std::string& text, Lines& lines) {
  TRY(const Json request, parse_json(text));
  if (!request.is_object() || !request.contains("job"))
    return fail(Code::invalid, "standard input: expected a job");
  TRY(const wire::SlotJob job, wire::slot_job_from_json(request["job"]));
  const Files files;
  WriteSlotDeps deps = real_write_slot_deps(files, job);
  deps.order = request.value("order", "");
  deps.say = [&lines](const std::string& said) {
    lines.put({{"kind", "progress"}, {"data", {{"text", said}}}});
  };
  const int64_t started = monotonic_ms();
  int64_t last = 0;
  deps.progress = [&lines, started, &last](uint64_t done, uint64_t total) {
    const int64_t now = monotonic_ms();
    if (done < total && now - last < 1000) return;
    last = now;
    lines.put({{"kind", "progress"}, {"data", progress_of(done, total, started, now)}});
  };
  TRY(const WriteSlotResult result, write_slot(job, deps));
  Json out = to_json(result, job);
  out["write_ms"] = monotonic_ms() - started;
  return out;
}

Result<std::string> state_of_unit(Process& process) {
  TRY(std::string state,
      run_ok(process, {.argv = {"systemctl", "show", "--value", "-p", "ActiveState", kWriteSlotUnit}}));
  while (!state.empty() && std::isspace(static_cast<unsigned char>(state.back()))) state.pop_back();
  return state;
}

// True for systemd's states of a unit that is not running and will not start automatically.
bool has_ended(const std::string& active) { return active == "inactive" || active == "failed"; }

// Stops an earlier unit, and returns when it has ended.
Status stop_unit(Process& process) {
  TRY(const std::string state, state_of_unit(process));
  if (has_ended(state)) return Ok{};
  Command stop;
  stop.argv = {"systemctl", "stop", kWriteSlotUnit};
  stop.deadline = 3 * kMinute;
  TRY(const std::string said, run_ok(process, stop));
  TRY(const std::string after, state_of_unit(process));
  if (has_ended(after)) return Ok{};
  return fail(Code::conflict, std::string("an earlier ") + kWriteSlotUnit + " did not stop");
}

std::string own_program(const Files& files) {
  const std::string self = files.read_link("/proc/self/exe").value_or(kAgent);
  const std::string gone = " (deleted)";  // added by the kernel if the file was replaced
  const bool is_gone = self.size() > gone.size() && self.substr(self.size() - gone.size()) == gone;
  return is_gone ? self.substr(0, self.size() - gone.size()) : self;
}

Result<Command> command_for(const Files& files, const wire::WorkOrder& order, const wire::SlotJob& job) {
  Command command;
  command.argv = {"systemd-run", "--unit=" + std::string(kWriteSlotUnit), "--collect", "--wait", "--pipe",
                  "--quiet"};
  for (const char* property : {"CPUWeight=idle", "IOWeight=1", "Nice=19", "MemoryMax=1G", "PrivateMounts=yes",
                               "KillMode=control-group"}) {
    command.argv.push_back("-p");
    command.argv.push_back(property);
  }
  if (job.bytes_per_second > 0) {
    TRY(const OwnSlots own, own_slots(files));
    command.argv.push_back("-p");
    command.argv.push_back(fmt::format("IOWriteBandwidthMax=/dev/{} {}", own.disk, job.bytes_per_second));
  }
  for (const std::string& word : {own_program(files), std::string("write-slot"), std::string("--stdin")})
    command.argv.push_back(word);
  command.input = dump_json(Json{{"order", work_of(order.id)}, {"job", to_json(job)}}) + "\n";
  command.deadline = order.deadline > 0 ? order.deadline : kDay;
  return command;
}

// Forwards the unit's progress as it arrives.
class Listener {
 public:
  Listener(const WorkRunner::Emit& emit, std::function<bool()> cancelled, std::function<void()> stop)
      : emit_(emit), cancelled_(std::move(cancelled)), stop_(std::move(stop)) {}
  void operator()(std::string_view text) {
    rest_ += text;
    for (size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1))
      take(rest_.substr(0, end));
    if (!stopped_ && cancelled_ && cancelled_()) {
      stopped_ = true;
      stop_();
    }
  }
  bool stopped() const { return stopped_; }

 private:
  void take(const std::string& line) const {
    const auto json = parse_json(line);
    if (json.ok() && json->is_object() && json->value("kind", "") == "progress" && json->contains("data"))
      emit_("progress", (*json)["data"]);
  }

  const WorkRunner::Emit& emit_;
  std::function<bool()> cancelled_;
  std::function<void()> stop_;
  std::string rest_ = {};
  bool stopped_ = false;
};

}  // namespace

Result<Json> result_of_child(const Output& output) {
  for (const std::string& line : split(output.out, '\n')) {
    const auto json = parse_json(line);
    if (!json.ok() || !json->is_object() || json->value("kind", "") != "result") continue;
    if (json->contains("result")) return (*json)["result"];
    return fail(code_from_string(json->value("code", "")), json->value("message", "no reason given"));
  }
  return fail(Code::failed, fmt::format("{} exited with status {} and no result: {}", kWriteSlotUnit,
                                        output.exit_code, output.err.substr(0, output.err.find('\n'))));
}

Result<Json> run_write_slot(const Files& files, Process& process, const wire::WorkOrder& order,
                            const WorkRunner::Emit& emit, const std::function<bool()>& cancelled) {
  TRY(const wire::SlotJob job, wire::slot_job_from_json(order.params));
  TRY(Command command, command_for(files, order, job));
  TRY_(stop_unit(process));
  unmount_left_over(files);
  if (cancelled && cancelled()) return fail(Code::cancelled, "stopped before the slot was written");
  Listener listener(emit, cancelled, [&process] {
    (void)process.run({.argv = {"systemctl", "--no-block", "stop", kWriteSlotUnit}}).ok();
  });
  command.on_output = [&listener](std::string_view text) { listener(text); };
  const auto output = process.run(command);
  if (!output.ok()) {  // the unit is not a child of systemd-run, and outlives it
    const Status stopped = stop_unit(process);
    if (!stopped.ok()) return std::move(stopped.error());
    return output.error();
  }
  auto result = result_of_child(*output);
  if (!result.ok() && listener.stopped()) return fail(Code::cancelled, "stopped while writing the slot");
  return result;
}

Status write_slot_child() {
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  Lines lines;
  Result<Json> result = fail(Code::failed, "nothing was done");
  {
    const Beat beat(lines);
    result = carry_out(text, lines);
  }
  if (result.ok()) {
    lines.put({{"kind", "result"}, {"result", *result}});
    return Ok{};
  }
  lines.put({{"kind", "result"},
             {"code", std::string(to_string(result.error().code))},
             {"message", result.error().message}});
  return result.error();
}

}  // namespace muster
