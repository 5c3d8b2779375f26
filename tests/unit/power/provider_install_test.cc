// From a rented machine to one that hands over to the RAM system, over the lab's emulated API and a host that
// only remembers: whatever is lost, refused, lied about or killed, it is installed once.
#include "controller/power/provider/provider_install.h"

#include "base/digest.h"
#include "controller/power/sakura/sakura_phy.h"
#include "controller/trust/own_ssh_key.h"
#include "controller/trust/vault.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/phy_bench.h"

using namespace muster;
using testing::PhyBench;

namespace {

const Json kOrder = {{"image", PhyBench::kImage}, {"os", "debian-12"}, {"approval", "sha256:first"}};
Json approved_again() {
  Json order = kOrder;
  order["approval"] = "sha256:second";
  return order;
}

// gpu01, declared with this address or with none, and gpu07 where the API has the server of gpu01.
Spec two_nodes(const std::string& address) {
  Spec spec;
  spec.network.provisioning.cidr = "127.0.0.0/8";
  spec.nodes.resize(2);
  spec.nodes[0].name = "gpu01", spec.nodes[1].name = "gpu07";
  spec.nodes[0].address = address.empty() ? "127.0.0.9" : address;
  spec.nodes[0].address_chosen = address.empty();
  spec.nodes[1].address = "127.0.0.1";
  return spec;
}

// What answers SSH at the machine's address: the system before, then the one that was installed.
struct Host {
  PhyBench& bench;
  bool answered_before = true;  // the system before had an SSH server, too
  std::string os = "debian-12";
  bool answers = true;  // SSH, at all
  int refuses = 0;      // exit status of getting ready to hand over
  int64_t up = 5;       // seconds
  std::string boot = "22222222-2222-4222-8222-222222222222";
  int handed_over = 0;
  std::string job = {}, uploaded = {};
  std::function<void()> getting_ready = {};
  std::vector<std::string> commands = {};

  bool is_new() { return bench.installed.count(bench.ids[0]) > 0; }
  Result<std::string> key() {
    if (!answers || !bench.machine().running() || (!is_new() && !answered_before))
      return fail(Code::unavailable, "connection refused");
    // Each installation makes its own.
    return is_new() ? sha256(bench.keys_of[bench.ids[0]].front()) : std::string("SHA256:old");
  }
  Result<Output> run(const std::string& command, std::string_view input) {
    commands.push_back(command);
    Output out;
    out.exit_code = 0;
    if (command.find("os-release") != std::string::npos)
      out.out = "os " + os + "\nup " + std::to_string(up) + "\nboot " + boot + "\n";
    if (command.find("cat >") != std::string::npos) uploaded = std::string(input);
    if (command.find("hand-over --stdin") != std::string::npos) {
      job = std::string(input);
      out.exit_code = refuses;
      out.err = refuses ? "the kernel is locked down" : "";
      if (getting_ready) getting_ready();
    }
    if (command.find("hand-over --now") != std::string::npos) {
      ++handed_over;
      return fail(Code::timeout, "the connection ended");
    }
    return out;
  }
};

class Session : public SshSession {
 public:
  explicit Session(Host& host) : host_(host) {}
  Result<Output> run(const std::string& command, SshInput input, DurationMs) override {
    return host_.run(command, input.first);
  }

 private:
  Host& host_;
};

// Things happen before the order gets to the provider's driver, and behind it.
class Around : public Reinstall {
 public:
  Around(std::unique_ptr<Reinstall> inner, std::function<void()> before, std::function<void()> after)
      : inner_(std::move(inner)), before_(std::move(before)), after_(std::move(after)) {}
  Result<Ready> prepare(const std::string& image, DurationMs deadline) override {
    return inner_->prepare(image, deadline);
  }
  Status begin(const Order& order, DurationMs deadline) override {
    if (before_) before_();
    const Status begun = inner_->begin(order, deadline);
    if (after_) after_();
    return begun;
  }
  Result<Look> look(const std::string& server, DurationMs deadline) override {
    return inner_->look(server, deadline);
  }

