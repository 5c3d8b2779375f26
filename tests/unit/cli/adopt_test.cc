// The whole command against a real sshd and a real controller. The agent is a script that answers like
// `muster-agent adopt` (agent/joining/adopting.h) and notes its requests; nothing is approved, so nothing is
// ever installed on this machine.
#include "cli/adopt_verb.h"

#include <algorithm>

#include "tests/fakes/key_agent.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/sshd.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

struct Site {
  TempDir dir;
  Sshd sshd;
  Controller controller{source_dir() + "/playbooks", agent()};

  explicit Site(const std::string& own = "[ base ]") {
    std::string spec = testing::kSpec;
    const std::string books = "[ base, storage, shared ]";
    spec.replace(spec.find(books), books.size(), own);
    REQUIRE(controller.call(api::Listener::local, "PUT", "/v1/spec", spec).status == 200);
    controller.open();
    says("");
  }
  std::string agent() const { return dir.path("agent"); }
  void says(const std::string& refusal, const Json& steps = Json::array()) {
    HardwareFacts facts = *seen_in_ram("31").facts;
    facts.system.uuid = "UUID";
    const Json answer = {
        {"facts", to_json(facts)}, {"joined", false}, {"refusal", refusal}, {"steps", steps}};
    dir.write("answer", answer.dump() + "\n");
    // Each node is a machine of its own.
    dir.write("agent",
              "#!/bin/sh\n[ \"$1\" = adopt ] || exit 9\necho '{\"ready\":true}'\n"
              "while read -r line; do\n  printf '%s\\n' \"$line\" >> " +
                  dir.path("asked") +
                  "\n  node=$(printf %s \"$line\" | sed 's/.*\"node\":\"\\([^\"]*\\)\".*/\\1/')\n"
                  "  sed \"s/UUID/uuid-of-$node/; s/31/${node#spare}/g\" " +
                  dir.path("answer") + "\ndone\n");
  }
  // Number of logins.
  size_t logins() const {
    const std::string log = slurp(sshd.dir / "log");
    size_t found = 0;
    for (size_t at = log.find("Accepted"); at != std::string::npos; at = log.find("Accepted", at + 1))
      ++found;
    return found;
  }
  Ran adopt(std::vector<std::string> more) {
    std::vector<std::string> all = {
        "node",      "add",        "spare01",  "--adopt",          "127.0.0.1:" + std::to_string(sshd.port),
        "--address", "10.20.0.31", "--socket", controller.socket()};
    all.insert(all.end(), more.begin(), more.end());
    return muster_command(all);
  }
  std::vector<std::string> good() const {
    return {"--like",     "node03",
            "--key",      (sshd.dir / "user").string(),
            "--host-key", (sshd.dir / "host.pub").string()};
  }
};

}  // namespace

TEST_CASE("the command shows what would change and goes no further without approval", "[cli][adopt]") {
  Site site;
  site.says(
      "",
      {{{"step", "base/hosts file"},
        {"module", "file"},
        {"outcome", "would_change"},
        {"diff", "-old\n+new \x1b[31m"},
        {"message", ""}},
       {{"step", "base/limits"}, {"module", "file"}, {"outcome", "already"}, {"diff", ""}, {"message", ""}},
       {{"step", "base/time"},
        {"module", "service"},
        {"outcome", "unknown"},
        {"diff", ""},
        {"message", "no unit chrony"}}});
  const Ran ran = site.adopt(site.good());
  CAPTURE(ran.out, ran.err);
  CHECK(ran.exit == cli::kRefused);
  CHECK(ran.err.find("not approved, nothing was done") != std::string::npos);
  CHECK(ran.out.find("base/hosts file (file)\n      -old\n      +new") != std::string::npos);
  CHECK(ran.out.find("base/time (service): no unit chrony") != std::string::npos);
  CHECK(ran.out.find("base/limits (") == std::string::npos);
  CHECK(ran.out.find(
            "1 steps would change something, 1 are already correct, 0 do not apply, 1 are not known yet") !=
        std::string::npos);
  CHECK(ran.out.find('\x1b') == std::string::npos);  // a host does not steer the operator's terminal
  CHECK(ran.out.find("+  - name: spare01") != std::string::npos);
  // Two requests: what is in it, then about the plan's steps.
  const std::string requested = site.dir.read("asked");
  CHECK(requested.find("\"steps\":[]") != std::string::npos);
  CHECK(requested.find("base/hosts file") != std::string::npos);
  CHECK(requested.find("token") == std::string::npos);
  CHECK(site.logins() == 1);
  const auto spec = site.controller.call(api::Listener::local, "GET", "/v1/spec");
  CHECK(spec.body.find("spare01") == std::string::npos);
  auto other = site.good();
  other.insert(other.end(), {"--approve", "0123456789abcdef"});
  CHECK(site.adopt(other).exit == cli::kRefused);
}

