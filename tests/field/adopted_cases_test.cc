// Hosts with habits of their own, through the step modules.
#include "agent/steps/step_modules.h"
#include "agent/steps/system/accounts.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

FIELD_CASE("sshd-include-forms") {
  const StepModule* sshd = find_step_module("sshd");
  const Json params = {{"settings", {{"PasswordAuthentication", false}}}, {"port", 0}};
  const auto checked = [&](const std::string& main, const std::string& other = "") {
    FakeMachine machine;
    machine.put("/etc/ssh/sshd_config", main);
    if (!other.empty()) machine.put("/etc/ssh/" + other, "PasswordAuthentication yes\n");
    machine.put("/etc/ssh/sshd_config.d/00-muster.conf",
                "# Written by muster. Read first: of several values for a setting, sshd takes the first.\n"
                "PasswordAuthentication no\n");
    StepContext context = machine.context();
    const auto out = sshd->check(context, params);
    return out.ok() ? (out->holds == Holds::yes ? "holds" : "differs") : "refused";
  };
  const std::string all = "/etc/ssh/sshd_config.d/*.conf\n";
  for (const char* form : {"Include ", "Include\t", "Include=", "include \t ", "Include = "}) {
    CAPTURE(form);
    CHECK(checked(form + all) == std::string("holds"));
  }
  CHECK(checked("Include sshd_config.d/*.conf\n") == std::string("holds"));
  CHECK(checked("# first\n\nInclude \"/etc/ssh/sshd_config.d/*.conf\"\n") == std::string("holds"));
  const std::string early = "Include /etc/ssh/sshd_config.d/5*.conf\nInclude " + all;
  CHECK(checked(early) == std::string("holds"));
  CHECK(checked(early, "sshd_config.d/50-site.conf") == std::string("differs"));
  CHECK(checked("Include /etc/ssh/site.conf " + all, "site.conf") == std::string("differs"));
  CHECK(checked("Include " + all, "sshd_config.d/00-a.conf") == std::string("differs"));
  CHECK(checked("Include " + all, "sshd_config.d/50-site.conf") == std::string("holds"));
  CHECK(checked("Include " + all, "sshd_config.d/00-a.conf.bak") == std::string("holds"));
  CHECK(checked("PasswordAuthentication yes\nInclude " + all) == std::string("refused"));
  CHECK(checked("Include /etc/ssh/sshd_config.d/9*.conf\n") == std::string("refused"));
}

// try.sh shows what sshd makes of the field.
FIELD_CASE("user-lock-usepam") {
  FakeMachine machine;
  machine.put("/etc/passwd", machine.get("/etc/passwd") + "admin:x:1000:1000::/home/admin:/bin/bash\n");
  const StepModule* user = find_step_module("user");
  const Json params = {{"name", "admin"}};
  StepContext context = machine.context();
  const auto field = [&] { return steps::password_field(machine.files(), "admin"); };
  // A password of its own; one that an earlier muster locked; locked and never set.
  for (const char* before : {"$6$salt$hash", "!$6$salt$hash", "!", ""}) {
    CAPTURE(before);
    machine.put("/etc/shadow", std::string("root:*:1::::::\nadmin:") + before + ":19000:0:99999:7:::\n");
    CHECK(user->check(context, params)->holds == Holds::no);
    REQUIRE(user->apply(context, params).ok());
    CHECK(field() == "*");
    CHECK(user->check(context, params)->holds == Holds::yes);
  }
  // A new account.
  REQUIRE(user->apply(context, {{"name", "mpi"}}).ok());
  CHECK(steps::password_field(machine.files(), "mpi") == "*");
}

FIELD_CASE("apt-signed-by-other-name") {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule* module = find_step_module("apt_repository");
  const std::string folder = "/etc/apt/sources.list.d/", keyrings = "/usr/share/keyrings/archive.";
  machine.put("/etc/os-release", "VERSION_CODENAME=trixie\n");
  machine.put(keyrings + "gpg", "the archive's keys");
  machine.put(keyrings + "pgp", "the archive's keys");
  const auto system_has = [&](const std::string& key) {
    machine.put(folder + "debian.sources",
                "Types: deb\nURIs: http://mirror.example/debian/\nSuites: trixie trixie-updates\n"
                "Components: main\nSigned-By: " +
                    key + "\n");
  };
  system_has(keyrings + "pgp");
  const Json params = {{"name", "more"}, {"components", {"contrib"}}, {"signed_by", keyrings + "gpg"}};
  REQUIRE(module->apply(context, params).ok());
  CHECK(machine.get(folder + "muster-more.sources").find("Signed-By: " + keyrings + "pgp\n") !=
        std::string::npos);
  CHECK(module->check(context, params)->holds == Holds::yes);
  // What an older muster wrote beside it is put right.
  machine.put(folder + "muster-more.sources",
              "Types: deb\nURIs: http://mirror.example/debian/\nSigned-By: " + keyrings + "gpg\n");
  CHECK(module->check(context, params)->holds == Holds::no);
  REQUIRE(module->apply(context, params).ok());
  CHECK(module->check(context, params)->holds == Holds::yes);
  // Other keys under the other name: nothing is put in place.
  machine.put(keyrings + "pgp", "keys of the site");
  (void)machine.files().remove(folder + "muster-more.sources").ok();
  CHECK(module->apply(context, params).error().code == Code::conflict);
  CHECK(machine.get(folder + "muster-more.sources").empty());
}

}  // namespace muster::tests
