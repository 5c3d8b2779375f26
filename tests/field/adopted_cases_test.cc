// Field cases of hosts that lived before they were adopted: they stay reachable, and what is declared holds.
#include <algorithm>

#include "agent/core/step.h"
#include "agent/joining/adopting.h"
#include "agent/steps/step_modules.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"
#include "tests/source_dir.h"

namespace muster::tests {
namespace {

struct Host {
  FakeMachine machine;
  StepContext context = machine.context();
  Status apply(const char* module, const Json& params) {
    const Status done = find_step_module(module)->apply(context, params);
    UNSCOPED_INFO((done.ok() ? "" : done.error().message));
    return done;
  }
  Holds check(const char* module, const Json& params) {
    const auto found = find_step_module(module)->check(context, params);
    UNSCOPED_INFO((found.ok() ? found->diff : found.error().message));
    REQUIRE(found.ok());
    return found->holds;
  }
  std::string shadow(const std::string& name) const {
    for (const auto& line : split_lines(machine.get("/etc/shadow")))
      if (line.starts_with(name + ":"))
        return line.substr(name.size() + 1, line.find(':', name.size() + 1) - name.size() - 1);
    return "no line";
  }
};

// An account of the host's own: what it has in /etc/shadow, and a key.
void add_account(Host& host, const std::string& name, const std::string& password) {
  auto& m = host.machine;
  m.put("/etc/passwd", m.get("/etc/passwd") + name + ":x:1000:1000::/home/" + name + ":/bin/bash\n");
  m.put("/etc/shadow", m.get("/etc/shadow") + name + ":" + password + ":19000:0:99999:7:::\n");
  m.put("/home/" + name + "/.ssh/authorized_keys", "ssh-ed25519 AAAA " + name + "\n");
}

const Json kKeysOnly = {{"settings", {{"PasswordAuthentication", "no"}}}, {"port", 0}};
constexpr const char* kMainFile = "/etc/ssh/sshd_config";
constexpr const char* kDropIn = "/etc/ssh/sshd_config.d/00-muster.conf";

// Debian 13 as its installer leaves it: the same key under two names, of which the sources say the newer one.
constexpr const char* kRings = "/usr/share/keyrings/debian-archive-keyring";
void make_trixie(Host& host, const std::string& other_key = "the archive's key") {
  host.machine.put("/etc/os-release", "ID=debian\nVERSION_CODENAME=trixie\n");
  host.machine.put(std::string(kRings) + ".gpg", "the archive's key");
  host.machine.put(std::string(kRings) + ".pgp", other_key);
  host.machine.put("/etc/apt/sources.list.d/debian.sources",
                   "Types: deb\nURIs: http://mirror.example/debian/\nSuites: trixie trixie-updates\n"
                   "Components: main\nSigned-By: " +
                       std::string(kRings) + ".pgp\n");
}
const Json kNonFree = {{"name", "non-free"},
                       {"components", {"contrib", "non-free"}},
                       {"signed_by", std::string(kRings) + ".gpg"}};
constexpr const char* kNonFreeFile = "/etc/apt/sources.list.d/muster-non-free.sources";

bool names_key(const Host& host, const std::string& path, const std::string& key) {
  return host.machine.get(path).find("igned-" + std::string(path[path.size() - 1] == 't' ? "by=" : "By: ") +
                                     key) != std::string::npos;
}

}  // namespace

FIELD_CASE("user-lock-usepam: no password, and no lock") {
  const Json keeper = {{"name", "keeper"}, {"shell", "/bin/bash"}};
  for (const char* before : {"$6$salt$hash", "!$6$salt$hash", "!", "!!", "!*", ""}) {
    INFO(before);
    Host one;
    add_account(one, "keeper", before);
    CHECK(one.check("user", keeper) == Holds::no);
    REQUIRE(one.apply("user", keeper).ok());
    CHECK(one.shadow("keeper") == "*");
    CHECK(one.check("user", keeper) == Holds::yes);
  }
}

FIELD_CASE("account-new-usepam") {
  Host host;
  REQUIRE(host.apply("user", {{"name", "builder"}}).ok());
  CHECK(host.shadow("builder") == "*");
  CHECK(host.check("user", {{"name", "builder"}}) == Holds::yes);
}

FIELD_CASE("usepam-off-locks-accounts") {
  Host host;
  add_account(host, "ubuntu", "!");
  host.machine.put(kMainFile, "Include /etc/ssh/sshd_config.d/*.conf\n");
  const Json without_pam = {{"settings", {{"UsePAM", "no"}}}, {"port", 0}};
  CHECK(host.apply("sshd", without_pam).error().code == Code::conflict);
  CHECK_FALSE(host.machine.files().exists(kDropIn));
  REQUIRE(host.apply("sshd", kKeysOnly).ok());
  // Once muster has the account, its key gets in either way.
  REQUIRE(host.apply("user", {{"name", "ubuntu"}}).ok());
  CHECK(host.apply("sshd", without_pam).ok());
  CHECK(host.check("sshd", without_pam) == Holds::yes);
}

FIELD_CASE("sshd-include-forms: every form of Include that sshd takes") {
  for (const char* form : {"tab.conf", "equals.conf", "relative.conf", "two.conf", "earlier.conf"}) {
    INFO(form);
    Host host;
    host.machine.put(kMainFile, field_input("sshd-include-forms", form));
    host.machine.put("/etc/ssh/sshd_config.d/70-site.conf", "PasswordAuthentication yes\n");
    REQUIRE(host.apply("sshd", kKeysOnly).ok());
    CHECK(host.check("sshd", kKeysOnly) == Holds::yes);
  }
}

FIELD_CASE("sshd-include-forms: what is read before ours") {
  const std::map<std::string, std::string> earlier = {{"earlier.conf", "/etc/ssh/sshd_config.d/50-x.conf"},
                                                      {"two.conf", "/etc/ssh/site/x.conf"},
                                                      {"tab.conf", "/etc/ssh/sshd_config.d/00-a.conf"}};
  for (const auto& [form, file] : earlier) {
    INFO(form);
    Host host;
    host.machine.put(kMainFile, field_input("sshd-include-forms", form));
    REQUIRE(host.apply("sshd", kKeysOnly).ok());
    host.machine.put(file, "PasswordAuthentication yes\n");
    CHECK(host.check("sshd", kKeysOnly) == Holds::no);
    CHECK(host.apply("sshd", kKeysOnly).error().code == Code::conflict);
  }
  for (const char* form : {"after.conf", "other.conf"}) {
    INFO(form);
    Host host;
    host.machine.put(kMainFile, field_input("sshd-include-forms", form));
    CHECK(host.apply("sshd", kKeysOnly).error().code == Code::conflict);
  }
}

FIELD_CASE("sshd-cloud-init-passwords") {
  Host host;
  host.machine.put(kMainFile, "Include /etc/ssh/sshd_config.d/*.conf\n");
  host.machine.put("/etc/ssh/sshd_config.d/50-cloud-init.conf", "PasswordAuthentication yes\n");
  REQUIRE(host.apply("sshd", kKeysOnly).ok());
  CHECK(host.check("sshd", kKeysOnly) == Holds::yes);
}

FIELD_CASE("sshd-overridden-elsewhere") {
  Host host;
  host.machine.put(kMainFile, "Include /etc/ssh/sshd_config.d/*.conf\n");
  REQUIRE(host.apply("sshd", kKeysOnly).ok());
  host.machine.sshd_in_effect = "passwordauthentication yes\n";
  CHECK(host.check("sshd", kKeysOnly) == Holds::no);
}

FIELD_CASE("apt-signed-by-other-name: the host's name for the key is taken") {
  Host host;
  make_trixie(host);
  REQUIRE(host.apply("apt_repository", kNonFree).ok());
  CHECK(names_key(host, kNonFreeFile, std::string(kRings) + ".pgp\n"));
  CHECK(host.check("apt_repository", kNonFree) == Holds::yes);
  // What an older muster wrote breaks apt: it is no source that holds.
  std::string older = host.machine.get(kNonFreeFile);
  older.replace(older.find(".pgp"), 4, ".gpg");
  host.machine.put(kNonFreeFile, older);
  CHECK(host.check("apt_repository", kNonFree) == Holds::no);
  REQUIRE(host.apply("apt_repository", kNonFree).ok());
  CHECK(host.check("apt_repository", kNonFree) == Holds::yes);
}

FIELD_CASE("apt-signed-by-other-name: another key is refused, and nothing put in place") {
  Host host;
  make_trixie(host, "a key of the site's");
  CHECK(host.check("apt_repository", kNonFree) == Holds::no);
  CHECK(host.apply("apt_repository", kNonFree).error().code == Code::conflict);
  CHECK_FALSE(host.machine.files().exists(kNonFreeFile));
}

FIELD_CASE("apt-signed-by-other-name: what apt does not read together is not put in place") {
  Host host;
  make_trixie(host);
  host.machine.broken = {"apt-get -q indextargets"};
  CHECK(host.apply("apt_repository", kNonFree).error().code == Code::conflict);
  CHECK_FALSE(host.machine.files().exists(kNonFreeFile));
  CHECK(host.machine.files().list("/var/lib/muster/apt/parts").empty());
}

FIELD_CASE("apt-package-brings-source") {
  Host host;
  const Json editor = {{"name", "editor"},
                       {"uris", {"https://packages.example/code"}},
                       {"suites", {"stable"}},
                       {"components", {"main"}},
                       {"key", "-----BEGIN PGP PUBLIC KEY BLOCK-----\nours\n"}};
  REQUIRE(host.apply("apt_repository", editor).ok());
  host.machine.put("/usr/share/keyrings/editor.gpg", "the same in another form");
  host.machine.put("/etc/apt/sources.list.d/vendor.sources",
                   "Types: deb\nURIs: https://packages.example/code\nSuites: stable\nComponents: main\n"
                   "Signed-By: /usr/share/keyrings/editor.gpg\n");
  CHECK(host.check("apt_repository", editor) == Holds::no);
  CHECK(host.apply("apt_repository", editor).error().code == Code::conflict);
  host.machine.put("/etc/apt/sources.list.d/vendor.sources",
                   "Enabled: No\nTypes: deb\nURIs: https://packages.example/code\nSuites: stable\n"
                   "Components: main\nSigned-By: /usr/share/keyrings/editor.gpg\n");
  CHECK(host.check("apt_repository", editor) == Holds::yes);
}

FIELD_CASE("apt-source-without-key") {
  Host host;
  make_trixie(host);
  host.machine.put("/etc/apt/sources.list.d/debian.sources", "");
  host.machine.put("/etc/apt/sources.list", "deb http://mirror.example/debian trixie main\n");
  REQUIRE(host.apply("apt_repository", kNonFree).ok());
  CHECK(host.check("apt_repository", kNonFree) == Holds::yes);
  host.machine.put("/etc/apt/sources.list.d/zz.list", "deb http://mirror.example/debian trixie contrib\n");
  CHECK(host.check("apt_repository", kNonFree) == Holds::no);
  CHECK(host.apply("apt_repository", kNonFree).error().code == Code::conflict);
}

FIELD_CASE("apt-mirror-other-name") {
  Host host;
  make_trixie(host);
  const Json mirror = {{"mirror", "http://mirror.example/debian"}, {"security_mirror", "none"}};
  REQUIRE(host.apply("apt_mirror", mirror).ok());
  CHECK(names_key(host, "/etc/apt/sources.list", std::string(kRings) + ".pgp]"));
  CHECK(host.check("apt_mirror", mirror) == Holds::yes);
}

FIELD_CASE("cloud-init-etc-hosts: its module leaves the file alone") {
  Host host;
  host.machine.put("/etc/cloud/cloud.cfg", field_input("cloud-init-etc-hosts", "cloud.cfg"));
  host.machine.put("/etc/cloud/cloud.cfg.d/90-provider.cfg", "manage_etc_hosts: true\n");
  const Json names = {{"path", "/etc/hosts"}, {"content", "127.0.0.1 localhost\n10.20.0.31 gate01\n"}};
  host.machine.put("/etc/hosts", names["content"].get<std::string>());
  CHECK(host.check("file", names) == Holds::no);  // right today, gone after a boot
  REQUIRE(host.apply("file", names).ok());
  CHECK(host.check("file", names) == Holds::yes);
  const std::string ours = host.machine.get("/etc/cloud/cloud.cfg.d/zz-muster-hosts.cfg");
  CHECK(ours.find("\nmanage_etc_hosts: false\n") != std::string::npos);
  CHECK(ours.find("\ncloud_init_modules:\n - growpart\n - users-groups\n - [ssh, always]\n") !=
        std::string::npos);
  // A list that another file gives it is followed.
  host.machine.put("/etc/cloud/cloud.cfg.d/95-site.cfg", "cloud_init_modules:\n- ssh\n- update-etc-hosts\n");
  CHECK(host.check("file", names) == Holds::no);
  REQUIRE(host.apply("file", names).ok());
  CHECK(host.check("file", names) == Holds::yes);
  // Other files are none of its business.
  REQUIRE(host.apply("file", {{"path", "/etc/motd"}, {"content", "hello\n"}}).ok());
}

FIELD_CASE("cloud-init-etc-hosts: a host without it is left alone") {
  Host host;
  const Json names = {{"path", "/etc/hosts"}, {"content", "127.0.0.1 localhost\n"}};
  REQUIRE(host.apply("file", names).ok());
  CHECK(host.check("file", names) == Holds::yes);
  CHECK_FALSE(host.machine.files().exists("/etc/cloud"));
}

FIELD_CASE("needrestart-site-file") {
  const std::string folder = "/etc/needrestart/conf.d/";
  Host host;
  host.machine.put(folder + "restart.conf", field_input("needrestart-site-file", "restart.conf"));
  const auto base = parse_playbook(text_of(source_dir() + "/playbooks/base.yaml")).playbook;
  const auto step = std::find_if(base.steps.begin(), base.steps.end(),
                                 [](const auto& s) { return s.name == "no restarts by upgrades"; });
  REQUIRE(step != base.steps.end());
  REQUIRE(host.apply("file", step->params).ok());
  // needrestart reads these files in the order of their names.
  auto names = host.machine.files().list(folder);
  std::sort(names.begin(), names.end());
  REQUIRE(names.size() == 2);
  CHECK(host.machine.get(folder + names.back()).find("$nrconf{restart} = 'l';") != std::string::npos);
}

}  // namespace muster::tests