TEST_CASE("several hosts are looked at once each and approved together", "[cli][adopt]") {
  Site site;
  site.says("", {{{"step", "base/hosts file"},
                  {"module", "file"},
                  {"outcome", "would_change"},
                  {"diff", "-old\n+new"},
                  {"message", ""}}});
  Sshd other;
  std::ofstream(other.dir / "authorized") << slurp(site.sshd.dir / "user.pub");
  site.dir.write("keys", slurp(site.sshd.dir / "host.pub") + slurp(other.dir / "host.pub"));
  const std::string one = "127.0.0.1:" + std::to_string(site.sshd.port),
                    two = "127.0.0.1:" + std::to_string(other.port),
                    nobody = "127.0.0.1:" + std::to_string(free_port());
  const auto add = [&](const std::string& nodes, const std::string& hosts,
                       const std::string& addresses = "10.20.0.[31-32]") {
    return muster_command({"node", "add", nodes, "--adopt", hosts, "--address", addresses, "--socket",
                           site.controller.socket(), "--like", "node03", "--key",
                           (site.sshd.dir / "user").string(), "--host-key", site.dir.path("keys")});
  };
  const Ran three = add("spare[01-03]", one + "," + two + "," + nobody, "10.20.0.[31-33]");
  CAPTURE(three.out, three.err);
  CHECK(three.exit == cli::kFailed);
  CHECK(three.err.find("1 of 3 hosts") != std::string::npos);
  CHECK(three.err.find("spare03: ") != std::string::npos);
  CHECK(site.logins() == 0);

  const Ran both = add("spare[01-02]", one + "," + two);
  CAPTURE(both.out, both.err);
  CHECK(both.exit == cli::kRefused);
  CHECK(both.err.find("not approved, nothing was done") != std::string::npos);
  // What is the same on both is printed once.
  CHECK(both.out.find("Changes on 127.0.0.1, 127.0.0.1 (") != std::string::npos);
  for (const char* name : {"+  - name: spare01", "+  - name: spare02"})
    CHECK(both.out.find(name) != std::string::npos);
  CHECK(site.logins() == 1);
  CHECK(slurp(other.dir / "log").find("Accepted") != std::string::npos);
  const std::string requested = site.dir.read("asked");
  CHECK(requested.find("token") == std::string::npos);
  for (const char* node : {"\"node\":\"spare01\"", "\"node\":\"spare02\""}) {
    size_t looks = 0;
    for (size_t at = requested.find(node); at != std::string::npos; at = requested.find(node, at + 1))
      ++looks;
    CHECK(looks == 2);
  }

  // One that answers at two places is not two.
  const Ran twin = add("spare[01-02]", one + ",localhost:" + std::to_string(site.sshd.port));
  CAPTURE(twin.err);
  CHECK(twin.exit == cli::kRefused);
  CHECK(twin.err.find("present the same host key") != std::string::npos);
  CHECK(site.logins() == 1);
  CHECK(add("spare[01-02]", one).exit == cli::kUsage);
  CHECK(add("spare01", one + "," + two).exit == cli::kUsage);
  CHECK(add("spare[01-02]", one + "," + two, "10.20.0.31").exit == cli::kUsage);
}

