// What a spec would change is answered from what is known: nothing is stored, built or requested of nodes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "cli/cli_context.h"
#include "controller/link/link_hub.h"
#include "controller/spec/carry.h"
#include "sys/zone_files.h"
#include "tests/fakes/muster_command.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;
using testing::muster_command;

namespace {

constexpr const char* kTwoRoles = R"(cluster: gaggle
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc: { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W ops" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud }
nodes:
  - name: node[01-02]
    role: cpu
    power: { driver: redfish, address: "10.20.1.1{n}", secret: bmc }
    mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02" ]
    image: cpu
    disks: { os: { match: { serial: "OS*", count: 1 } } }
  - name: login01
    role: login
    power: { driver: redfish, address: 10.20.1.21, secret: bmc }
    mac: "52:54:00:20:00:03"
    image: cpu
    disks: { os: { match: { serial: "OS*", count: 1 } } }
roles:
  cpu: { playbooks: [ base ] }
  login: { playbooks: [ base ] }
packages: [ htop ]
acceptance: { profile: lab }
)";

std::string with_tmux() {
  std::string text = kTwoRoles;
  const std::string role = "login: { playbooks: [ base ] }";
  return text.replace(text.find(role), role.size(), "login: { playbooks: [ base ], packages: [ tmux ] }");
}

// With a playbook that needs a variable which the spec lacks.
std::string with_missing_variable() {
  std::string text = kTwoRoles;
  const std::string role = "cpu: { playbooks: [ base ] }";
  text.replace(text.find(role), role.size(), "cpu: { playbooks: [ base, greeting ] }");
  text += "playbooks: [ greeting.yaml ]\n";
  const std::string own =
      "playbook: greeting\nsteps:\n  - name: motd\n    module: file\n"
      "    params: { path: /etc/motd, content: \"{{vars.greeting}}\\n\" }\n";
  return carry_playbooks(text, {{"greeting.yaml", own}}).value();
}

// Nothing to build, and nothing to do: the host was never adopted.
constexpr const char* kHost = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24 } }
nodes:
  - { name: old, role: legacy, adopt: { host: 10.20.0.77, user: root, host_key: "SHA256:AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSz" } }
roles:
  legacy: { playbooks: [ base ] }
)";