 private:
  const std::unique_ptr<Reinstall> inner_;
  const std::function<void()> before_, after_;
};

struct Bench {
  PhyBench provider;
  Host host{provider};
  ManualReactor reactor;
  std::map<std::string, std::string> store;  // outlives the controller
  std::vector<std::string> reported;
  bool asked_before_written = false;
  int saves = 0;
  std::unique_ptr<ProviderInstall> service;
  std::optional<Status> result;
  int results = 0;
  std::function<void()> before_order = {}, after_order = {};
  std::string received = {};  // the boot id that muster heard last on this machine
  std::string leads_to = {};  // the node's address in place of the first server's id
  DeclaredAddresses declared = {"10.20.0.11", false, "10.20.0.0/24", {}};

  explicit Bench(int servers = 1) : provider(servers) {
    provider.machine().start();
    restart();
  }
  void restart() { service = std::make_unique<ProviderInstall>(reactor, hooks()); }

  ProviderInstall::Hooks hooks() {
    ProviderInstall::Hooks h;
    h.provider = [this](const std::string&) -> Result<std::function<Result<std::unique_ptr<Reinstall>>()>> {
      return std::function<Result<std::unique_ptr<Reinstall>>()>(
          [this]() -> Result<std::unique_ptr<Reinstall>> {
            PowerTarget at = provider.target();
            if (!leads_to.empty()) at.address = leads_to;
            return std::unique_ptr<Reinstall>(std::make_unique<Around>(
                make_phy_install(at, provider.account(at)), before_order, after_order));
          });
    };
    h.addresses = [this](const std::string&) { return declared; };
    h.known_boot = [this](const std::string&) { return received; };
    h.host_key = [this](const std::string&) { return host.key(); };
    h.connect = [this](const SshTarget& target) -> Result<std::unique_ptr<SshSession>> {
      const auto given = provider.keys_of[provider.ids[0]];
      const auto mine = public_ssh_key(target.private_key, "muster-install");
      REQUIRE(mine.ok());
      if (given != std::vector<std::string>{*mine}) return fail(Code::denied, "the key was refused");
      CHECK(target.user == "debian");
      CHECK(target.host_key == host.key().value_or(""));
      return std::unique_ptr<SshSession>(std::make_unique<Session>(host));
    };
    h.agent = [] { return Result<std::string>(std::string("agent program")); };
    h.offload = [this](Reactor::Task work, Reactor::Task done) {
      work();
      reactor.post(std::move(done));
    };
    h.power_on = [this](const std::string&, ProviderInstall::Done done) {
      const Status on = provider.driver()->on(kMinute);
      reactor.post([done, on] { done(on); });
    };
    h.leave_order = [this](const std::string&, std::function<void(Result<Json>)> done) {
      reactor.post([done] { done(Json{{"arguments", "muster.token=once"}}); });
    };
    h.load = [this](const std::string& node) -> Result<std::string> {
      if (!store.count(node)) return fail(Code::not_found, "none");
      return store[node];
    };
    h.save = [this](const std::string& node, const std::string& text, ProviderInstall::Done done) {
      if (!store.count(node)) asked_before_written = asked_before_written || installs() > 0;
      store[node] = text;
      ++saves;
      reactor.post([done] { done(Ok{}); });
    };
    h.erase = [this](const std::string& node) { store.erase(node); };
    h.note = [this](const std::string&, const std::string& what) { reported.push_back(what); };
    h.make_key = make_ssh_key;
    h.public_key = [](const std::string& key) { return public_ssh_key(key, "muster-install"); };
    return h;
  }
  int installs() { return provider.api.installs(provider.ids[0]); }
  void install(const Json& order = kOrder) {
    result.reset();
    service->install("gpu01", order, [this](Status status) {
      result = std::move(status);
      ++results;
    });
  }
  InstallRecord record() {
    REQUIRE(store.count("gpu01"));
    auto out = install_record_from(store["gpu01"]);
    REQUIRE(out.ok());
    return *out;
  }
  // Nothing more comes of it, and there is no key left to steal.
  bool is_spent() { return record().stage == "spent" && record().key.empty(); }
  void pass(DurationMs span) {
    for (DurationMs gone = 0; gone < span && !result; gone += kSecond) {
      provider.pass(kSecond);
      reactor.advance(kSecond);
    }
  }
  // The code that it ended with, within two hours; nothing where it ended well.
  std::optional<Code> ends() {
    pass(2 * 60 * kMinute);
    REQUIRE(result);
    if (result->ok()) return std::nullopt;
    UNSCOPED_INFO(result->error().message);
    return result->error().code;
  }
  void manners(const std::function<void(lab::PhyManners&)>& change) { provider.api.change(change); }
};

}  // namespace