TEST_CASE("a new host does not show the key of one that the spec declares", "[cli][adopt]") {
  Site site;
  std::string spec = site.controller.call(api::Listener::local, "GET", "/v1/spec").body;
  const Json stored = *parse_json(spec);
  spec = stored["text"].get<std::string>();
  spec.insert(
      spec.find("storage:\n"),
      "  - name: spare01\n    role: cpu\n    address: 10.20.0.31\n"
      "    disks: { fast: { match: { serial: \"FAST*\", size: 2 GiB, count: 2 }, policy: format-if-blank },"
      " bulk: { match: { serial: \"BULK*\", count: 1 }, policy: format-if-blank } }\n"
      "    adopt: { host: 127.0.0.1, port: " +
          std::to_string(site.sshd.port) + ", host_key: \"" + site.sshd.target().host_key + "\" }\n");
  const auto put = site.controller.call(api::Listener::local, "PUT", "/v1/spec", spec);
  CAPTURE(put.body);
  REQUIRE(put.status == 200);
  const std::string port = ":" + std::to_string(site.sshd.port);
  const Ran ran = muster_command(
      {"node", "add", "spare[01-02]", "--adopt", "127.0.0.1" + port + ",localhost" + port, "--address",
       "10.20.0.[31-32]", "--socket", site.controller.socket(), "--like", "node03", "--key",
       (site.sshd.dir / "user").string(), "--host-key", (site.sshd.dir / "host.pub").string()});
  CAPTURE(ran.out, ran.err);
  CHECK(ran.exit == cli::kRefused);
  CHECK(ran.err.find("spare01 and spare02 present the same host key") != std::string::npos);
  CHECK(site.logins() == 0);
}

TEST_CASE("a host that answers nonsense is not understood, and ends nothing but its adoption",
          "[cli][adopt]") {
  Site site;
  for (const char* nonsense :
       {"[]", "7", "no json", "{}", R"({"facts":7})", R"({"error":{"code":1,"message":[2]}})",
        R"({"refusal":["x"],"facts":null})"}) {
    site.dir.write("answer", std::string(nonsense) + "\n");
    const Ran ran = site.adopt(site.good());
    CAPTURE(nonsense, ran.out, ran.err);
    CHECK(ran.exit != cli::kAccepted);
    CHECK(ran.err.find("127.0.0.1") != std::string::npos);
  }
  HardwareFacts facts = *seen_in_ram("31").facts;
  const Json odd = {{"facts", to_json(facts)},
                    {"joined", "yes"},
                    {"refusal", 0},
                    {"steps", {7, {{"step", 1}, {"outcome", nullptr}}, Json::array()}}};
  site.dir.write("answer", odd.dump() + "\n");
  const Ran ran = site.adopt(site.good());
  CAPTURE(ran.out, ran.err);
  CHECK(ran.exit == cli::kRefused);  // planned, shown, and not approved
}

TEST_CASE("a host that is not the one meant, or does not let us in, is left at the door", "[cli][adopt]") {
  Site site;
  const std::string key = (site.sshd.dir / "user").string(), stranger = (site.sshd.dir / "other").string();
  const auto refused = [&](std::vector<std::string> arguments, const std::string& words) {
    const Ran ran = site.adopt(std::move(arguments));
    CAPTURE(ran.out, ran.err);
    CHECK(ran.exit == cli::kRefused);
    CHECK(ran.err.find(words) != std::string::npos);
  };
  refused({"--like", "node03", "--key", key, "--host-key", "SHA256:" + std::string(43, 'A')},
          "a different machine answered");
  refused({"--like", "node03", "--key", key, "--host-key", (site.sshd.dir / "other.pub").string()},
          "a different machine answered");
  // Without an option about the key it is shown; there is no terminal to confirm it.
  refused({"--like", "node03", "--key", key}, "--host-key " + site.sshd.target().host_key);
  CHECK(slurp(site.sshd.dir / "log").find("Accepted") == std::string::npos);
  refused({"--like", "node03", "--key", stranger, "--host-key", (site.sshd.dir / "host.pub").string()},
          "the key was rejected");
  site.says("systemd is not running on this host, but the agent requires systemd");
  refused(site.good(), "cannot be adopted: systemd is not running");
  CHECK(site.dir.read("asked").find("base/hosts") == std::string::npos);  // no plan was made for it
  CHECK(site.adopt({"--key", site.dir.path("none"), "--host-key", "SHA256:" + std::string(43, 'A')}).exit ==
        cli::kUsage);
  auto like = site.good();
  like[1] = "node3";
  site.says("");
  const Ran misspelt = site.adopt(like);
  CHECK(misspelt.exit == cli::kUsage);
  CHECK(misspelt.err.find("did you mean 'node03'") != std::string::npos);
}