struct Previewing : Controller {
  Previewing() : Controller(source_dir() + "/playbooks", "/bin/true", "", source_dir() + "/images") {
    REQUIRE(call_as(1000, "PUT", "/v1/spec", kTwoRoles).status == 200);
  }
  HttpResponse preview(const Json& request) {
    return call(Listener::local, "POST", "/v1/spec/preview", request.dump());
  }
  // As its last run left it: accepted, and its agent reports.
  void at_work(const std::string& node) {
    const auto set = [node](NodeRow& row) {
      row.state = NodeState::accepted;
      row.image_digest = "sha256:older";
      row.config_digest = "sha256:configured";
      row.product_uuid = "uuid-" + node;
      row.facts = dump_ascii(to_json(*testing::installed(node).facts));
      row.facts_time = 1000;
    };
    on_reactor([&] {
      Executor& executor = services().bringup.executor();
      executor.set_node(NodeName(node), set);
      Hello hello;
      hello.node = NodeName(node);
      hello.mode = wire::Mode::installed;
      hello.boot_id = "boot-" + node;
      hello.image_digest = Digest("sha256:older");
      executor.on_hello(hello);
    });
    settle();
  }
  // All that a preview must not change.
  Json kept() {
    settle();
    size_t events = 0;
    const Json list = get("/v1/events/list");
    for (const Json& event : list["events"]) events += event.value("kind", "").empty() ? 0 : 1;
    const bool images = std::filesystem::exists(state() + "/images");
    Json rows = Json::array();
    on_reactor([&] {
      for (const auto& [name, row] : services().bringup.executor().node_rows())
        rows.push_back({name, to_string(row.state), row.config_digest, row.facts.text()});
    });
    return {{"specs", get("/v1/specs")}, {"runs", get("/v1/runs")}, {"events", events},
            {"images", images},          {"nodes", rows},           {"power", get("/v1/status")["run"]}};
  }
  // The order that waits for the node's agent, or comes.
  wire::WorkOrder order_of(const std::string& node) {
    std::promise<wire::PollReply> reply;
    auto answer = reply.get_future();
    on_reactor([&] {
      services().link.poll(NodeName(node), {}, [&](const wire::PollReply& r) { reply.set_value(r); },
                           {"boot-" + node});
    });
    REQUIRE(answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    const auto orders = answer.get().orders;
    REQUIRE(orders.size() == 1);
    return orders[0];
  }
  // The agent finds that the order's first step is not as declared, and the others are.
  void answer(const std::string& node, const wire::WorkOrder& order) {
    wire::EventBatch batch{"boot-" + node, "agent", {}};
    const auto say = [&](const std::string& kind, const Json& data) {
      wire::Event event;
      event.seq = batch.events.size() + 1;
      event.order = order.id;
      event.kind = kind;
      event.data = data;
      batch.events.push_back(event);
    };
    const char* status = "failed";
    for (const Json& step : order.params["steps"]) {
      say("step", {{"step", step["id"]}, {"status", status}, {"message", "m"}, {"diff", "-a\n+b\n"}});
      status = "already";
    }
    say("finished", {{"ok", false}, {"message", "m"}});
    on_reactor([&] { services().link.take(NodeName(node), batch, [](Result<uint64_t>) {}); });
  }
  // True if an order waits for the node's agent.
  bool is_ordered(const std::string& node) {
    bool answered = false;
    on_reactor([&] {
      services().link.poll(NodeName(node), {},
                           [&](const wire::PollReply& reply) { answered = !reply.orders.empty(); },
                           {"boot-" + node});
      services().link.hang_up(NodeName(node));
    });
    return answered;
  }
};

// Tests run without a terminal on standard input, or with one that they must not read.
struct NoInput {
  NoInput() : saved(::dup(STDIN_FILENO)) {
    const int none = ::open("/dev/null", O_RDONLY);
    ::dup2(none, STDIN_FILENO);
    ::close(none);
  }
  ~NoInput() {
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
  }
  int saved;
};

Json node_in(const Json& plan, const std::string& name) {
  for (const Json& node : plan["nodes"])
    if (node["node"] == name) return node;
  FAIL("the plan has no node " << name);
  return {};
}

}  // namespace

TEST_CASE("a preview has the changed steps per node, and leaves everything as it was", "[api][preview]") {
  Previewing c;
  for (const char* node : {"node01", "node02", "login01"}) c.at_work(node);
  const Json before = c.kept();
  const Json preview = c.good(c.preview({{"spec", with_tmux()}, {"file", "new.yaml"}}));
  CHECK(c.kept() == before);
  for (const char* node : {"node01", "node02", "login01"}) CHECK_FALSE(c.is_ordered(node));

  CHECK(preview["revision"] == 1);
  CHECK(preview["coming"] == 2);
  CHECK(preview["unchanged"] == false);
  CHECK(has(preview["diff"].get<std::string>(), "+  login: { playbooks: [ base ], packages: [ tmux ] }"));
  REQUIRE(preview["plans"].size() == 1);
  const Json& plan = preview["plans"][0];
  CHECK(plan["kind"] == "apply");
  CHECK(plan["destroys"].empty());
  const Json login = node_in(plan, "login01");
  CHECK(login["work"] == "configure");
  CHECK(login["accepted_again"] == true);
  CHECK(login["facts_time"] == 1000);
  REQUIRE(login["compared"] == true);
  REQUIRE(login["steps"].size() == 1);
  CHECK(has(login["steps"][0].value("diff", ""), "tmux"));
  // The other role's nodes are not as they were configured either, but no step of theirs differs.
  REQUIRE(node_in(plan, "node01")["compared"] == true);
  CHECK(node_in(plan, "node01")["steps"].empty());
}

