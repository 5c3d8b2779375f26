// What the modules for packages, kernel and configuration do beyond the conformance suite.
#include <algorithm>
#include <optional>
#include <utility>

#include "agent/core/step.h"
#include "agent/core/step_runner.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"
#include "tests/unit/agent/step_run.h"

namespace muster {
namespace {

using tests::FakeMachine;
using Run = testing::BootedStepRun;

// Does not answer in time at first, as docker on a busy machine.
struct SlowProgram : Process {
  int slow = 0, runs = 0;
  DurationMs given = 0;
  Result<Output> run(const Command& command) override {
    given = command.deadline;
    if (++runs <= slow) return fail(Code::timeout, "docker did not end and was killed");
    return Output{0, "", ""};
  }
};

TEST_CASE(
    "wait_for: a program that does not end in time is waited for like one that fails, and has all the time "
    "there is") {
  const FakeMachine machine;
  Files files = machine.files();
  SlowProgram program;
  StepContext context{files, program, "node01"};
  const auto* module = find_step_module("wait_for");
  program.slow = 1;
  CHECK(module->check(context, {{"command", {"docker"}}, {"deadline_seconds", 100}})->holds == Holds::yes);
  CHECK(program.runs == 2);
  CHECK(program.given > 90 * kSecond);
  program.slow = 100;
  const auto gone = module->check(context, {{"command", {"docker"}}, {"deadline_seconds", 0}});
  CHECK(gone->holds == Holds::no);
  CHECK(gone->diff == "docker did not end and was killed");
  CHECK(program.given == 60 * kSecond);  // busy is not broken
}

// What wait_for says of a program that ends so.
Result<CheckResult> look_at_program(Output output, std::optional<int64_t> skipped = {}) {
  struct Ends : Process {
    Output output;
    Result<Output> run(const Command&) override { return output; }
  };
  const FakeMachine machine;
  Files files = machine.files();
  Ends program;
  program.output = std::move(output);
  StepContext context{files, program, "node01"};
  Json params = {{"command", {"look"}}, {"deadline_seconds", 0}};
  if (skipped) params["skipped"] = *skipped;
  return find_step_module("wait_for")->check(context, params);
}

TEST_CASE("wait_for: what the program printed last is the reason") {
  const auto found = look_at_program({1, "", "one\n/run is full\n"});
  CHECK(found->holds == Holds::no);
  CHECK(found->diff == "`look` exited with 1: one\n/run is full");
}

TEST_CASE("wait_for: what a program skips is not applicable, and only where that was declared") {
  const Output skips = {77, "the node is 'drain' in Slurm\n", ""};
  CHECK(look_at_program(skips)->holds == Holds::no);
  const auto found = look_at_program(skips, 77);
  CHECK(found->holds == Holds::not_applicable);
  CHECK(found->diff == "the node is 'drain' in Slurm");
}

TEST_CASE("package: apt that would remove something else is stopped before it begins") {
  Run r;
  r.machine.put("/var/lib/dpkg/status", "");
  r.machine.apt_removes = "slurm-wlm";
  const Status refused = r.apply("package", {{"names", {"pmix"}}});
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("slurm-wlm") != std::string::npos);
  CHECK(r.machine.get("/var/lib/dpkg/status").empty());
  CHECK(r.apply("package", {{"names", {"pmix"}}, {"removes", {"slurm-wlm"}}}).ok());
}

TEST_CASE("package: exact versions, patterns and holds") {
  Run r;
  r.machine.put("/var/lib/dpkg/status", "Package: cuda\nStatus: install ok installed\nVersion: 12.4.1-1\n\n");
  CHECK(r.check("package", {{"names", {"cuda=12.4.*"}}})->holds == Holds::yes);
  CHECK(r.check("package", {{"names", {"cuda=12.5.*"}}})->diff == "cuda: 12.4.1-1 -> 12.5.*");
  CHECK(r.check("package", {{"names", {"cuda"}}, {"hold", true}})->diff == "not held: cuda");
  // What is wanted on another release only is not asked for here.
  const Json also = {{"names", {"cuda"}}, {"also", {{"trixie", {"docker-cli"}}}}};
  r.machine.put("/etc/os-release", "VERSION_CODENAME=bookworm\n");
  CHECK(r.check("package", also)->holds == Holds::yes);
  r.machine.put("/etc/os-release", "VERSION_CODENAME=trixie\n");
  CHECK(r.check("package", also)->diff == "not installed: docker-cli");
  REQUIRE(r.apply("package", {{"names", {"cuda"}}, {"hold", true}}).ok());
  CHECK(r.machine.get("/var/lib/dpkg/status").find("Status: hold ok installed") != std::string::npos);
  CHECK(r.check("package", {{"names", {"cuda"}}, {"hold", false}})->diff == "held: cuda");
  CHECK(r.check("package", {{"names", {"cuda"}}})->holds == Holds::yes);
}

TEST_CASE("package: a set whose versions do not go together is refused before it is installed") {
  Run r;
  r.machine.put("/var/lib/dpkg/status", "Package: libc6\nStatus: install ok installed\nVersion: 2.41-12\n\n");
  const Json params = {
      {"names", {"nvidia-kernel-dkms=550.163.01-*", "nvidia-smi=550.163.01-*"}},
      {"hold", true},
      {"locked",
       {{{"packages", {"nvidia-kernel-*", "nvidia-smi", "libnvidia-*"}}, {"version", "550.163.01-*"}}}}};
  // The library comes as a dependency, from another archive.
  r.machine.apt_brings =
      "Inst nvidia-kernel-dkms (550.163.01-2 Debian:13 [amd64])\nInst nvidia-smi (550.163.01-2 Debian:13 "
      "[amd64])\n"
      "Inst libnvidia-ml1:amd64 (560.35.03-1 vendor [amd64])\nInst libtirpc3 (1.3 Debian:13 [amd64])\n";
  const Status refused = r.apply("package", params);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == Code::conflict);
  CHECK(refused.error().message.find(
            "libnvidia-ml1 has version 560.35.03-1, but its set requires 550.163.01-*") != std::string::npos);
  CHECK(refused.error().message.find("libtirpc3") == std::string::npos);
  CHECK(r.machine.get("/var/lib/dpkg/status").find("nvidia") == std::string::npos);