TEST_CASE("phy install: intent, installation, new system, agent, RAM system", "[phy][install]") {
  Bench bench;
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
  CHECK_FALSE(bench.asked_before_written);
  CHECK(bench.host.handed_over == 1);
  CHECK(bench.host.uploaded == "agent program");
  CHECK(bench.host.job.find("muster.token=once") != std::string::npos);
  bench.service->run_over({"gpu01"});
  CHECK(bench.store.size() == 1);  // until the RAM system is there
  bench.service->joined("gpu01");
  CHECK(bench.store.size() == 1);  // until its run is over
  bench.service->run_over({"gpu01"});
  CHECK(bench.store.empty());
  CHECK(bench.results == 1);
  for (const HttpRequest& one : bench.provider.requests())
    if (one.path.find("os_install") != std::string::npos) {
      const Json body = *parse_json(one.body);
      CHECK(body["manual_partition"] == false);
      CHECK(body["allow_password_login"] == false);
    }
}

TEST_CASE("phy install: an answer that is lost is looked at, not asked for twice", "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.lost_answers = 1; });
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
  CHECK(bench.provider.seen_with("POST /cloud/api/dedicated-phy/1.0/servers/113100000001/os_install/") == 1);
  CHECK(bench.host.handed_over == 1);
}

TEST_CASE("phy install: an order that never arrived is given again, when nothing began", "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.lost_orders = 1; });
  bench.install();
  CHECK(bench.ends() == Code::failed);
  CHECK(bench.installs() == 0);
  CHECK(bench.host.handed_over == 0);
  CHECK(bench.store.empty());
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: a controller that is killed at any time goes on, and installs once",
          "[phy][install]") {
  for (DurationMs at = 0; at <= 90 * kSecond; at += 3 * kSecond) {
    INFO(at);
    Bench bench;
    bench.install();
    bench.pass(at);
    if (bench.result) break;  // it was over before
    bench.restart();
    bench.install();
    CHECK(bench.ends() == std::nullopt);
    CHECK(bench.installs() == 1);
    CHECK(bench.host.handed_over >= 1);
  }
}

TEST_CASE("phy install: killed after the order and before its answer, it looks before it asks",
          "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.lost_answers = 1; });
  bench.install();
  while (bench.installs() == 0) bench.pass(kSecond);
  bench.restart();
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: an installation that did nothing is not believed", "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.installs_nothing = true; });
  SECTION("the old system answers") {}
  SECTION("the old system never had a host key that was seen") { bench.host.answered_before = false; }
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.host.handed_over == 0);
  CHECK(bench.is_spent());
  bench.manners([](lab::PhyManners& m) { m.installs_nothing = false; });
  bench.install();
  CHECK(bench.ends() == Code::denied);  // the approval is used up
  CHECK(bench.installs() == 1);
  bench.install(approved_again());
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 2);
}

TEST_CASE("phy install: a 204 that nothing follows uses up the approval", "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.ignores_orders = true; });
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.host.handed_over == 0);
  CHECK(bench.is_spent());
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: a RAM system that joined and was lost leads to no second installation",
          "[phy][install]") {
  Bench bench;
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  bench.service->joined("gpu01");
  if (GENERATE(false, true)) bench.restart();
  SECTION("the installed system came back, and hands over again") {
    bench.install();
    CHECK(bench.ends() == std::nullopt);
    CHECK(bench.host.handed_over == 2);
  }
  SECTION("nothing came back") {
    bench.host.answers = false;
    bench.install();
    CHECK(bench.ends() == Code::denied);
    CHECK(bench.is_spent());
    bench.install();
    CHECK(bench.ends() == Code::denied);
    CHECK(bench.host.handed_over == 1);
  }
  SECTION("its hello comes while the installed system is looked for") {
    bench.host.answers = false;
    bench.install();
    bench.pass(kMinute);
    const size_t reported = bench.reported.size();
    bench.service->forget("gpu01");
    CHECK(bench.reported.size() == reported);
    bench.service->run_over({"gpu01"});
    CHECK(bench.store.empty());
  }
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: an order under another approval is continued, and uses up this one",
          "[phy][install]") {
  Bench bench;
  bench.install();
  bench.pass(10 * kSecond);
  REQUIRE(bench.installs() == 1);
  bench.service->forget("gpu01");
  bench.install(approved_again());
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
  bench.service->joined("gpu01");
  bench.host.answers = false;
  bench.install(approved_again());
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: without an approval the provider gets no request", "[phy][install]") {
  Bench bench;
  bench.install({{"image", PhyBench::kImage}, {"os", "debian-12"}});
  CHECK(bench.ends() == Code::invalid);
  CHECK(bench.provider.requests().empty());
}

