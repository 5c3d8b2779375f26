// A firewall that is not empty when muster comes.
#include "agent/steps/network/packet_filter.h"
#include "agent/steps/step_modules.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

const std::string kBefore =
    "*filter\n:ufw-before-input - [0:0]\n-A ufw-before-input -i lo -j ACCEPT\n"
    "-A ufw-before-input -p udp -d 224.0.0.251 --dport 5353 -j ACCEPT\nCOMMIT\n";
const std::string kBefore6 =
    "*filter\n:ufw6-before-input - [0:0]\n-A ufw6-before-input -i lo -j ACCEPT\nCOMMIT\n";
const Json kParams = {{"allow", {{{"from", "10.0.0.0/8"}, {"port", 22}}}}};

struct Host {
  FakeMachine machine;
  Host() {
    machine.put("/proc/sys/net/ipv6/conf/all/forwarding", "0\n");
    machine.put("/etc/ufw/ufw.conf", "ENABLED=yes\n");
    machine.put("/etc/default/ufw", "IPV6=yes\n");
    for (const char* folder : {"/etc/ufw/", "/usr/share/ufw/iptables/"}) {
      machine.put(folder + std::string("before.rules"), kBefore);
      machine.put(folder + std::string("before6.rules"), kBefore6);
      machine.put(folder + std::string("after.rules"), "*filter\nCOMMIT\n");
      machine.put(folder + std::string("after6.rules"), "*filter\nCOMMIT\n");
    }
  }
  void start() { REQUIRE(machine.run({.argv = {"/lib/ufw/ufw-init", "start"}}).ok()); }
  std::string rules(const char* tool) { return machine.run({.argv = {tool, "-S"}})->out; }
  bool holds() {
    StepContext context = machine.context();
    const auto out = find_step_module("ufw")->check(context, kParams);
    REQUIRE(out.ok());
    return out->holds == Holds::yes;
  }
  Status apply() {
    StepContext context = machine.context();
    return find_step_module("ufw")->apply(context, kParams);
  }
  // Something that opens more; afterwards the step sees it, takes it away, and holds.
  void put_right() {
    CHECK_FALSE(holds());
    const Status applied = apply();
    CAPTURE(applied.ok() ? "" : applied.error().message);
    CHECK(applied.ok());
    CHECK(holds());
  }
};

std::string with(std::string text, const std::string& before, const std::string& line) {
  return text.insert(text.rfind(before), line + "\n");
}

}  // namespace

FIELD_CASE("ufw-leftovers") {
  SECTION("rules of both families that an administrator added") {
    Host host;
    host.machine.put(
        "/etc/ufw/user.rules",
        "*filter\n:ufw-user-input - [0:0]\n-A ufw-user-input -p tcp --dport 5900 -j ACCEPT\nCOMMIT\n");
    host.machine.put(
        "/etc/ufw/user6.rules",
        "*filter\n:ufw6-user-input - [0:0]\n-A ufw6-user-input -p tcp --dport 5900 -j ACCEPT\nCOMMIT\n");
    host.start();
    host.put_right();
    for (const char* tool : {"iptables", "ip6tables"})
      CHECK(host.rules(tool).find("5900") == std::string::npos);
    for (const char* file : {"/etc/ufw/user.rules", "/etc/ufw/user6.rules"})
      CHECK(host.machine.get(file).find("5900") == std::string::npos);
  }
  SECTION("a rule in a file of ufw's own, with NAT beside it") {
    Host host;
    const std::string nat =
        "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -s 10.8.0.0/24 -j MASQUERADE\nCOMMIT\n";
    host.machine.put("/etc/ufw/before.rules",
                     nat + with(kBefore, "COMMIT", "-A ufw-before-input -p tcp --dport 3389 -j ACCEPT"));
    host.start();
    host.put_right();
    CHECK(host.rules("iptables").find("3389") == std::string::npos);
    CHECK(host.machine.get("/etc/ufw/before.rules") == nat + kBefore);
    CHECK(host.rules("iptables").find("-A ufw-before-input -j ufw-user-input") != std::string::npos);
  }
  SECTION("a rule before all others, and none at all") {
    Host host;
    host.start();
    REQUIRE(host.apply().ok());
    REQUIRE(host.holds());
    for (const char* tool : {"iptables", "ip6tables"}) {
      CAPTURE(tool);
      REQUIRE(host.machine.run({.argv = {tool, "-I", "INPUT", "-j", "ACCEPT"}}).ok());
      host.put_right();
      REQUIRE(host.machine.run({.argv = {tool, "-F", "INPUT"}}).ok());
      host.put_right();
      const std::string prefix = std::string(tool) == "iptables" ? "ufw" : "ufw6", rules = host.rules(tool);
      size_t last = 0;
      for (const auto& jump : steps::input_jumps(prefix)) {
        const size_t at = rules.find("-A INPUT -j " + jump + "\n");
        REQUIRE(at != std::string::npos);
        CHECK(at >= last);
        last = at;
      }
    }
  }
  SECTION("chains of other programs") {
    const std::string base =
        "-P INPUT DROP\n-N ufw-user-input\n-N F2B\n-N BRIDGE\n-N OPEN\n-A INPUT -j F2B\n-A INPUT -j BRIDGE\n"
        "-A F2B -s 192.0.2.7/32 -j REJECT\n-A BRIDGE -i virbr0 -p udp --dport 53 -j ACCEPT\n-A OPEN -j "
        "ACCEPT\n";
    CHECK(steps::accepting_lines(steps::filter_rules(base), "ufw-user-input", "ufw").empty());
    CHECK(steps::accepting_lines(steps::filter_rules(base + "-A INPUT -j OPEN\n"), "ufw-user-input", "ufw") ==
          std::vector<std::string>{"-A OPEN -j ACCEPT"});
    CHECK(steps::accepting_lines(steps::filter_rules(base + "-A BRIDGE -g OPEN\n"), "ufw-user-input", "ufw")
              .size() == 1);
  }
}

}  // namespace muster::tests