TEST_CASE("hardening that lets fewer keys be tried than the SSH agent offers first is refused",
          "[cli][adopt]") {
  Site site("[ base, ssh ]");
  KeyAgent agent;
  const std::vector<std::string> flags = {"--like", "node03", "--host-key",
                                          (site.sshd.dir / "host.pub").string()};
  const auto ends = [&](const std::vector<std::string>& more, const char* with) {
    auto all = flags;
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = site.adopt(all);
    CAPTURE(ran.err);
    CHECK(ran.exit == cli::kRefused);
    CHECK(ran.err.find(with) != std::string::npos);
  };
  agent.add_others(6);
  agent.add(site.sshd.dir / "user");
  ends({}, "IdentitiesOnly");
  ends({"--key", (site.sshd.dir / "user.pub").string()}, "not approved, nothing was done");
  KeyAgent fewer;
  fewer.add_others(5);
  fewer.add(site.sshd.dir / "user");
  ends({}, "not approved, nothing was done");
}

TEST_CASE("a plan that would take the operator's own way in away is refused", "[cli][adopt]") {
  const Json steps = {
      {{"id", "base/hosts file"}, {"module", "file"}, {"params", {{"path", "/etc/hosts"}}}},
      {{"id", "base/account admin"},
       {"module", "user"},
       {"params", {{"name", "admin"}, {"keys", {"ssh-ed25519 AAAAone ann@desk", "ssh-rsa AAAAtwo"}}}}},
      {{"id", "slurm/account"}, {"module", "user"}, {"params", {{"name", "slurm"}}}}};
  const Status refused = cli::keeps_access("admin", {"AAAAthree"}, steps);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == Code::denied);
  for (const char* words : {"base/account admin", "users.admin.keys", "--user"})
    CHECK(refused.error().message.find(words) != std::string::npos);
  CHECK(!cli::keeps_access("admin", {}, steps).ok());
  CHECK(cli::keeps_access("admin", {"AAAAthree", "AAAAtwo"}, steps).ok());
  CHECK(
      cli::keeps_access("root", {"AAAAthree"}, steps).ok());  // the spec cannot declare it: it stays as it is
  CHECK(cli::keeps_access("slurm", {"AAAAthree"}, steps).ok());  // its keys are left alone
}

TEST_CASE("node add says how to declare a node, and --adopt needs a host that can be reached",
          "[cli][adopt]") {
  Site site;
  const Ran explained = muster_command({"node", "add", "spare01", "--socket", site.controller.socket()});
  CHECK(explained.exit == cli::kUsage);
  CHECK(explained.err.find("--adopt HOST") != std::string::npos);
  for (const char* host : {"10.20.0.31:", "10.20.0.31:x", "10.20.0.31:70000", "::1"}) {
    const Ran ran =
        muster_command({"node", "add", "spare01", "--adopt", host, "--socket", site.controller.socket()});
    CAPTURE(host, ran.err);
    CHECK(ran.exit == cli::kUsage);
  }
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port());
  CHECK(muster_command({"node", "add", "spare01", "--adopt", nobody, "--socket", site.controller.socket()})
            .exit == cli::kFailed);
}