TEST_CASE("a node that the stored spec refuses is not compared, and the others are", "[api][preview]") {
  Previewing c;
  std::string stored = kTwoRoles;
  stored.replace(stored.rfind("OS*"), 3, "XX*");  // login01 has no such disk
  REQUIRE(c.call_as(1000, "PUT", "/v1/spec", stored).status == 200);
  for (const char* node : {"node01", "node02", "login01"}) c.at_work(node);
  const Json preview = c.good(c.preview({{"spec", with_tmux()}}));
  REQUIRE(preview["plans"].size() == 1);
  const Json& plan = preview["plans"][0];
  CHECK(node_in(plan, "login01")["compared"] == false);
  CHECK(node_in(plan, "node01")["compared"] == true);
  CHECK(node_in(plan, "node02")["compared"] == true);
}

TEST_CASE("with `live` agents check their steps, and who is not checked is named", "[api][preview]") {
  Previewing c;
  c.at_work("node01");
  c.at_work("login01");
  const Json rows = c.kept()["nodes"];
  const auto sent =
      c.send(Listener::local, "POST", "/v1/spec/preview", Json{{"spec", with_tmux()}, {"live", true}}.dump());
  for (const char* node : {"login01", "node01"}) {
    const auto order = c.order_of(node);
    CHECK(order.params["mode"] == "check");
    REQUIRE(order.params["steps"].size() > 1);
    for (const Json& step : order.params["steps"])
      CHECK_FALSE(step["module"].get<std::string>().starts_with("accept"));
    c.answer(node, order);
  }
  REQUIRE(sent->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  const Json live = c.good(sent->answer.get())["live"];
  REQUIRE(live.size() == 3);
  for (const Json& node : live) {
    const bool checked = node["node"] != "node02";
    CHECK((node["error"] == "") == checked);
    CHECK(node["steps"].size() == (checked ? 1u : 0u));
    CHECK((node["as_declared"].get<int>() > 0) == checked);
  }
  CHECK(c.kept()["nodes"] == rows);
  c.start_a_run("node01");
  CHECK(c.preview({{"spec", with_tmux()}, {"live", true}}).status == 409);
}

TEST_CASE("a preview names what is not there yet: images, secrets, nodes to discover", "[api][preview]") {
  Previewing c;
  c.at_work("node01");
  const Json preview = c.good(c.preview({{"spec", with_tmux()}}));
  REQUIRE(preview["images"].size() == 1);
  CHECK(preview["images"][0]["name"] == "cpu");
  CHECK(preview["images"][0].value("error", "") == "");
  CHECK(preview["first_plan"] == "");  // known once it is built
  CHECK(preview["digest"] != "");
  REQUIRE(preview["secrets"].size() == 1);
  CHECK(preview["secrets"][0]["name"] == "bmc");
  CHECK(preview["secrets"][0]["nodes"] == Json::array({"login01", "node01", "node02"}));
  REQUIRE(preview["plans"].size() == 2);
  CHECK(preview["plans"][0]["kind"] == "discover");
  CHECK(preview["plans"][0]["nodes"].size() == 2);
  CHECK(node_in(preview["plans"][1], "node01")["work"] == "configure");
  REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:password").status == 200);
  CHECK(c.good(c.preview({{"spec", with_tmux()}}))["secrets"].empty());
}

TEST_CASE("the error of a plan after the first is in the preview", "[api][preview]") {
  Previewing c;
  c.at_work("node01");
  const Json plans = c.good(c.preview({{"spec", with_missing_variable()}}))["plans"];
  REQUIRE(plans.size() == 2);
  CHECK(plans[0]["kind"] == "discover");
  CHECK(plans[0].value("error", "") == "");
  CHECK(has(plans[1].value("error", ""), "vars.greeting"));
  CHECK(plans[1]["refusals"].empty());
}

TEST_CASE("plan SPEC ends with 4 if a plan after the first cannot be made", "[cli][preview]") {
  Previewing c;
  c.open();
  c.at_work("node01");
  const TempDir dir;
  dir.write("new.yaml", with_missing_variable());
  const auto plan = muster_command({"plan", dir.path("new.yaml"), "--socket", c.socket()});
  CHECK(plan.exit == cli::kRefused);
  CHECK(has(plan.out, "vars.greeting"));
  CHECK_FALSE(has(plan.out, "Nothing will be destroyed"));
}

TEST_CASE("up stores and builds nothing if it would stop afterwards", "[cli][preview]") {
  Previewing c;
  c.open();
  c.at_work("node01");
  const TempDir dir;
  std::string why = "some nodes cannot be planned", text = with_missing_variable();
  std::vector<std::string> more;
  SECTION("a plan that cannot be made") {}
  SECTION("a refusal") {
    // The stored `up` stops for a node that is named and quarantined by an operator.
    c.on_reactor([&] {
      c.services().bringup.executor().set_node(NodeName("node01"), [](NodeRow& row) {
        row.state = NodeState::quarantined;
        row.held_by = HeldBy::an_operator;
      });
    });
    why = "node01 is refused: ", text = with_tmux(), more = {"--limit", "node01"};
  }
  dir.write("new.yaml", text);
  const Json before = c.kept();
  std::vector<std::string> words = {"up", dir.path("new.yaml"), "--yes", "--socket", c.socket()};
  words.insert(words.end(), more.begin(), more.end());
  const auto up = muster_command(words);
  CHECK(up.exit == cli::kRefused);
  CHECK(has(up.err, "nothing was stored or built: " + why));
  const Json after = c.kept();
  CHECK(after["specs"] == before["specs"]);
  CHECK(after["runs"] == before["runs"]);
  CHECK(after["images"] == before["images"]);
}

TEST_CASE("without a text the stored spec is previewed", "[api][preview]") {
  Previewing c;
  const Json preview = c.good(c.preview(Json::object()));
  CHECK(preview["unchanged"] == true);
  CHECK(preview["coming"] == 1);
  CHECK(preview["diff"] == "");
  Controller empty;
  const auto none = empty.call(Listener::local, "POST", "/v1/spec/preview", "{}");
  CHECK(none.status == 404);
  CHECK(has(none.body, "muster up SPEC"));
}

TEST_CASE("a preview of what could not be stored is refused like the storing", "[api][preview]") {
  Previewing c;
  std::string text = kTwoRoles;
  const auto wrong =
      c.preview({{"spec", text.replace(text.find("cluster"), 7, "clutser")}, {"file", "f.yaml"}});
  CHECK(wrong.status == 422);
  const Json body = parse_json(wrong.body).value();
  REQUIRE_FALSE(body["errors"].empty());
  CHECK(body["errors"][0]["file"] == "f.yaml");
  CHECK(c.preview({{"spec", kTwoRoles}, {"nodes", Json::array({"node09"})}}).status == 422);
  CHECK(c.preview({{"surprise", 1}}).status == 422);
  CHECK(c.call(Listener::tls, "POST", "/v1/spec/preview", "{}").status == 401);
  CHECK(c.get("/v1/specs")["specs"].size() == 1);
}

TEST_CASE("a preview has the warnings of spec check, but those that the spec silences", "[api][preview]") {
  Previewing c;
  std::string text = kTwoRoles;
  text.insert(text.find("  cpu: { recipe"), "  spare: { recipe: debian-12, kernel: cloud }\n");
  const auto unused = [&](const std::string& more) {
    Json out = Json::array();
    const Json preview = c.good(c.preview({{"spec", text + more}, {"file", "new.yaml"}}));
    for (const Json& one : preview["warnings"])
      if (one["code"] == "image-unused") out.push_back(one);
    return out;
  };
  const Json found = unused("");
  REQUIRE(found.size() == 1);
  CHECK(found[0]["file"] == "new.yaml");
  CHECK(found[0]["path"] == "images.spare");
  CHECK(found[0]["line"] == 8);
  CHECK(found[0]["remedy"] != "");
  CHECK(unused("warnings: { silence: [ image-unused ] }\n").empty());
}

TEST_CASE("a spec with a time zone that does not exist is offered in vain", "[api][preview]") {
  Previewing c;
  const std::string text = kTwoRoles + std::string("time_zone: Europe/Berln\n");
  const auto preview = c.preview({{"spec", text}});
  CHECK(has(preview.body, "time_zone"));
  if (!has_zones(Files())) {  // the controller cannot tell, and says so
    CHECK(has(preview.body, "time-zone-unchecked"));
    return;
  }
  CHECK(preview.status == 422);
  CHECK(parse_json(preview.body).value()["errors"][0]["path"] == "time_zone");
  CHECK(c.call(Listener::local, "POST", "/v1/doctor", text).status == 422);
  CHECK(c.call_as(1000, "PUT", "/v1/spec", text).status == 422);
  CHECK(c.get("/v1/spec")["revision"] == 1);
}

TEST_CASE("the revision that a preview names is the one that is stored", "[api][preview]") {
  Previewing c;
  for (int i = 0; i < 3; ++i) CHECK(c.good(c.preview({{"spec", with_tmux()}}))["coming"] == 2);
  CHECK(c.good(c.call(Listener::local, "PUT", "/v1/spec", with_tmux()))["revision"] == 2);
  CHECK(c.good(c.preview({{"spec", kTwoRoles}}))["coming"] == 3);
}

TEST_CASE("the digest of a preview covers the text, the images and the plans", "[api][preview]") {
  Previewing c;
  c.at_work("node01");
  const auto digest_of = [&](const std::string& text) {
    return c.good(c.preview({{"spec", text}}))["digest"].get<std::string>();
  };
  const std::string first = digest_of(with_tmux());
  CHECK(first != "");
  CHECK(digest_of(with_tmux()) == first);
  CHECK(digest_of(with_tmux() + "# no plan has this\n") != first);
  c.at_work("node02");
  CHECK(digest_of(with_tmux()) != first);
  CHECK(digest_of(with_missing_variable()) == "");
}

TEST_CASE("up SPEC --approve stores the text that was previewed, and no other", "[cli][preview]") {
  Previewing c;
  c.open();
  const TempDir dir;
  const std::string file = dir.path("host.yaml");
  dir.write("host.yaml", kHost);
  const auto muster = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--json", "--socket", c.socket()});
    return muster_command(words);
  };
  const Json plan = parse_json(muster({"plan", file}).out).value();
  const std::string digest = text_at(plan, "digest");
  dir.write("host.yaml", kHost + std::string("packages: [ htop ]\n"));
  CHECK(muster({"up", file, "--approve", digest}).exit == cli::kRefused);
  CHECK(c.get("/v1/spec")["revision"] == 1);
  dir.write("host.yaml", kHost);
  CHECK(muster({"up", file, "--approve", digest}).exit == cli::kPartial);  // the host is left out
  CHECK(c.get("/v1/spec")["text"] == kHost);
}