  r.machine.apt_brings =
      "Inst nvidia-kernel-dkms (550.163.01-2 Debian:13 [amd64])\nInst libnvidia-ml1 (550.163.01-2 Debian:13 "
      "[amd64])\n";
  CHECK(r.apply("package", params).ok());
}

TEST_CASE("package: a locked package of another version is seen, and held with its set") {
  Run r;
  r.machine.put("/var/lib/dpkg/status",
                "Package: nvidia-smi\nStatus: install ok installed\nVersion: 550.163.01-2\n\n"
                "Package: libnvidia-ml1\nStatus: install ok installed\nVersion: 560.1-1\n\n");
  Json params = {{"names", {"nvidia-smi"}},
                 {"hold", true},
                 {"locked", {{{"packages", {"libnvidia-*"}}, {"version", "550.*"}}}}};
  CHECK(r.check("package", params)
            ->diff.find("libnvidia-ml1 has version 560.1-1, but its set requires 550.*") !=
        std::string::npos);
  CHECK(r.apply("package", params).error().code == Code::conflict);  // nothing to install would mend it
  params["locked"][0]["version"] = "560.*";
  REQUIRE(r.apply("package", params).ok());
  CHECK(r.check("package", params)->holds == Holds::yes);
  CHECK(r.machine.called("apt-mark hold libnvidia-ml1 nvidia-smi"));
  params["locked"] = {{{"packages", "libnvidia-*"}}};
  CHECK(r.check("package", params).error().code == Code::invalid);
}

TEST_CASE("download: another content than promised never stands in its place") {
  Run r;
  r.machine.web["https://example.org/a"] = "evil";
  const Json params = {{"url", "https://example.org/a"}, {"path", "/opt/a"}, {"sha256", sha256("good")}};
  CHECK(!r.apply("download", params).ok());
  CHECK(r.machine.files().list("/opt").empty());
  CHECK(r.apply("download", {{"url", "ftp://x"}, {"path", "/opt/a"}, {"sha256", sha256("good")}})
            .error()
            .code == Code::invalid);
  CHECK(r.apply("download", {{"url", "https://x"}, {"path", "/opt/a"}, {"sha256", "abc"}}).error().code ==
        Code::invalid);
}

