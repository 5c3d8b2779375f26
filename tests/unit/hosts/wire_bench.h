// A HostWire over a shell of this machine, and what came of it. The agent is the one of this build, or a
// script in its place. Nothing may be left of it: each has folders of its own in place of those that the
// script tries.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "controller/hosts/host_wire.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

namespace muster {

struct WireBench {
  TempDir dir;
  std::unique_ptr<RealReactor> reactor = make_reactor(2);
  std::string node = "wire-" + random_hex(6);  // is in the command lines of all of its agent's processes
  HostWireOptions options;
  HostWireEvents events;
  std::unique_ptr<HostWire> wire;
  // What happened.
  std::optional<HostHello> hello;
  std::optional<HostLooked> looked;
  std::optional<Error> lost;
  std::vector<wire::Event> events_taken;
  std::vector<wire::WorkOrder> offered;
  std::function<void(wire::PollReply)> waiting;
  std::map<std::string, std::string> programs;  // by digest
  int programs_read = 0;

  WireBench() {
    std::filesystem::create_directories(dir.path("home"));
    std::filesystem::create_directories(dir.path("run"));
    std::filesystem::create_directories(dir.path("bin"));
    options.host = node;
    options.agent = build_dir() + "/muster-agent";
    options.argv = shell("/bin/sh");
    options.program = [this](const std::string& sha256) -> Result<PackedProgram> {
      ++programs_read;
      const auto found = programs.find(sha256);
      if (found == programs.end()) return fail(Code::not_found, "no such program");
      return pack(found->second);
    };
    events.hello = [this](const HostHello& one) { hello = one; };
    events.looked = [this](const HostLooked& one) { looked = one; };
    events.lost = [this](Error why) { lost = std::move(why); };
    events.poll = [this](const std::set<std::string>& have, const Presence& present, auto answer) {
      CHECK(present.mode == wire::Mode::adopted);
      wire::PollReply reply;
      for (const auto& order : offered)
        if (!have.count(order.id)) reply.orders.push_back(order);
      if (reply.orders.empty())
        waiting = std::move(answer);
      else
        answer(std::move(reply));
    };
    events.post = [this](const wire::EventBatch& batch, auto answer) {
      uint64_t last = 0;
      for (const auto& event : batch.events) events_taken.push_back(event), last = event.seq;
      answer(last);
    };
  }

  // Its script's own folders come first, and programs of `bin` before the machine's.
  std::vector<std::string> shell(const std::string& program) const {
    return {"env", "XDG_RUNTIME_DIR=" + dir.path("run"), "HOME=" + dir.path("home"),
            "PATH=" + dir.path("bin") + ":/usr/sbin:/usr/bin:/sbin:/bin", program};
  }
  // `program` of the host does this instead.
  void stub(const std::string& program, const std::string& script) const {
    REQUIRE(Files().write(dir.path("bin/" + program), "#!/bin/sh\n" + script + "\n", 0755).ok());
  }
  // No root, no sudo.
  void as_plain_user() const {
    stub("id", "echo 1000");
    stub("sudo", "echo 'sudo: a password is required' >&2; exit 1");
  }
  // In place of the agent: `script` where that would measure.
  void agent_is(const std::string& script) {
    REQUIRE(Files()
                .write(dir.path("agent"),
                       "#!/bin/sh\n[ \"$1\" = measure ] || exit 0\nrm -r \"$4\"\n" + script + "\n", 0755)
                .ok());
    options.agent = dir.path("agent");
  }
  static std::string hello_text() {
    return R"(MUSTER1 {"version":1,"boot_id":"b","incarnation":"i","machine":"x86_64","hostname":"h","root":false,)"
           R"("how":"user","folder":"/tmp","agent_version":"1"})";
  }

  void open() { wire = open_host_wire(*reactor, options, events); }
  // Until `done`; the limit is for a test that fails.
  void until(const std::function<bool()>& done) {
    const auto limit = reactor->after(kMinute, [this] { reactor->stop(); });
    Reactor::TimerId next = 0;
    std::function<void()> look = [&] {
      next = 0;
      if (done()) return reactor->stop();
      next = reactor->after(5, look);
    };
    look();
    reactor->run();
    reactor->cancel(next);
    reactor->cancel(limit);
    REQUIRE(done());
  }
  void offer(wire::WorkOrder order) {
    offered.push_back(order);
    if (waiting) std::exchange(waiting, nullptr)({{order}, {}});
  }
  const wire::Event* finished(const std::string& order) const {
    for (const auto& event : events_taken)
      if (event.kind == "finished" && event.order == order) return &event;
    return nullptr;
  }
  void leave() {
    bool left = false;
    wire->leave([&] { left = true; });
    until([&] { return left; });
  }

  // Processes whose command line has this host's name.
  std::vector<pid_t> processes() const {
    std::vector<pid_t> out;
    for (const auto& name : Files().list("/proc"))
      if (name.find_first_not_of("0123456789") == std::string::npos &&
          Files().read("/proc/" + name + "/cmdline").value_or("").find(node) != std::string::npos)
        out.push_back(std::stoi(name));
    return out;
  }
  std::vector<std::string> files_left() const {
    std::vector<std::string> out;
    for (const char* folder : {"home", "run"})
      for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path(folder)))
        out.push_back(entry.path());
    return out;
  }
  void nothing_left() {
    until([&] { return processes().empty(); });
    CHECK(files_left() == std::vector<std::string>{});
  }
};

}  // namespace muster