TEST_CASE("a spec is not stored over a revision that its preview did not show", "[api][preview]") {
  Previewing c;
  const auto put = [&](const std::string& text, const std::string& query) {
    return c.call_as(1000, "PUT", "/v1/spec" + query, text);
  };
  const int64_t shown = c.good(c.preview({{"spec", with_tmux()}}))["revision"].get<int64_t>();
  CHECK(c.good(put(std::string(kTwoRoles) + "# anna's\n", "?after=1"))["revision"] == 2);
  const auto late = put(with_tmux(), "?after=" + std::to_string(shown));
  CHECK(late.status == 409);
  CHECK(has(late.body, "revision 2 was stored by anna meanwhile"));
  CHECK(c.get("/v1/spec")["revision"] == 2);
  // The same text is there already: nothing is lost.
  CHECK(c.good(put(std::string(kTwoRoles) + "# anna's\n", "?after=1"))["unchanged"] == true);
  CHECK(c.good(put(with_tmux(), "?after=2"))["revision"] == 3);
  CHECK(c.good(put(kTwoRoles, ""))["revision"] == 4);
  Controller empty(source_dir() + "/playbooks", "/bin/true");
  CHECK(empty.call_as(1000, "PUT", "/v1/spec?after=3", kTwoRoles).status == 409);
  CHECK(empty.call_as(1000, "PUT", "/v1/spec?after=0", kTwoRoles).status == 200);
}