TEST_CASE("apt_repository: without URLs it is the mirror of the system itself") {
  Run r;
  r.machine.put("/usr/share/keyrings/debian.gpg", "key");
  r.machine.put("/etc/os-release", "VERSION_CODENAME=trixie\n");
  const Json params = {{"name", "more"},
                       {"components", {"contrib", "non-free"}},
                       {"signed_by", "/usr/share/keyrings/debian.gpg"}};
  CHECK(r.apply("apt_repository", params).error().code == Code::not_found);
  // Of the two forms, and of others' sources, only what brings the release's own packages counts.
  r.machine.put("/etc/apt/sources.list",
                "# deb http://old/debian trixie main\ndeb-src http://src/debian trixie main\n"
                "deb [signed-by=/k] http://sec/debian trixie-security main\n");
  r.machine.put("/etc/apt/sources.list.d/tools.list", "deb http://tools/debian stable main\n");
  r.machine.put("/etc/apt/sources.list.d/debian.sources",
                "Types: deb\nURIs: http://mirror/debian\nSuites: trixie trixie-updates\nComponents: "
                "main\n\nTypes: deb\nEnabled: no\n"
                "URIs: http://off/debian\nSuites: trixie\nComponents: main\n");
  REQUIRE(r.apply("apt_repository", params).ok());
  const std::string source = r.machine.get("/etc/apt/sources.list.d/muster-more.sources");
  CHECK(source.find("URIs: http://mirror/debian\nSuites: trixie\nComponents: contrib non-free\n") !=
        std::string::npos);
  CHECK(r.check("apt_repository", params)->holds == Holds::yes);
  r.machine.put("/k", "key");  // the same one: under another name apt would refuse both
  r.machine.put("/etc/apt/sources.list", "deb [arch=amd64 signed-by=/k] http://near/debian trixie main\n");
  r.machine.put("/etc/apt/sources.list.d/debian.sources", "");
  CHECK(r.check("apt_repository", params)->holds == Holds::no);
  Json still = params;
  still["check_valid_until"] = false;
  REQUIRE(r.apply("apt_repository", still).ok());
  CHECK(r.machine.get("/etc/apt/sources.list.d/muster-more.sources")
            .find("\nCheck-Valid-Until: no\nSigned-By: /k\n") != std::string::npos);
  // A mirror that the site signs again is verified by the site's key, whichever part of it is added.
  const std::string site = "/etc/apt/keyrings/muster-mirror.asc";
  r.machine.put(site, "another key");
  r.machine.put("/etc/apt/sources.list", "deb [signed-by=" + site + "] http://near/debian trixie main\n");
  REQUIRE(r.apply("apt_repository", params).ok());
  CHECK(r.machine.get("/etc/apt/sources.list.d/muster-more.sources").find("\nSigned-By: " + site + "\n") !=
        std::string::npos);
}

