// What lies between a written slot and its boot, as it went wrong elsewhere: jobs that are there again,
// variables that cannot be written or say something else, a full or damaged EFI system partition, and a
// reboot that is none.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "agent/core/step.h"
#include "agent/facts/collect_facts.h"
#include "agent/image/commit_slot.h"
#include "agent/image/slot_boot.h"
#include "agent/work/own_functions.h"
#include "base/split.h"
#include "controller/image/image.h"
#include "tests/field/case.h"
#include "tests/unit/agent/slot_bench.h"
#include "tests/unit/plan/trial_fixture.h"
#include "tests/unit/run/in_place.h"

namespace muster::tests {
namespace {

using testing::SlotBench;

wire::BootSlotJob trial_of(const SlotBench& b) { return {"b", b.fresh.manifest.digest, 90 * kMinute}; }

std::vector<std::string> lines_of(const std::string& name, const std::string& file) {
  std::vector<std::string> out;
  std::istringstream in(field_input(name, file));
  for (std::string line; std::getline(in, line);) out.push_back(line);
  REQUIRE_FALSE(out.empty());
  return out;
}

// Slurm's commands and systemd's, as far as an order to reboot needs them.
struct Node : Process {
  SlotBench b;
  std::string state, reason;
  std::vector<Command> reboots;
  std::string inhibited;  // what systemctl prints where it does not restart the system
  int answers_after = 0;  // slurmctld restarts
  int waited = 0;