TEST_CASE("up without an approval, plan SPEC and up --dry-run leave the old revision", "[cli][preview]") {
  const NoInput none;
  Previewing c;
  c.open();
  const TempDir dir;
  dir.write("new.yaml", with_tmux());
  const std::string file = dir.path("new.yaml");
  const Json before = c.kept();
  const auto stored = [](const Json& kept) {
    return Json{{"specs", kept["specs"]}, {"runs", kept["runs"]}, {"images", kept["images"]}};
  };
  const auto up = muster_command({"up", file, "--socket", c.socket()});
  CHECK(up.exit == cli::kRefused);
  CHECK(has(up.out, "packages: [ tmux ]"));
  const auto plan = muster_command({"plan", file, "--json", "--socket", c.socket()});
  CHECK(plan.exit == cli::kAccepted);
  CHECK(parse_json(plan.out).value()["coming"] == 2);
  CHECK(muster_command({"up", file, "--dry-run", "--socket", c.socket()}).exit == cli::kAccepted);
  const auto approved =
      muster_command({"up", file, "--approve", std::string(64, '0'), "--socket", c.socket()});
  CHECK(approved.exit == cli::kRefused);
  CHECK(muster_command({"plan", file, "--kind", "reimage", "--socket", c.socket()}).exit == cli::kUsage);
  CHECK(stored(c.kept()) == stored(before));
}