TEST_CASE("apt_mirror: the system's own sources, and no others, are those of the mirror") {
  Run r;
  r.machine.put("/usr/share/keyrings/debian-archive-keyring.gpg", "key");
  r.machine.put("/etc/os-release", "ID=debian\nVERSION_CODENAME=trixie\n");
  const std::string before =
      "deb [signed-by=/k arch=amd64] http://old/debian trixie main non-free-firmware\n"
      "deb http://old/debian-security trixie-security main\n";
  r.machine.put("/etc/apt/sources.list", before);
  r.machine.put("/etc/apt/sources.list.d/tools.list", "deb http://tools/debian stable main\n");
  Json params = {{"mirror", "http://m.example/debian"},
                 {"security_mirror", "http://m.example/debian-security"}};
  CHECK(r.check("apt_mirror", params)->holds == Holds::no);
  r.machine.broken = {"apt-get -q update"};
  CHECK_FALSE(r.apply("apt_mirror", params).ok());
  CHECK(r.machine.get("/etc/apt/sources.list") == before);  // a mirror that does not answer breaks nothing
  r.machine.broken.clear();
  REQUIRE(r.apply("apt_mirror", params).ok());
  const std::string deb = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://m.example/";
  CHECK(r.machine.get("/etc/apt/sources.list") ==
        deb + "debian trixie main non-free-firmware\n" + deb +
            "debian trixie-updates main non-free-firmware\n" + deb +
            "debian-security trixie-security main non-free-firmware\n");
  CHECK(r.machine.get("/etc/apt/sources.list.d/tools.list") == "deb http://tools/debian stable main\n");
  CHECK(r.check("apt_mirror", params)->holds == Holds::yes);
  params["security_mirror"] = "none";
  params["updates"] = false;
  REQUIRE(r.apply("apt_mirror", params).ok());
  CHECK(r.machine.get("/etc/apt/sources.list") == deb + "debian trixie main non-free-firmware\n");
  for (const std::string bad : {"none", "http://m/ x", "http://m/]x", "cdrom:", "http://u@m/debian"}) {
    params["mirror"] = bad;
    CHECK(r.apply("apt_mirror", params).error().code == Code::invalid);
  }
}

namespace {

// A node of an Ubuntu release, with the archive's key.
void make_ubuntu(FakeMachine& machine, const std::string& codename, const std::string& id = "ubuntu") {
  machine.put("/etc/os-release", "ID=" + id + "\nVERSION_CODENAME=" + codename + "\n");
  machine.put("/usr/share/keyrings/ubuntu-archive-keyring.gpg", "key");
}

const Json kUbuntuMirror = {{"mirror", "http://m.example/ubuntu"},
                            {"security_mirror", "http://m.example/ubuntu"}};

}  // namespace

TEST_CASE("apt_mirror: a release with a file of its own has it there, and once", "[apt]") {
  Run r;
  make_ubuntu(r.machine, "noble");
  const std::string own = "/etc/apt/sources.list.d/ubuntu.sources", list = "/etc/apt/sources.list";
  r.machine.put(own, "Types: deb\nURIs: http://old/ubuntu\nSuites: noble\nComponents: main restricted\n");
  r.machine.put(list, "deb http://old/ubuntu noble-updates main universe\n");
  CHECK(r.check("apt_mirror", kUbuntuMirror)->holds == Holds::no);
  REQUIRE(r.apply("apt_mirror", kUbuntuMirror).ok());
  CHECK(r.machine.get(own) ==
        "Types: deb\nURIs: http://m.example/ubuntu\nSuites: noble noble-updates noble-security\n"
        "Components: main restricted universe\n"
        "Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg\n");
  CHECK(r.machine.get(list).empty());
  CHECK(r.check("apt_mirror", kUbuntuMirror)->holds == Holds::yes);
  // Lines for something else are none of this step's business, lines for the release are.
  r.machine.put(list, "deb http://tools/apt stable main\n");
  CHECK(r.check("apt_mirror", kUbuntuMirror)->holds == Holds::yes);
  r.machine.put(list, "deb http://old/ubuntu noble-security main\n");
  CHECK(r.check("apt_mirror", kUbuntuMirror)->holds == Holds::no);
  r.machine.broken = {"apt-get -q update"};
  CHECK_FALSE(r.apply("apt_mirror", kUbuntuMirror).ok());
  CHECK_FALSE(r.machine.get(list).empty());
  // An image of one component stays one, and one without any gets what the archive needs.
  r.machine.broken.clear();
  r.machine.put(own, "Types: deb\nURIs: http://old/ubuntu\nSuites: noble\nComponents: main\n");
  r.machine.put(list, "");
  REQUIRE(r.apply("apt_mirror", kUbuntuMirror).ok());
  CHECK(r.machine.get(own).find("\nComponents: main\n") != std::string::npos);
  r.machine.put(own, "");
  REQUIRE(r.apply("apt_mirror", kUbuntuMirror).ok());
  CHECK(r.machine.get(own).find("\nComponents: main universe\n") != std::string::npos);
}