TEST_CASE("phy install: refusals before anything began leave nothing behind", "[phy][install]") {
  Bench bench;
  Json order = kOrder;
  std::optional<Code> wanted;
  SECTION("people at the machine") {
    bench.manners([](lab::PhyManners& m) { m.locked_by_people = true; });
    wanted = Code::denied;
  }
  SECTION("another operation") {
    bench.manners([](lab::PhyManners& m) { m.conflicts = 1; });
    wanted = Code::conflict;
  }
  SECTION("no such image") {
    order["image"] = "debian99";
    wanted = Code::invalid;
  }
  SECTION("an image that takes no keys") {
    order["image"] = "windows";
    wanted = Code::invalid;
  }
  SECTION("the quota is used up") {
    bench.manners([](lab::PhyManners& m) { m.throttled = 1, m.retry_after = 30 * kMinute; });
    wanted = Code::unavailable;
  }
  bench.service->install("gpu01", order, [&](Status status) { bench.result = std::move(status); });
  CHECK(bench.ends() == wanted);
  CHECK(bench.installs() == 0);
  CHECK(bench.store.empty());
}

TEST_CASE("phy install: another system than the declared one is not handed over", "[phy][install]") {
  Bench bench;
  bench.host.os = "ubuntu-24.04";
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.result->error().message.find("ubuntu-24.04") != std::string::npos);
  CHECK(bench.host.handed_over == 0);
  CHECK(bench.is_spent());
}

TEST_CASE("phy install: a system that ran before the request is not the new one", "[phy][install]") {
  Bench bench;
  bench.host.up = 100'000;
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.host.handed_over == 0);
}

TEST_CASE("phy install: a boot that muster heard before the request is not the new system's",
          "[phy][install]") {
  Bench bench;
  bench.received = bench.host.boot;  // a young one: its uptime says nothing
  if (GENERATE(false, true)) {
    bench.install();
    bench.pass(10 * kSecond);
    bench.restart();
    bench.received.clear();  // what was written down counts
  }
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.host.handed_over == 0);
  CHECK(bench.is_spent());
}

TEST_CASE("phy install: a system in another boot than the one before is the new one", "[phy][install]") {
  Bench bench;
  bench.received = "11111111-1111-4111-8111-111111111111";
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.host.handed_over == 1);
}

TEST_CASE("phy install: a system that does not say which boot it runs proves nothing", "[phy][install]") {
  Bench bench;
  bench.host.boot = GENERATE(as<std::string>{}, "", "none");
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.host.handed_over == 0);
}

TEST_CASE("phy install: an installation after which nothing answers is none", "[phy][install]") {
  Bench bench;
  bench.host.answers = false;
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.installs() == 1);
  CHECK(bench.is_spent());
}

TEST_CASE("phy install: a record from before boot ids were kept is read", "[phy][install]") {
  InstallRecord record;
  record.server = "113100000001", record.stage = "accepted";
  auto old = parse_json(to_text(record));
  REQUIRE(old.ok());
  old->erase("old_boot_id");
  CHECK(install_record_from(old->dump()).value().old_boot_id.empty());
}

TEST_CASE("phy install: a machine that is left off is switched on", "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.leaves_off = true; });
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.provider.api.orders(bench.provider.ids[0]) == 1);
}