  Node() { REQUIRE(b.write(b.job())); }
  Result<Output> run(const Command& c) override {
    if (c.argv[0] == "systemctl")
      return reboots.push_back(c), Output{inhibited.empty() ? 0 : 1, "", inhibited};
    if (waited < answers_after) return Output{1, "", "Unable to contact slurm controller (connect failure)"};
    if (c.argv[0] == "sinfo") return Output{0, fmt::format("n1|{}|{}\n", state, reason), ""};
    if (c.argv[0] == "squeue") return Output{0, state == "mixed" ? "1\n" : "", ""};
    return Output{0, fmt::format("NodeName=n1 State={} Reason={}\n", state, reason), ""};
  }
  WorkOutcome order(OrderPart part) {
    wire::WorkOrder order;
    order.id = "1-0/n1/boot#1";
    order.kind = wire::OrderKind::boot_slot;
    order.params = wire::to_json(trial_of(b));
    order.preconditions = {{{"id", "scheduler/no new jobs"},
                            {"module", "slurm_node"},
                            {"params", {{"node", "n1"}, {"state", "drain"}, {"reason", "muster reimage"}}}}};
    WorkOutcome out;
    const auto reactor = make_reactor(1);
    WorkFunctions functions = installed_functions(b.files, *this, [this] { ++waited; });
    functions.now = [this] { return waited * kSecond; };
    const auto runner = make_work_runner(*reactor, b.files, *this, "n1", functions);
    runner->run(
        order, part, [](const std::string&, Json) {},
        [&](WorkOutcome end) {
          out = std::move(end);
          reactor->stop();
        });
    reactor->run();
    return out;
  }
  bool is_untouched() const {
    return efi::loader_text(b.files, efi::kOneShot).empty() && b.next_boot() == b.old.manifest.digest &&
           !b.esp().exists(entry_path(trial_name("b")));
  }
};

}  // namespace

FIELD_CASE("drained-then-resumed") {
  const auto states = lines_of("drained-then-resumed", "sinfo.txt");
  struct Row {
    const char* what;
    size_t line;
    int answers_after;
    bool leaves;
  };
  const Row row = GENERATE(Row{"still drained", 0, 0, true}, Row{"slurmctld is just restarting", 0, 20, true},
                           Row{"slurmctld does not answer", 0, 1'000'000, false},
                           Row{"resumed, with a job", 1, 0, false});
  CAPTURE(row.what);
  Node n;
  const std::string line = states.at(row.line);
  n.state = line.substr(0, line.find('|'));
  n.reason = line.substr(line.find('|') + 1);
  n.answers_after = row.answers_after;
  const WorkOutcome end = n.order(OrderPart::work);
  REQUIRE(end.status.ok() == row.leaves);
  CHECK(n.reboots.empty());
  if (row.leaves) {
    CHECK(n.waited == row.answers_after);
    CHECK(n.b.next_boot() == n.b.fresh.manifest.digest);
    return;
  }
  CHECK(end.status.error().code == Code::conflict);
  CHECK(end.result["precondition"] == "scheduler/no new jobs");
  CHECK(n.is_untouched());
}

FIELD_CASE("drained-then-resumed: one node of a batch, the other one boots") {
  testing::InPlace b({"n1", "n2"});
  b.plan.barriers = {{"n1/pause", "n2/pause"}};
  b.plan.limits.failure_budget = 0;
  const Json look = {{"id", "scheduler/no new jobs"}, {"module", "slurm_node"}, {"params", Json::object()}};
  for (Action& a : b.plan.actions)
    if (a.kind == ActionKind::boot_slot) {
      a.behind = 0;
      a.params.set_own("steps", Json::array({look}));
    }
  b.go();
  for (const char* node : {"n1", "n2"}) b.finish(node);
  for (const char* node : {"n1", "n2"}) b.finish(node);
  REQUIRE(b.on_offer("n1/boot", wire::OrderKind::boot_slot));
  CHECK(b.offers["n1"].preconditions == Json::array({look}));
  CHECK(wire::boot_slot_job_from_json(b.offers["n1"].params).ok());
  b.finish("n1", false, "conflict", {{"precondition", "scheduler/no new jobs"}});
  CHECK(b.on_offer("n1/resume-old", wire::OrderKind::steps));
  b.finish("n1");
  b.is_back("n1", NodeState::accepted, "not re-imaged: ");
  REQUIRE(b.on_offer("n2/boot", wire::OrderKind::boot_slot));  // no failure that spends the budget
  b.finish("n2");
  b.new_system("n2", "new");
  for (const char* last : {"configure", "accept", "commit", "resume"}) {
    CAPTURE(last);
    b.finish("n2");
  }
  CHECK(b.row("n2").state == NodeState::accepted);
  CHECK(b.row("n2").image_digest == testing::kNewImage);
  b.ended_as(RunState::partial);
  b.no_power();
}

FIELD_CASE("reboot-delayed-node-uncordoned") {
  field_input("reboot-delayed-node-uncordoned", "order.txt");
  PlannerInput in = testing::at_work();
  testing::add_pauses(in);
  in.request = {RequestKind::reimage, {"node02"}};
  in.request.through_ram = GENERATE(true, false);
  const auto planned = make_plan(in);
  REQUIRE(planned.ok());
  const Plan& plan = planned->plan;
  const Json pause = plan.find("node02/pause")->params["steps"];
  REQUIRE(pause.size() == 2);
  const char* leaves = in.request.through_ram ? "node02/netboot" : "node02/boot";
  CHECK(plan.find(leaves)->params["steps"] == pause);
  // Of a forced node nothing was waited for.
  in.request.force = {"node02"};
  const auto forced = make_plan(in);
  REQUIRE(forced.ok());
  CHECK_FALSE(forced->plan.find(leaves)->params.contains("steps"));
}

FIELD_CASE("efivars-read-only-late") {
  SlotBench b;
  b.run_from("a", field_input("efivars-read-only-late", "mountinfo.txt"));
  const BootFacts facts = slot_facts(b.files);
  CHECK_FALSE(facts.no_trial.empty());
  const uint64_t serial = b.marker().serial;
  CHECK(b.write(b.job()).error().code == Code::denied);
  CHECK(b.marker().serial == serial);
  CHECK(b.served.frame_bytes == 0);
  // The plan sends such a node through the RAM system before anything is drained.
  PlannerInput in = testing::rebuilt_since();
  in.request = {RequestKind::reimage, {"node02"}};
  in.nodes["node02"].facts->boot.no_trial = facts.no_trial;
  const auto planned = make_plan(in);
  REQUIRE(planned.ok());
  CHECK(planned->plan.find("node02/netboot"));
  CHECK_FALSE(planned->plan.find("node02/boot")->kind == ActionKind::boot_slot);
}

FIELD_CASE("crash-dumps-fill-nvram") {
  const std::string folder = "/sys/firmware/efi/efivars/";
  SlotBench b;
  for (const auto& dump : lines_of("crash-dumps-fill-nvram", "variables.txt")) b.put(folder + dump, "\7");
  // What the write tries: here a folder takes the place of a store that is full.
  b.put(folder + "MusterProbe-6d757374-6572-4a7b-9c1e-0e6f7b5d2a91/full", "");
  CHECK(slot_facts(b.files).no_trial.empty());  // facts write nothing
  const uint64_t serial = b.marker().serial;
  const auto written = b.write(b.job());
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().code == Code::denied);
  CHECK(b.marker().serial == serial);
  CHECK(b.served.frame_bytes == 0);
  CHECK(efi::loader_text(b.files, efi::kOneShot).empty());
}