TEST_CASE("apt_mirror: a mirror that is signed again brings its key, and needs no other", "[apt]") {
  Run r;
  make_ubuntu(r.machine, "noble");
  Json params = kUbuntuMirror;
  const std::string own = "/etc/apt/sources.list.d/ubuntu.sources",
                    key = "/etc/apt/keyrings/muster-mirror.asc";
  params["key"] = "key 1\n";
  REQUIRE(r.apply("apt_mirror", params).ok());
  CHECK(r.machine.get(key) == "key 1\n");
  CHECK(r.machine.get(own).find("\nSigned-By: " + key + "\n") != std::string::npos);
  CHECK(r.check("apt_mirror", params)->holds == Holds::yes);
  params["key"] = "key 2\n";
  CHECK(r.check("apt_mirror", params)->holds == Holds::no);
  REQUIRE(r.apply("apt_mirror", params).ok());
  CHECK(r.machine.get(key) == "key 2\n");
  // A mirror that cannot be verified leaves the sources as they were, and the key that these need.
  params["key"] = "key 3\n";
  r.machine.broken = {"apt-get -q update"};
  CHECK_FALSE(r.apply("apt_mirror", params).ok());
  CHECK(r.machine.get(key) == "key 2\n");
  r.machine.broken.clear();
  // The archive's own again.
  REQUIRE(r.apply("apt_mirror", kUbuntuMirror).ok());
  CHECK(r.machine.get(own).find("\nSigned-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg\n") !=
        std::string::npos);
  // More of that mirror is signed by it, too.
  REQUIRE(r.apply("apt_mirror", params).ok());
  const Json more = {{"name", "more"},
                     {"components", {"restricted"}},
                     {"signed_by", "/usr/share/keyrings/ubuntu-archive-keyring.gpg"}};
  REQUIRE(r.apply("apt_repository", more).ok());
  CHECK(r.machine.get("/etc/apt/sources.list.d/muster-more.sources").find("\nSigned-By: " + key + "\n") !=
        std::string::npos);
}

TEST_CASE("apt_mirror: 22.04 has lines, and a system that is not known is refused", "[apt]") {
  Run r;
  make_ubuntu(r.machine, "jammy");
  REQUIRE(r.apply("apt_mirror", kUbuntuMirror).ok());
  const std::string deb =
      "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://m.example/ubuntu jammy";
  CHECK(r.machine.get("/etc/apt/sources.list") ==
        deb + " main universe\n" + deb + "-updates main universe\n" + deb + "-security main universe\n");
  const std::vector<std::pair<std::string, std::string>> unknown = {
      {"wilma", "linuxmint"}, {"jammy", "pop"}, {"plucky", "ubuntu"}};
  for (const auto& [codename, id] : unknown) {
    CAPTURE(codename);
    Run other;
    make_ubuntu(other.machine, codename, id);
    CHECK(other.check("apt_mirror", kUbuntuMirror).error().code == Code::invalid);
    CHECK(other.apply("apt_mirror", kUbuntuMirror).error().message.find(codename) != std::string::npos);
    CHECK_FALSE(other.machine.files().exists("/etc/apt/sources.list"));
  }
}

TEST_CASE("apt_mirror: a system of another distribution than the mirror's keeps its sources", "[apt]") {
  Run r;
  const std::string before = "deb http://old/debian trixie main\n";
  r.machine.put("/etc/os-release", "ID=debian\nVERSION_CODENAME=trixie\n");
  r.machine.put("/etc/apt/sources.list", before);
  Json params = kUbuntuMirror;
  params["distribution"] = "ubuntu";
  CHECK(r.check("apt_mirror", params)->holds == Holds::not_applicable);
  CHECK(r.machine.calls.empty());
  params["distribution"] = "";
  CHECK(r.check("apt_mirror", params)->holds == Holds::no);
  // After its re-image it gets the mirror, and a system that is not known is still refused by name.
  params["distribution"] = "ubuntu";
  make_ubuntu(r.machine, "noble");
  CHECK(r.check("apt_mirror", params)->holds == Holds::no);
  make_ubuntu(r.machine, "wilma", "linuxmint");
  CHECK(r.check("apt_mirror", params).error().code == Code::invalid);
}