TEST_CASE("phy install: an installation whose lock was not seen is found by its system", "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.shows_no_lock = true; });
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: a system that may not hand over is no reason to install it again", "[phy][install]") {
  Bench bench;
  bench.host.refuses = 4;
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.host.handed_over == 0);
}

TEST_CASE("phy install: a RAM system that did not join is started again from the same system",
          "[phy][install]") {
  Bench bench;
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.host.handed_over == 2);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: a record of another image than the declared one is not gone on with",
          "[phy][install]") {
  Bench bench;
  bench.install();
  bench.pass(10 * kSecond);
  REQUIRE(bench.installs() == 1);
  REQUIRE_FALSE(bench.result);
  bench.restart();
  Json other = approved_again();
  SECTION("image") { other["image"] = "debian13-x86_64"; }
  SECTION("system") { other["os"] = "debian-13"; }
  const auto request = [&] {
    bench.result.reset();
    bench.service->install("gpu01", other, [&](Status status) { bench.result = std::move(status); });
  };
  request();
  CHECK(bench.ends() == Code::unavailable);  // the provider is still at work with the first one
  CHECK(bench.installs() == 1);
  CHECK(bench.host.handed_over == 0);
  if (other["image"] != kOrder["image"]) return;
  bench.provider.pass(kMinute);
  bench.host.os = "debian-13";
  request();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 2);
}

TEST_CASE("phy install: a record of another server is not gone on with, and nothing is switched",
          "[phy][install]") {
  for (const char* stage : {"intended", "accepted", "ended"}) {
    INFO(stage);
    Bench bench(2);
    bench.provider.machine(1).cut_power();
    InstallRecord record;
    record.server = bench.provider.ids[1];  // gpu01 is declared as ids[0]
    record.image = kOrder["image"].get<std::string>(), record.os = kOrder["os"].get<std::string>();
    record.key = *make_ssh_key();
    record.stage = stage;
    record.approval = kOrder["approval"].get<std::string>();
    bench.store["gpu01"] = to_text(record);
    bench.install();
    CHECK(bench.ends() == Code::denied);
    CHECK(bench.installs() == 0);
    CHECK(bench.provider.seen_with("POST ") == 0);
    CHECK(bench.host.handed_over == 0);
    CHECK(bench.store.size() == 1);
  }
}

TEST_CASE("phy install: the server that was written down is installed, or none", "[phy][install]") {
  Bench bench(2);
  bench.leads_to = "gpu1";
  // The nickname moves to another server between the look and the order.
  bench.before_order = [&] {
    bench.provider.pass(kSecond);  // or the list would be the one of the look
    lab::PhyMachine first, second;
    first.id = bench.provider.ids[0], first.nickname = "gpu9";
    second.id = bench.provider.ids[1], second.nickname = "gpu1";
    first.machine = &bench.provider.machine(0), second.machine = &bench.provider.machine(1);
    bench.provider.api.add(first);
    bench.provider.api.add(second);
  };
  bench.install();
  CHECK(bench.ends() == Code::denied);
  CHECK(bench.provider.seen_with("POST ") == 0);
  CHECK(bench.store.empty());
}

TEST_CASE("phy install: a server at another address than the node's is another server, and is not installed",
          "[phy][install]") {
  Bench bench;  // whose server the API has at 127.0.0.1
  bench.declared = declared_addresses(two_nodes("127.0.0.2"), "gpu01");
  SECTION("in the network of the nodes") { bench.declared.others.clear(); }
  SECTION("at the address of another node") { bench.declared.network = "10.20.0.0/24"; }
  bench.install();
  REQUIRE(bench.ends() == Code::denied);
  CHECK(bench.provider.seen_with("POST ") == 0);
  CHECK(bench.saves == 0);  // no intent
  CHECK(bench.installs() == 0);
  for (const char* named : {"127.0.0.1", "127.0.0.2", "113100000001", "gpu01", "power.address"}) {
    INFO(named);
    CHECK(bench.result->error().message.find(named) != std::string::npos);
  }
  bench.declared.own = "127.0.0.1";  // corrected
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: an address that proves nothing refuses no installation", "[phy][install]") {
  Bench bench;
  SECTION("muster chose the node's") { bench.declared = declared_addresses(two_nodes(""), "gpu01"); }
  SECTION("the node is not in the spec any more") {
    bench.declared = declared_addresses(two_nodes("127.0.0.2"), "gpu09");
  }
  SECTION("the API has one of another network") { bench.declared.own = "10.20.0.12"; }
  SECTION("the API has none") {
    bench.declared = declared_addresses(two_nodes("127.0.0.2"), "gpu01");
    bench.provider.after = [](const HttpRequest& request, HttpResponse& response) {
      auto body = parse_json(response.body);
      if (request.method != "GET" || !body.ok() || !body->contains("servers")) return;
      for (Json& one : (*body)["servers"]) one["ipv4"] = nullptr;
      response.body = body->dump();
    };
  }
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
  if (bench.provider.after) CHECK(bench.record().address == "127.0.0.2");
}