FIELD_CASE("esp-two-kernels") {
  constexpr uint64_t kMiB = 1 << 20;
  const auto numbers = field_input("esp-two-kernels", "sizes.txt");
  uint64_t kernel = 0, initrd = 0, esp = 0;
  REQUIRE(std::sscanf(numbers.c_str(), "kernel %lu MiB, initrd %lu MiB, EFI system partition %lu MiB",
                      &kernel, &initrd, &esp) == 3);
  REQUIRE(esp * kMiB == esp_size(uint64_t{1} << 40));
  ImageManifest manifest;
  manifest.files = {{"kernel", "vmlinuz", "", kernel * kMiB}, {"initrd", "initrd", "", initrd * kMiB}};
  CHECK_FALSE(too_large_to_replace(manifest).empty());
  PlannerInput in = testing::rebuilt_since();
  in.request = {RequestKind::reimage, {"node02"}};
  in.request.through_ram = GENERATE(false, true);
  in.images["cpu"].boot_size = manifest.boot_size();
  in.nodes["node02"].facts->boot.room = esp * kMiB - manifest.boot_size();
  CHECK(testing::refusals_of(in) == std::set<std::string>{"esp-room"});
  manifest.files[1].size = 100 * kMiB;
  CHECK(too_large_to_replace(manifest).empty());
  in.images["cpu"].boot_size = manifest.boot_size();
  CHECK(testing::refusals_of(in).empty());
  in.nodes["node02"].facts->boot.room = 0;  // an agent of an earlier version
  in.images["cpu"].boot_size = 1000 * kMiB;
  CHECK(testing::refusals_of(in).empty());
}

FIELD_CASE("firmware-capsules-fill-esp") {
  SlotBench b;
  const uint64_t before = slot_facts(b.files).room;
  REQUIRE(before > 0);
  for (const auto& path : lines_of("firmware-capsules-fill-esp", "files.txt"))
    REQUIRE(b.esp().write("/" + path, std::string(3 << 20, 'C')));
  const uint64_t after = slot_facts(b.files).room;
  CHECK(before - after >= 3 << 20);
  CHECK(before - after < 4 << 20);
}

namespace {

// Sets the case's variables; returns their names.
std::vector<std::string> set_variables(const SlotBench& b, const std::string& name) {
  std::vector<std::string> out;
  for (const auto& line : lines_of(name, "variables.txt")) {
    const auto words = split(line, ' ');
    b.set_variable(words.at(0), SlotBench::wide(words.at(1)));
    out.push_back(words.at(0));
  }
  return out;
}

}  // namespace

FIELD_CASE("loader-timeout-menu-force") {
  SlotBench b;
  REQUIRE(b.write(b.job()));
  SECTION("before the trial") {
    const auto names = set_variables(b, "loader-timeout-menu-force");
    REQUIRE(arm_slot_boot(b.files, trial_of(b)));
    for (const auto& name : names) CHECK_FALSE(efi::is_set(b.files, name));
    CHECK(b.next_boot() == b.fresh.manifest.digest);
    efi::remove_loader_variable(b.files, efi::kOneShot);  // the way back
    CHECK(b.next_boot() == b.old.manifest.digest);
  }
  SECTION("at the commit") {
    REQUIRE(arm_slot_boot(b.files, trial_of(b)));
    efi::remove_loader_variable(b.files, efi::kOneShot);
    b.run_from("b");
    REQUIRE(write_image_record(b.files, {"tiny", b.fresh.manifest.digest, "b"}).ok());
    const SlotCommit commit{"b", b.fresh.manifest.digest, "2/node01/commit"};
    REQUIRE(commit_slot({b.files}, commit));
    REQUIRE(uncommitted(b.files, commit)->empty());
    for (const auto& name : set_variables(b, "loader-timeout-menu-force"))
      CHECK(uncommitted(b.files, commit)->find(name) != std::string::npos);
    CHECK(b.next_boot() != b.fresh.manifest.digest);
    REQUIRE(commit_slot({b.files}, commit));
    CHECK(b.next_boot() == b.fresh.manifest.digest);
  }
  SECTION("in the facts") {
    set_variables(b, "loader-timeout-menu-force");
    const auto facts = collect_facts(b.files);
    REQUIRE(facts.ok());
    CHECK(facts->properties.at("overrides of loader.conf").find("LoaderConfigTimeout") != std::string::npos);
  }
}

