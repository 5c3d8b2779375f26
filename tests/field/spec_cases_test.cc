// Specs that were called valid and failed later.
#include <algorithm>

#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "base/kernel_line.h"
#include "controller/boot/boot.h"
#include "controller/boot/service/boot_service.h"
#include "controller/spec/host_name.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Where the errors of a case's spec are.
std::vector<std::string> places(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& error : parse_spec(text).errors) {
    UNSCOPED_INFO(to_string(error, "input"));
    out.push_back(error.path);
  }
  return out;
}
std::vector<std::string> wrong_in(const std::string& name, const std::string& file) {
  return places(field_input(name, file));
}

// The same text with one thing corrected.
std::string corrected(const std::string& name, const std::string& file, const std::string& wrong,
                      const std::string& right) {
  std::string text = field_input(name, file);
  const size_t at = text.find(wrong);
  REQUIRE(at != std::string::npos);
  return text.replace(at, wrong.size(), right);
}

const std::vector<std::string> kName = {"nodes[0].name"};

void refuses_name(const std::string& name, const std::string& file, const std::string& word) {
  CHECK(wrong_in(name, file) == kName);
  CHECK(places(corrected(name, file, "name: " + word + "\n", "name: " + word + "x\n")).empty());
}

// An armed node whose machine asks for its script.
struct Armed {
  TempDir dir;
  ManualReactor reactor;
  MemStore store{reactor};
  Authority authority = Authority::open(dir.path("state"), {"127.0.0.1"}, 1'700'000'000'000).value();
  Result<std::string> script = std::string("#!ipxe\nboot\n");
  std::vector<std::string> said;
  BootService boot{reactor,
                   store,
                   authority,
                   {[](const std::string&) { return "work01"; },
                    [this](const std::string&, const std::string&, const std::string&) { return script; },
                    [] { return DurationMs{0}; },
                    [this](const std::string&, EventKind kind, const Json& data) {
                      if (kind == "boot") said.push_back(data.value("action", ""));
                    }}};
  Result<std::string> asks() {
    boot.arm("work01", [](Status) {});
    reactor.advance(10);
    Result<std::string> got = fail(Code::failed, "no answer");
    boot.script_for("b8:ce:f6:40:00:01", [&](Result<std::string> answer) { got = std::move(answer); });
    reactor.advance(100);
    return got;
  }
};

Status seed_loader(const TempDir& dir, const wire::ImageJob& job) {
  const ImageManifest manifest;
  const SeedRequest request{job,
                            manifest,
                            "/dev/null",
                            make_layout(8192 * kMiB, kMiB, 0).value(),
                            "a",
                            false,
                            {{"kernel", "K"}, {"bootloader", "L"}}};
  return seed_esp(Files(dir.path("")), request);
}

}  // namespace