TEST_CASE("sshd and kernel_command_line: what another distribution calls otherwise is refused by its name") {
  Run r;
  r.machine.put("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n");
  r.machine.put("/usr/lib/systemd/system/sshd.service", "[Unit]\n");
  const Json keys_only = {{"settings", {{"PasswordAuthentication", "no"}}}, {"port", 0}};
  CHECK(r.check("sshd", keys_only).error().code == Code::conflict);
  CHECK(r.apply("sshd", keys_only).error().message.find("sshd.service") != std::string::npos);
  CHECK_FALSE(r.machine.files().exists("/etc/ssh/sshd_config.d/00-muster.conf"));
  r.machine.put("/usr/lib/systemd/system/ssh.service", "[Unit]\n");
  CHECK(r.apply("sshd", keys_only).ok());

  r.machine.put("/etc/default/grub", "GRUB_CMDLINE_LINUX=\n");
  const Status no_menu = r.apply("kernel_command_line", {{"name", "base"}, {"present", {"iommu=pt"}}});
  REQUIRE(!no_menu.ok());
  CHECK(no_menu.error().message.find("update-grub") != std::string::npos);
  CHECK_FALSE(r.machine.files().exists("/etc/default/grub.d/60-muster-base.cfg"));
}

TEST_CASE("archive: a new version replaces the folder whole; foreign files are not touched") {
  Run r;
  r.machine.put("/opt/a.tar", "one");
  Json params = {{"source", "/opt/a.tar"}, {"into", "/opt/tool"}, {"sha256", sha256("one")}};
  REQUIRE(r.apply("archive", params).ok());
  r.machine.put("/opt/tool/left-over", "x");
  r.machine.put("/opt/a.tar", "two");
  CHECK(r.apply("archive", {{"source", "/opt/a.tar"}, {"into", "/opt/tool"}, {"sha256", sha256("three")}})
            .error()
            .code == Code::corrupt);
  CHECK(r.machine.get("/opt/tool/bin/tool") == "from one");
  params["sha256"] = sha256("two");
  REQUIRE(r.apply("archive", params).ok());
  CHECK(r.machine.get("/opt/tool/bin/tool") == "from two");
  CHECK(!r.machine.files().exists("/opt/tool/left-over"));
  r.machine.put("/srv/data/file", "precious");
  CHECK(r.apply("archive", {{"source", "/opt/a.tar"}, {"into", "/srv/data"}, {"sha256", sha256("two")}})
            .error()
            .code == Code::conflict);
  CHECK(r.machine.get("/srv/data/file") == "precious");
}

TEST_CASE("apt_repository: a key or a source that is wrong is never in force") {
  Run r;
  r.machine.web["https://example.org/key"] = "-----BEGIN PGP PUBLIC KEY BLOCK-----\nother\n";
  const Json params = {{"name", "x"},
                       {"uris", {"https://example.org"}},
                       {"suites", {"stable"}},
                       {"components", {"main"}},
                       {"key_url", "https://example.org/key"},
                       {"key_sha256", sha256("key")}};
  CHECK(!r.apply("apt_repository", params).ok());
  CHECK(r.machine.files().list("/etc/apt/sources.list.d").empty());
  Json right = params;
  right["key_sha256"] = sha256(r.machine.web["https://example.org/key"]);
  r.machine.broken = {"apt-get -q update"};  // apt does not believe what the key should have signed
  CHECK(!r.apply("apt_repository", right).ok());
  CHECK(r.machine.files().list("/etc/apt/sources.list.d").empty());
  r.machine.broken.clear();
  REQUIRE(r.apply("apt_repository", right).ok());
  CHECK(r.machine.get("/etc/apt/sources.list.d/muster-x.sources")
            .find("Signed-By: /etc/apt/keyrings/muster-x.asc") != std::string::npos);
  right["signed_by"] = "/usr/share/keyrings/a.gpg";
  CHECK(r.check("apt_repository", right).error().code == Code::invalid);
}