FIELD_CASE("menu-once-shown-forever") {
  SlotBench b;
  REQUIRE(b.write(b.job()));
  set_variables(b, "menu-once-shown-forever");
  CHECK(b.next_boot().empty());
  REQUIRE(arm_slot_boot(b.files, trial_of(b)));
  CHECK(b.next_boot() == b.fresh.manifest.digest);
}

FIELD_CASE("reboot-becomes-kexec") {
  const auto names = split_words(field_input("reboot-becomes-kexec", "variables.txt"));
  REQUIRE(names.size() == 2);
  Node n;
  n.state = "drained", n.reason = "muster reimage";
  REQUIRE(n.order(OrderPart::work).status.ok());
  (void)n.order(OrderPart::leave);
  REQUIRE(n.reboots.size() == 1);
  CHECK(n.reboots[0].argv == std::vector<std::string>{"systemctl", "--no-block", "reboot"});
  for (const auto& name : names) CHECK(n.reboots[0].env.at(name) == "1");
}

FIELD_CASE("reboot-inhibited") {
  Node n;
  n.state = "drained", n.reason = "muster reimage";
  n.inhibited = field_input("reboot-inhibited", "systemctl.txt");
  REQUIRE(n.order(OrderPart::work).status.ok());
  const WorkOutcome end = n.order(OrderPart::leave);
  REQUIRE(n.reboots.size() == 1);
  REQUIRE_FALSE(end.status.ok());
  CHECK(end.status.error().message.find("inhibitor lock") != std::string::npos);
  CHECK(n.is_untouched());
  // So it is given back, and is tried in another night: no failure of the image.
  testing::InPlace b;
  b.go();
  b.reaches("n1", "boot");
  const OrderId order = b.offered("n1");
  b.finish("n1");
  b.finish_order("n1", order, false, std::string(to_string(end.status.error().code)), end.result);
  REQUIRE(b.on_offer("n1/resume-old", wire::OrderKind::steps));
  b.finish("n1");
  b.is_back("n1", NodeState::accepted, "not re-imaged: ");
  CHECK(b.counts_as_kept());
}

FIELD_CASE("reboot-becomes-kexec: a node that came back without its loader is named as that") {
  const bool skipped = GENERATE(true, false);
  testing::InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  Hello hello{"n1", wire::Mode::installed, "n1-again", Digest(testing::kOldImage), "a", false};
  hello.loader_skipped = skipped;
  b.executor->on_hello(hello);
  b.reactor.advance(100);
  CHECK(b.says("n1", "without its boot loader") == skipped);
  CHECK(b.executor->log().of("n1/boot").attempt == 1);
  REQUIRE(b.on_offer("n1/resume-old", wire::OrderKind::steps));
  b.finish("n1");
  b.is_back("n1");
}

FIELD_CASE("kexec-instead-of-reboot-step") {
  SlotBench b;
  struct Restarts : Process {
    std::vector<Command> calls;
    Result<Output> run(const Command& c) override { return calls.push_back(c), Output{0, "", ""}; }
  } process;
  StepContext context{b.files, process, "node01"};
  context.cancelled = [] { return true; };  // the process ends with the system
  const StepModule& reboot = *find_step_module("reboot");
  const std::string time = lines_of("kexec-instead-of-reboot-step", "loader-time.txt").at(0);
  b.set_variable("LoaderTimeInitUSec", SlotBench::wide(time));
  b.put("/proc/sys/kernel/random/boot_id", "before\n");
  REQUIRE(b.files.make_directories("/run/systemd/system"));
  b.put("/run/muster/reboot/kernel", "iommu=pt\n");
  (void)reboot.apply(context, Json::object());
  REQUIRE(process.calls.size() == 1);
  CHECK(process.calls[0].env.count("SYSTEMCTL_SKIP_AUTO_KEXEC") == 1);
  REQUIRE(b.files.remove("/run/muster/reboot/kernel"));
  b.put("/proc/sys/kernel/random/boot_id", "after\n");
  SECTION("the kernel was started without firmware") {
    const auto found = reboot.check(context, Json::object());
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().code == Code::failed);
  }
  SECTION("by its loader") {
    b.set_variable("LoaderTimeInitUSec", SlotBench::wide("1990077"));
    CHECK(reboot.check(context, Json::object())->holds == Holds::yes);
  }
  SECTION("by a loader that sets no times") {
    REQUIRE(b.files.remove(SlotBench::variable("LoaderTimeInitUSec")));
    CHECK(reboot.check(context, Json::object())->holds == Holds::yes);
  }
}