FIELD_CASE("zero-mac") {
  CHECK(wrong_in("zero-mac", "input.yaml") == std::vector<std::string>{"nodes[0].mac[0]"});
  for (const char* none : {"01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "33:33:00:00:00:01"}) {
    CAPTURE(none);
    CHECK(places(corrected("zero-mac", "input.yaml", "00:00:00:00:00:00", none)) ==
          std::vector<std::string>{"nodes[0].mac[0]"});
  }
  for (const char* some : {"b8:ce:f6:40:00:01", "52:54:00:40:00:01", "02:00:00:00:00:00"}) {
    CAPTURE(some);
    CHECK(places(corrected("zero-mac", "input.yaml", "00:00:00:00:00:00", some)).empty());
  }
}

FIELD_CASE("name-64") {
  CHECK(wrong_in("name-64", "input.yaml") == kName);
  CHECK(places(corrected("name-64", "input.yaml", "[9-10]", "[8-9]")).empty());
}

FIELD_CASE("name-64-alone") {
  CHECK(wrong_in("name-64-alone", "input.yaml") == kName);
  CHECK(places(corrected("name-64-alone", "input.yaml", "nn", "n")).empty());
}

FIELD_CASE("name-localhost") { refuses_name("name-localhost", "input.yaml", "localhost"); }

FIELD_CASE("node-named-ignore") {
  for (const std::string word : {"ignore", "infinite"})
    refuses_name("node-named-ignore", word + ".yaml", word);
}

FIELD_CASE("name-of-slurm") {
  for (const std::string word : {"default", "all"}) refuses_name("name-of-slurm", word + ".yaml", word);
}

FIELD_CASE("name-of-hostfile") {
  for (const std::string word : {"cpu", "slots"}) refuses_name("name-of-hostfile", word + ".yaml", word);
}

FIELD_CASE("name-of-hostfile: names with such a word in them are names") {
  for (const char* name : {"cpu01", "default-gw", "all-flash1", "local", "infinite2"})
    CHECK(wrong_host_name(name).empty());
  for (const char* name : {"ip6-localhost", "ip6-mcastprefix", "ip6-allhosts", "count", "Node01", "node_1",
                           "-node", "node-", ""})
    CHECK_FALSE(wrong_host_name(name).empty());
}

FIELD_CASE("kernel-options-unchecked") {
  for (const char* file : {"root.yaml", "lines.yaml"})
    CHECK(wrong_in("kernel-options-unchecked", file) == std::vector<std::string>{"vars.kernel_options"});
  CHECK(wrong_in("kernel-options-unchecked", "node.yaml") ==
        std::vector<std::string>{"nodes[0].vars.kernel_options"});
  CHECK(places(corrected("kernel-options-unchecked", "lines.yaml", "|", ">-")).empty());
}

FIELD_CASE("kernel-options-unchecked: an order with such options writes no loader entry") {
  const TempDir dir;
  wire::ImageJob job;
  for (const char* wrong : {"root=/dev/sdq2", "quiet\nisolcpus=1"}) {
    job.kernel_options = wrong;
    CHECK(seed_loader(dir, job).error().code == Code::invalid);
  }
  CHECK_FALSE(Files(dir.path("")).exists("/loader/entries/muster-a.conf"));
}

FIELD_CASE("kernel-options-with-commas") {
  const auto read = parse_spec(field_input("kernel-options-with-commas", "input.yaml"));
  REQUIRE(read.errors.empty());
  CHECK(declared_variable(read.spec, nullptr, "kernel_options") ==
        "isolcpus=4-7,12 l1tf=full,force modprobe.blacklist=ast");
}

FIELD_CASE("two-consoles") {
  for (const char* file : {"input.yaml", "short.yaml"}) {
    CAPTURE(file);
    const auto read = parse_spec(field_input("two-consoles", file));
    REQUIRE(read.errors.empty());
    const std::string both = " console=tty0 console=ttyS1,115200n8 ";
    BootDecision decision;
    decision.ram = true;
    decision.base_url = "http://10.40.0.1:7480";
    decision.node = "work01";
    decision.console = declared_variable(read.spec, read.spec.node("work01"), "console");
    CHECK(ipxe_script(decision).find(both) != std::string::npos);

    const TempDir dir;
    wire::ImageJob job;
    job.console = decision.console;
    REQUIRE(seed_loader(dir, job).ok());
    CHECK(dir.read("loader/entries/muster-a.conf").find(both) != std::string::npos);
  }
  CHECK(console_arguments("console=tty0  console=ttyS1,115200n8") == " console=tty0 console=ttyS1,115200n8");
}

FIELD_CASE("two-consoles: the RAM system is called handed out only where it was") {
  Armed node;
  SECTION("there is a script") {
    CHECK(node.asks().ok());
    CHECK(node.said == std::vector<std::string>{"script"});
  }
  SECTION("there is none, and that is said once") {
    node.script = fail(Code::invalid, "console");
    CHECK(node.asks().error().code == Code::invalid);
    node.boot.script_for("b8:ce:f6:40:00:01", [](Result<std::string>) {});
    node.reactor.advance(100);
    CHECK(node.said == std::vector<std::string>{"unable"});
  }
}

FIELD_CASE("console-not-plain") {
  for (const char* file : {"quotes.yaml", "dollar.yaml", "argument.yaml", "lines.yaml"}) {
    CAPTURE(file);
    CHECK(wrong_in("console-not-plain", file) == std::vector<std::string>{"vars.console"});
  }
  for (const char* plain :
       {"", "ttyS0", "ttyS1,115200n8", "uart,mmio32,0xfe215040", "console=hvc0", "tty0 hvc0"})
    CHECK(wrong_console(plain).empty());
  CHECK(console_arguments("").empty());
}

}  // namespace muster::tests