TEST_CASE("config: comments, order and other sections stay; keys are changed, added and removed") {
  Run r;
  r.machine.put("/etc/a.ini", "# top\n[a]\nk = 1\n\n[b]\n; note\nk = 1\nk = 2\nold=x\n");
  Json params = {{"path", "/etc/a.ini"},
                 {"format", "ini"},
                 {"section", "b"},
                 {"values", {{"k", 3}, {"old", nullptr}, {"n", "y"}}}};
  REQUIRE(r.apply("config", params).ok());
  CHECK(r.machine.get("/etc/a.ini") == "# top\n[a]\nk = 1\n\n[b]\n; note\nk=3\nn=y\n");
  params["section"] = "c";
  params["values"] = {{"k", 1}};
  REQUIRE(r.apply("config", params).ok());
  CHECK(r.machine.get("/etc/a.ini") == "# top\n[a]\nk = 1\n\n[b]\n; note\nk=3\nn=y\n\n[c]\nk=1\n");

  r.machine.put("/etc/kv", "# Port 1\nPort 2\nHost x\n");
  REQUIRE(r.apply("config", {{"path", "/etc/kv"},
                             {"format", "keyvalue"},
                             {"separator", " "},
                             {"values", {{"Port", 3}, {"New", "z"}}}})
              .ok());
  CHECK(r.machine.get("/etc/kv") == "# Port 1\nPort 3\nHost x\nNew z\n");

  r.machine.put("/etc/d.json", R"({"log":"json","runtimes":{"other":{"path":"/x"}}})");
  const Json merge = {{"path", "/etc/d.json"},
                      {"format", "json"},
                      {"values", {{"runtimes", {{"nvidia", {{"path", "/n"}}}}}, {"iptables", false}}}};
  REQUIRE(r.apply("config", merge).ok());
  CHECK(Json::parse(r.machine.get("/etc/d.json")) ==
        Json::parse(
            R"({"log":"json","iptables":false,"runtimes":{"other":{"path":"/x"},"nvidia":{"path":"/n"}}})"));
  r.machine.put("/etc/d.json", "{ broken");
  CHECK(r.apply("config", merge).error().code == Code::conflict);
  CHECK(r.machine.get("/etc/d.json") == "{ broken");
}

TEST_CASE("kernel_module: a blacklisted module that is in use asks for a reboot") {
  Run r;
  r.machine.put("/sys/module/nouveau/refcnt", "3\n");
  const Json params = {{"name", "gpu"}, {"blacklist", {"nouveau"}}};
  REQUIRE(r.apply("kernel_module", params).ok());
  CHECK(r.machine.get("/run/muster/reboot/kernel_module-gpu").find("nouveau") != std::string::npos);
  CHECK(r.check("kernel_module", params)->holds == Holds::yes);  // all that can be done before the reboot
  CHECK(r.check("reboot", Json::object())->holds == Holds::no);
  CHECK(r.check("kernel_module", {{"load", {"a-b"}}, {"blacklist", {"a_b"}}}).error().code == Code::invalid);
}

TEST_CASE("kernel_command_line: the entry of the running slot and nothing that decides what boots") {
  Run r;
  r.machine.put("/etc/muster/image.json", R"({"name":"cpu","digest":"sha256:1","slot":"b"})");
  r.machine.put("/proc/cmdline", "root=PARTUUID=2 rw iommu=on\n");
  r.machine.add_system("nvme0n1", "OS1");
  r.machine.mount_entry("nvme0n1p3", "/", "ext4");
  for (const char* slot : {"a", "b"})
    r.machine.put(std::string("/boot/efi/loader/entries/muster-") + slot + ".conf",
                  "title x\noptions root=PARTUUID=2 rw iommu=on\n");
  REQUIRE(r.apply("kernel_command_line", {{"present", {"iommu=pt"}}}).ok());
  CHECK(r.machine.get("/boot/efi/loader/entries/muster-b.conf") ==
        "title x\noptions root=PARTUUID=2 rw iommu=pt\n");
  CHECK(r.machine.get("/boot/efi/loader/entries/muster-a.conf") ==
        "title x\noptions root=PARTUUID=2 rw iommu=on\n");
  CHECK(r.machine.called("mount -t vfat -o rw,umask=0077 /dev/nvme0n1p1 /boot/efi"));
  CHECK(r.machine.get("/proc/self/mountinfo").find("/boot/efi") == std::string::npos);
  CHECK(r.machine.files().exists("/run/muster/reboot/kernel_command_line-base"));
  CHECK(r.apply("kernel_command_line", {{"present", {"root=/dev/sda1"}}}).error().code == Code::denied);
  CHECK(r.apply("kernel_command_line", {{"absent", {"muster.slot"}}}).error().code == Code::denied);
}