namespace {

void do_damage(const SlotBench& b, const std::string& slot, const std::string& what) {
  const Files esp = b.esp();
  const auto size = [&](const std::string& path) { return esp.read(path).value_or("").size(); };
  if (what == "empty kernel")
    REQUIRE(esp.write(kernel_path(slot), ""));
  else if (what == "no entry")
    REQUIRE(esp.remove(entry_path(entry_name(slot))));
  else if (what == "kernel of one byte")
    REQUIRE(esp.write(kernel_path(slot), "K"));
  else if (what == "garbled initrd")
    REQUIRE(esp.write(initrd_path(slot), std::string(size(initrd_path(slot)), 'X')));
  else
    FAIL(what);
}

}  // namespace

FIELD_CASE("standing-slot-unbootable") {
  const bool old_note = GENERATE(false, true);  // as an earlier version wrote it
  for (const auto& line : lines_of("standing-slot-unbootable", "damages.txt")) {
    CAPTURE(line, old_note);
    const std::string slot = line.substr(0, 1), what = line.substr(2);
    SlotBench b;
    REQUIRE(b.write(b.job()));
    if (old_note) {
      b.set_marker([](ImageMarker& m) { m.slots["a"].kernel = m.slots["a"].initrd = {}; });
      REQUIRE(b.esp().write(kernel_path("a"), "MZ KERNEL"));
      REQUIRE(b.esp().write(initrd_path("a"), "\x28\xb5\x2f\xfd INITRD"));
    }
    REQUIRE(slot_facts(b.files).no_trial.empty());
    REQUIRE(slot_facts(b.files).slots.at("b").fault.empty());
    do_damage(b, slot, what);
    const BootFacts facts = slot_facts(b.files);
    CHECK(facts.no_trial.empty() == (slot == "b"));
    // Facts compare sizes, the order reads everything.
    CHECK(facts.slots.at("b").fault.empty() == (slot == "a" || what == "garbled initrd"));
    const auto armed = arm_slot_boot(b.files, trial_of(b));
    REQUIRE_FALSE(armed.ok());
    CHECK(armed.error().code == Code::conflict);
    CHECK(efi::loader_text(b.files, efi::kOneShot).empty());
    CHECK_FALSE(b.esp().exists(entry_path(trial_name("b"))));
  }
}

FIELD_CASE("standing-slot-unbootable: a rollback is refused by the plan") {
  PlannerInput in = testing::at_work();
  testing::fill_other_slot(in, "node02");
  in.request = {RequestKind::rollback, {"node02"}};
  CHECK(testing::refusals_of(in).empty());
  in.nodes["node02"].facts->boot.slots["b"].fault = "its kernel is missing";
  CHECK(testing::refusals_of(in) == std::set<std::string>{"rollback"});
}

FIELD_CASE("esp-kernel-lost-in-firmware") {
  const std::string lost = lines_of("esp-kernel-lost-in-firmware", "loader.txt").at(0);
  SlotBench b;
  REQUIRE(b.esp().remove("/" + lost.substr(0, lost.find(':'))));
  CHECK_FALSE(slot_facts(b.files).no_trial.empty());
  const uint64_t serial = b.marker().serial;
  CHECK(b.write(b.job()).error().code == Code::conflict);
  CHECK(b.marker().serial == serial);
  CHECK(b.served.frame_bytes == 0);
}

namespace {

// The bench's EFI system partition as a real FAT32, in a file. The kernel may be unable to mount it: mtools
// stands between it and the folder.
struct Fat {
  SlotBench& b;
  std::string image = b.dir.path("esp.img");
  std::unique_ptr<Process> process = make_process();