TEST_CASE("an empty file is not taken for the stored spec", "[cli][preview]") {
  const NoInput none;
  Previewing c;
  c.open();
  const TempDir dir;
  dir.write("empty.yaml", "");
  const std::string file = dir.path("empty.yaml");
  const Json before = c.kept();
  const std::vector<std::vector<std::string>> commands = {
      {"up", file, "--yes"}, {"plan", file}, {"spec", "diff", file}, {"doctor", file}};
  for (std::vector<std::string> words : commands) {
    CAPTURE(words[0]);
    words.insert(words.end(), {"--socket", c.socket()});
    const auto ran = muster_command(words);
    CHECK(ran.exit == cli::kUsage);
    CHECK(has(ran.err, "empty.yaml is empty"));
  }
  CHECK(c.kept() == before);
}

TEST_CASE("spec diff, history and rollback", "[cli][preview]") {
  const NoInput none;
  Previewing c;
  c.open();
  const TempDir dir;
  dir.write("new.yaml", with_tmux());
  const auto muster = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--json", "--socket", c.socket()});
    return muster_command(words);
  };
  const Json diff = parse_json(muster({"spec", "diff", dir.path("new.yaml")}).out).value();
  CHECK(diff["unchanged"] == false);
  CHECK(has(diff["diff"].get<std::string>(), "tmux"));
  REQUIRE(c.call_as(0, "PUT", "/v1/spec", with_tmux()).status == 200);
  CHECK(parse_json(muster({"spec", "diff", dir.path("new.yaml")}).out).value()["unchanged"] == true);
  CHECK(muster({"spec", "rollback", "1"}).exit == cli::kUsage);
  CHECK(muster({"spec", "rollback", "9", "--yes"}).exit == cli::kUsage);
  CHECK(c.get("/v1/spec")["revision"] == 2);
  const auto back = muster({"spec", "rollback", "1", "--yes"});
  CHECK(back.exit == cli::kAccepted);
  CHECK(parse_json(back.out).value()["revision"] == 3);
  CHECK(c.get("/v1/spec")["revision"] == 3);
  CHECK(c.get("/v1/spec")["text"] == kTwoRoles);
  CHECK(parse_json(muster({"spec", "rollback", "1", "--yes"}).out).value()["unchanged"] == true);
  const Json history = parse_json(muster({"spec", "history"}).out).value()["specs"];
  REQUIRE(history.size() == 3);
  std::vector<std::string> callers;
  for (const Json& row : history) {
    callers.push_back(row["caller"].get<std::string>());
    CHECK(row["time"].get<TimeMs>() > 0);
  }
  CHECK(std::count(callers.begin(), callers.end(), "anna") == 1);
  CHECK(std::count(callers.begin(), callers.end(), "root") >= 1);
}