TEST_CASE("phy install: nothing waits any more: nothing new is requested", "[phy][install]") {
  Bench bench;
  bench.install();
  bench.service->forget("gpu01");
  bench.pass(10 * kMinute);
  CHECK(bench.installs() == 0);
  CHECK(bench.results == 0);
}

TEST_CASE("phy install: called off, the order is not sent, however far it had come", "[phy][install]") {
  Bench bench;
  const auto call_off = [&] { bench.service->forget("gpu01"); };
  SECTION("before the driver has it") { bench.before_order = call_off; }
  SECTION("while the list is read right before it") {
    bench.before_order = [&] { bench.provider.pass(kSecond); };
    bench.provider.on_request = [&](const HttpRequest& request) {
      const bool looks_again =
          bench.store.count("gpu01") && request.path.find("/servers/") != std::string::npos;
      if (request.method == "GET" && looks_again) call_off();
    };
  }
  bench.install();
  bench.pass(10 * kMinute);
  CHECK(bench.installs() == 0);
  CHECK(bench.provider.seen_with("POST ") == 0);
  CHECK(bench.results == 0);
  CHECK(bench.store.empty());  // nothing was requested, so nothing waits for it ten minutes
  CHECK_FALSE(bench.reported.empty());
  bench.before_order = {}, bench.provider.on_request = {};
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: an order that was sent before it was called off is reported, and found again",
          "[phy][install]") {
  Bench bench;
  SECTION("its answer is under way") {
    bench.after_order = [&] { bench.service->forget("gpu01"); };
  }
  SECTION("and is lost") {
    bench.manners([](lab::PhyManners& m) { m.lost_answers = 1; });
    bench.after_order = [&] { bench.service->forget("gpu01"); };
  }
  bench.install();
  bench.pass(kMinute);
  CHECK(bench.installs() == 1);
  CHECK(bench.results == 0);
  REQUIRE_FALSE(bench.reported.empty());
  CHECK(bench.reported.back().find("cancelled") != std::string::npos);
  CHECK(bench.store.size() == 1);
  bench.after_order = {};
  bench.restart();
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.installs() == 1);
}

TEST_CASE("phy install: called off, the new system is not told to hand over", "[phy][install]") {
  Bench bench;
  bench.host.getting_ready = [&] { bench.service->forget("gpu01"); };
  bench.install();
  bench.pass(10 * kMinute);
  CHECK(bench.installs() == 1);
  CHECK(bench.host.handed_over == 0);
  CHECK(bench.results == 0);
}

TEST_CASE("phy install: a permit is settled once", "[phy][install]") {
  Permit taken, withdrawn;
  CHECK(taken.take());
  CHECK_FALSE(taken.take());
  CHECK_FALSE(taken.withdraw());
  CHECK(withdrawn.withdraw());
  CHECK(withdrawn.withdraw());
  CHECK_FALSE(withdrawn.take());
}

TEST_CASE("phy install: keys and tokens are in no message", "[phy][install]") {
  Bench bench;
  bench.manners([](lab::PhyManners& m) { m.lost_answers = 1; });
  bench.install();
  CHECK(bench.ends() == std::nullopt);
  CHECK(bench.reported.size() >= 3);
  for (const std::string& text : bench.reported) {
    CHECK(text.find("PRIVATE") == std::string::npos);
    CHECK(text.find("ssh-ed25519") == std::string::npos);
    CHECK(text.find(PhyBench::kSecret) == std::string::npos);
    CHECK(text.find("token") == std::string::npos);
  }
}