  explicit Fat(SlotBench& bench) : b(bench) {
    REQUIRE(Files("/").write(image, ""));
    std::filesystem::resize_file(image, 40 << 20);
    run({"mkfs.vfat", "-F", "32", "-s", "1", image});
    for (const auto& name : b.esp().list("/"))
      run({"mcopy", "-s", "-i", image, b.esp().real("/" + name), "::/"});
  }
  std::string run(const std::vector<std::string>& argv) const {
    const auto out = run_ok(*process, {.argv = argv, .env = {{"MTOOLS_SKIP_CHECK", "1"}}});
    if (!out.ok()) FAIL(out.error().message);
    return *out;
  }
  std::string read(uint64_t at, size_t size) const {
    std::string out(size, '\0');
    const int fd = ::open(image.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(::pread(fd, out.data(), size, static_cast<off_t>(at)) == static_cast<ssize_t>(size));
    ::close(fd);
    return out;
  }
  uint32_t number(uint64_t at, size_t bytes) const {
    const std::string raw = read(at, bytes);
    uint32_t out = 0;
    for (size_t i = bytes; i-- > 0;) out = out << 8 | static_cast<unsigned char>(raw[i]);
    return out;
  }
  uint64_t sector() const { return number(0x0b, 2); }
  uint64_t table(int which) const { return (number(0x0e, 2) + which * uint64_t{number(0x24, 4)}) * sector(); }
  uint32_t clusters() const {
    return static_cast<uint32_t>((number(0x20, 4) - number(0x0e, 2) - 2 * uint64_t{number(0x24, 4)}));
  }
  std::vector<uint32_t> free_clusters() const {
    const std::string raw = read(table(0), (clusters() + 2) * 4);
    std::vector<uint32_t> out;
    for (uint32_t c = 2; c < clusters() + 2; ++c)
      if (raw.compare(c * 4, 4, std::string(4, '\0')) == 0) out.push_back(c);
    return out;
  }
  uint64_t free() const { return free_clusters().size() * sector(); }
  // As after a power cut: a chain of clusters that no file has.
  void lose_all_but(uint64_t left) const {
    std::vector<uint32_t> all = free_clusters();
    all.resize(all.size() - left / sector());
    const int fd = ::open(image.c_str(), O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < all.size(); ++i) {
      const uint32_t next = i + 1 < all.size() ? all[i + 1] : 0x0fffffff;
      for (const int which : {0, 1})
        REQUIRE(::pwrite(fd, &next, 4, static_cast<off_t>(table(which) + all[i] * 4)) == 4);
    }
    ::close(fd);
  }
  // Files that the repair made appear in the folder; those that were removed there go.
  void appear() const {
    for (const auto& line : split_lines(run({"mdir", "-b", "-i", image, "::/"})))
      if (line.find(".REC") != std::string::npos) run({"mcopy", "-i", image, line, b.esp().root() + "/"});
  }
  void vanish() const {
    for (const auto& line : split_lines(run({"mdir", "-b", "-i", image, "::/"})))
      if (line.find(".REC") != std::string::npos && !b.esp().exists(line.substr(2)))
        run({"mdel", "-i", image, line});
  }
  Space space() const {
    vanish();
    return {uint64_t{clusters()} * sector(), free(), sector()};
  }
};

}  // namespace

FIELD_CASE("esp-lost-clusters") {
  SlotBench b;
  const Fat fat(b);
  b.space = [&fat](const std::string&) { return fat.space(); };
  fat.lose_all_but(512 << 10);
  REQUIRE(fat.free() == 512 << 10);
  int repairs = 0;
  SECTION("repaired, and written") {
    b.repair_esp = [&](const OwnSlots&) -> Status {
      ++repairs;
      TRY_(repair_vfat(*fat.process, fat.image));
      fat.appear();
      return Ok{};
    };
    REQUIRE(b.write(b.job()));
    CHECK(repairs == 1);
    CHECK(fat.free() > 30 << 20);
    for (const auto& name : b.esp().list("/")) CHECK(name.find(".REC") == std::string::npos);
    CHECK(run_ok(*fat.process, {.argv = {"fsck.vfat", "-n", fat.image}}).ok());
    CHECK(arm_slot_boot(b.files, trial_of(b)).ok());
  }
  SECTION("it cannot be repaired: nothing is written, and the lost space is named") {
    b.repair_esp = [&](const OwnSlots&) -> Status { return fail(Code::not_found, "no fsck.vfat"); };
    const uint64_t serial = b.marker().serial;
    const auto written = b.write(b.job());
    REQUIRE_FALSE(written.ok());
    CHECK(written.error().code == Code::conflict);
    CHECK(b.marker().serial == serial);
    const EspRoom room = esp_room(b.esp(), "b", fat.space());
    CHECK(room.lost > 30 << 20);
    CHECK(written.error().message.find(std::to_string(room.lost >> 10)) != std::string::npos);
  }
  SECTION("the facts count what a repair would give back") {
    const EspRoom room = esp_room(b.esp(), "b", fat.space());
    CHECK(room.ready < 1 << 20);
    CHECK(room.repaired() > 30 << 20);
  }
}

}  // namespace muster::tests
