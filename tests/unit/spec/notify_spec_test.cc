// The section `notify:`: its values, and what is refused with its place.
#include <fmt/format.h>

#include "controller/causes/cause.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

// `notify` begins in line 1.
ParsedSpec parsed(const std::string& notify) {
  return parse_spec(notify + R"(
cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24 } }
nodes:
  - { name: old, role: legacy, adopt: { host: 10.20.0.77, user: root, host_key: "SHA256:AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSz" } }
roles:
  legacy: { playbooks: [ base ] }
)");
}

NotifySpec good(const std::string& notify) {
  const ParsedSpec spec = parsed(notify);
  std::string all;
  for (const auto& error : spec.errors) all += to_string(error, "f") + "\n";
  INFO(all);
  REQUIRE(spec.errors.empty());
  return spec.spec.notify;
}

// The paths of all errors, with blanks between.
std::string paths(const std::string& notify) {
  std::string out;
  for (const auto& error : parsed(notify).errors) out += (out.empty() ? "" : " ") + error.path;
  return out;
}
std::string paths_of(const std::string& receiver) {
  std::string out = paths("notify: { receivers: { ops: " + receiver + " } }");
  const std::string front = "notify.receivers.ops";
  for (size_t at = out.find(front); at != out.npos; at = out.find(front, at))
    out.replace(at, front.size(), "ops");
  return out;
}

}  // namespace

TEST_CASE("notify: three ways to reach a receiver, with their defaults", "[spec]") {
  const NotifySpec spec = good(R"(notify:
  receivers:
    oncall:
      webhook: { url: "https://hooks.example:8443/x", shape: slack, proxy: "http://10.0.0.1:3128", headers: { Authorization: "secret:hook" } }
      quiet: "22:00-07:15"
      daily: "07:30"
    admins: { mail: { to: [ root, ops@site.example ], from: muster@site.example } }
    pager: { program: page, only_urgent: true }
)");
  REQUIRE(spec.receivers.size() == 3);
  const Receiver& oncall = spec.receivers.at("oncall");
  CHECK(oncall.way == ReceiverWay::webhook);
  CHECK(oncall.webhook.shape == WebhookShape::slack);
  CHECK(oncall.webhook.url == "https://hooks.example:8443/x");
  CHECK(oncall.webhook.proxy == "http://10.0.0.1:3128");
  CHECK(oncall.webhook.headers.at("Authorization") == "secret:hook");
  CHECK(oncall.quiet.from == 22 * 60);
  CHECK(oncall.quiet.until == 7 * 60 + 15);
  CHECK(oncall.daily == 7 * 60 + 30);
  CHECK(oncall.kinds.empty());
  CHECK_FALSE(oncall.only_urgent);
  const Receiver& admins = spec.receivers.at("admins");
  CHECK(admins.way == ReceiverWay::mail);
  CHECK(admins.mail.to == std::vector<std::string>{"root", "ops@site.example"});
  CHECK(admins.daily == -1);
  CHECK_FALSE(admins.quiet.contains(0));
  CHECK(spec.receivers.at("pager").program == "page");
  CHECK(spec.receivers.at("pager").only_urgent);
  CHECK(spec.urgent.count(cause_kind_word(CauseKind::rollout_stopped)) == 1);
  CHECK(good("").receivers.empty());
}

TEST_CASE("notify: kinds are those of causes, and `urgent` replaces the default", "[spec]") {
  for (const auto& [value, word] : kCauseKinds) {
    CAPTURE(word);
    const std::string kind(word);
    const NotifySpec spec =
        good(fmt::format("notify: {{ urgent: [ {0} ], receivers: {{ ops: {{ program: p, kinds: [ {0} ], "
                         "only_urgent: true }} }} }}",
                         kind));
    CHECK(spec.urgent == std::set<std::string>{kind});
    CHECK(spec.receivers.at("ops").kinds == std::set<std::string>{kind});
  }
  CHECK(paths("notify: { urgent: [ fire ] }") == "notify.urgent[0]");
  CHECK(paths_of("{ program: p, kinds: [ fire ] }") == "ops.kinds[0]");
  CHECK(paths_of("{ program: p, kinds: [ image_build ], only_urgent: true }") == "ops.kinds");
}

TEST_CASE("notify: a receiver is reached in exactly one way", "[spec]") {
  CHECK(paths_of("{ daily: \"07:30\" }") == "ops");
  CHECK(paths_of("{ program: p, mail: { to: [ root ] } }") == "ops");
  CHECK(paths("notify: { receivers: { Ops: { program: p } } }") == "notify.receivers.Ops");
  CHECK(paths_of("{ program: /bin/sh }") == "ops.program");
  CHECK(paths_of("{ program: p, colour: red }") == "ops.colour");
  std::string many = "notify:\n  receivers:\n";
  for (int i = 0; i < 17; ++i) many += fmt::format("    r{}: {{ program: p }}\n", i);
  CHECK(paths(many) == "notify.receivers");
}

TEST_CASE("notify: what a webhook may not be", "[spec]") {
  const auto of_webhook = [](const std::string& rest) { return paths_of("{ webhook: { " + rest + " } }"); };
  CHECK(of_webhook("shape: slack") == "ops.webhook");
  for (const char* url :
       {"hooks.example/x", "ftp://hooks.example/x", "https://", "https://user:pw@hooks.example/",
        "https://hooks.example/a b", "https://hooks.example/#x", "https://hooks.example:0/"}) {
    CAPTURE(url);
    CHECK(of_webhook(fmt::format("url: \"{}\"", url)) == "ops.webhook.url");
  }
  CHECK(of_webhook("url: \"secret:hook\"") == "");
  CHECK(of_webhook("url: \"secret:hook\", shape: irc") == "ops.webhook.shape");
  CHECK(of_webhook("url: \"secret:hook\", proxy: \"https://10.0.0.1\"") == "ops.webhook.proxy");
  CHECK(of_webhook("url: \"secret:hook\", proxy: \"http://u:p@10.0.0.1\"") == "ops.webhook.proxy");
  CHECK(of_webhook("url: \"secret:hook\", headers: { Authorization: hunter2 }") ==
        "ops.webhook.headers.Authorization");
  CHECK(of_webhook("url: \"secret:hook\", headers: { Host: \"secret:x\" }") == "ops.webhook.headers.Host");
}

TEST_CASE("notify: what mail and times may not be", "[spec]") {
  for (const char* to : {"-t", "a b", "a@b,c@d", "<a@b>", ""}) {
    CAPTURE(to);
    CHECK(paths_of(fmt::format("{{ mail: {{ to: [ \"{}\" ] }} }}", to)) == "ops.mail.to[0]");
  }
  CHECK(paths_of("{ mail: { to: [] } }") == "ops.mail.to");
  CHECK(paths_of("{ mail: { to: [ root ], from: \"a\\nBcc: b\" } }") == "ops.mail.from");
  for (const char* quiet : {"22-7", "22:00", "25:00-07:00", "22:60-07:00", "22:00-22:00", "-1:00-07:00"}) {
    CAPTURE(quiet);
    CHECK(paths_of(fmt::format("{{ program: p, quiet: \"{}\" }}", quiet)) == "ops.quiet");
  }
  CHECK(paths_of("{ program: p, daily: 7 }") == "ops.daily");
  CHECK(paths_of("{ program: p, daily: \"24:00\" }") == "ops.daily");
}