TEST_CASE("service: a unit whose old links systemd remembers is loaded again") {
  Run r;
  r.machine.units["nfs-server.service"].remembered = "disabled";
  REQUIRE(r.apply("service", {{"names", {"nfs-server"}}, {"enabled", true}}).ok());
  CHECK(r.check("service", {{"names", {"nfs-server"}}, {"enabled", true}})->holds == Holds::yes);
  CHECK(r.machine.called("daemon-reload"));
}

TEST_CASE("service: one name is a list of one; a wrong type and an unknown parameter are refused") {
  Run r;
  r.machine.units["chrony.service"] = {};
  REQUIRE(r.apply("service", {{"names", "chrony"}, {"enabled", true}}).ok());
  CHECK(r.check("service", {{"names", Json::array({"chrony", 5})}, {"enabled", true}})->holds == Holds::yes);
  for (const Json& wrong : {Json{{"names", 5}}, Json{{"names", {"chrony"}}, {"masked", "yes"}},
                            Json{{"names", {"chrony"}}, {"name", "chrony"}}, Json::object()})
    CHECK(r.check("service", wrong).error().code == Code::invalid);
}

TEST_CASE("reboot: many ask, one reboot happens; who asks again for the same afterwards gets a failure") {
  Run r;
  r.machine.put("/proc/sys/kernel/random/boot_id", "boot-before\n");
  r.machine.put("/run/muster/reboot/one", "first\n");
  r.machine.put("/run/muster/reboot/two", "second\n");
  r.machine.put("/run/reboot-required", "");
  std::string said;
  r.context.say = [&](const std::string& text) { said += text; };
  r.context.cancelled = [] { return true; };  // the process ends with the system
  CHECK(r.check("reboot", Json::object())->diff.find("one: first; packages: ; two: second") !=
        std::string::npos);
  (void)r.apply("reboot", Json::object()).ok();
  CHECK(std::count(r.machine.calls.begin(), r.machine.calls.end(), "systemctl --no-block reboot") == 1);
  CHECK(said.find("first") != std::string::npos);
  // It came up (the fake machine's boot id changed) and everybody asks again.
  r.machine.put("/run/muster/reboot/one", "first\n");
  r.machine.put("/run/muster/reboot/two", "second\n");
  const Status again = r.apply("reboot", Json::object());
  REQUIRE(!again.ok());
  CHECK(again.error().message.find("the reason remains") != std::string::npos);
  CHECK(std::count(r.machine.calls.begin(), r.machine.calls.end(), "systemctl --no-block reboot") == 1);
}

TEST_CASE("runner: after a reboot of its own, an order verifies what holds already") {
  FakeMachine machine;
  StepContext context = machine.context();
  StepModule module;
  module.name = "fake";
  bool works = true;
  module.check = [](StepContext&, const Json&) -> Result<CheckResult> { return CheckResult{Holds::yes, ""}; };
  module.apply = [](StepContext&, const Json&) -> Status { return Ok{}; };
  module.verify = [&](StepContext&, const Json&) -> Status {
    return works ? Status(Ok{}) : Status(fail(Code::failed, "lost over the reboot"));
  };
  context.module = [&](const std::string&) -> const StepModule* { return &module; };
  StepOrder order;
  wire::Step step;
  step.id = "a/b";
  step.module = "fake";
  order.steps = {step};
  const auto run = [&] {
    return run_steps(
        context, order, [] { return TimeMs{0}; }, [](const std::string&, const Json&) {});
  };
  CHECK(run().status.ok());
  works = false;
  CHECK(run().status.ok());  // not asked again in an ordinary run
  order.reverify = true;
  const auto outcome = run();
  REQUIRE(!outcome.status.ok());
  CHECK(outcome.status.error().message.find("lost over the reboot") != std::string::npos);
}

}  // namespace
}  // namespace muster
