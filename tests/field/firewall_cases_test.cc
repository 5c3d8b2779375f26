// Field cases of firewalls that are not empty when a host is adopted, and of what happens to them later.
#include <algorithm>

#include "agent/steps/network/firewall_rules.h"
#include "agent/steps/step_modules.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

using steps::Family;

const Json kSsh = {{"allow", {{{"from", "10.20.0.0/24"}, {"port", 22}}}}};
constexpr const char* kSshRule = "-A ufw-user-input -s 10.20.0.0/24 -p tcp -m tcp --dport 22 -j ACCEPT";

// A host whose ufw runs, with what its administrators did to it.
struct Host {
  FakeMachine machine;
  StepContext context = machine.context();
  Host() {
    for (const char* file : {"before.rules", "before6.rules", "user.rules", "user6.rules"})
      machine.put(std::string("/etc/ufw/") + file, field_input("ufw-leftovers", file));
    machine.put("/etc/ufw/ufw.conf", "ENABLED=yes\nLOGLEVEL=off\n");
    machine.put("/etc/default/ufw", "IPV6=yes\nDEFAULT_INPUT_POLICY=\"DROP\"\n");
    machine.units["ufw.service"] = {};
    start();
  }
  void start() { REQUIRE(machine.run({.argv = {"/lib/ufw/ufw-init", "start"}})->ok()); }
  Status apply(const Json& params = kSsh) {
    const Status done = find_step_module("ufw")->apply(context, params);
    UNSCOPED_INFO((done.ok() ? "" : done.error().message));
    return done;
  }
  bool holds() {
    const auto found = find_step_module("ufw")->check(context, kSsh);
    REQUIRE(found.ok());
    UNSCOPED_INFO(found->diff);
    return found->holds == Holds::yes;
  }
  std::string four() { return machine.firewall["iptables"].list(); }
  std::string six() { return machine.firewall["ip6tables"].list(); }
  std::string files() const {
    std::string out;
    for (const char* file : {"before.rules", "before6.rules", "user.rules", "user6.rules", "ufw.conf"})
      out += machine.get(std::string("/etc/ufw/") + file);
    return out + machine.get("/etc/default/ufw");
  }
};

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// At the end of the first table of before.rules.
void add_before_rule(Host& host, const std::string& line) {
  std::string text = host.machine.get("/etc/ufw/before.rules");
  text.insert(text.find("COMMIT"), line + "\n");
  host.machine.put("/etc/ufw/before.rules", text);
}

// Nothing that the case's files let in, in neither family.
void check_closed(Host& host) {
  for (const char* port : {"5900", "3389"}) {
    INFO(port);
    CHECK(host.four().find(port) == std::string::npos);
    CHECK(host.six().find(port) == std::string::npos);
  }
  CHECK(has(host.four(), kSshRule));
  CHECK(has(host.four(), "-P INPUT DROP"));
  CHECK(has(host.six(), "-P INPUT DROP"));
}

}  // namespace

FIELD_CASE("ufw-leftovers: both families and all of ufw's files become what is declared") {
  Host host;
  REQUIRE(host.six().find("5900") != std::string::npos);
  REQUIRE(host.four().find("3389") != std::string::npos);
  CHECK_FALSE(host.holds());
  REQUIRE(host.apply().ok());
  check_closed(host);
  CHECK(host.holds());
  // What is no way in stays: ufw's own accepts, what goes through, other tables.
  CHECK(has(host.four(), "-A ufw-before-input -p icmp --icmp-type echo-request -j ACCEPT"));
  CHECK(has(host.four(), "-A ufw-before-forward -s 10.99.0.0/16 -j ACCEPT"));
  CHECK(has(host.machine.get("/etc/ufw/before.rules"), "-A POSTROUTING -s 10.99.0.0/16 -j MASQUERADE"));
  // The next boot loads what the files say.
  host.machine.firewall.clear();
  host.start();
  check_closed(host);
  CHECK(host.holds());
}

FIELD_CASE("ufw-leftovers: rules that come later are noticed and go") {
  for (const char* tool : {"iptables", "ip6tables"}) {
    const std::string ufw = std::string(tool) == "iptables" ? "ufw-" : "ufw6-";
    for (const std::string& rule : {std::string("-A INPUT -j ACCEPT"),
                                    "-A " + ufw + "before-input -p tcp -m tcp --dport 3389 -j ACCEPT",
                                    "-A " + ufw + "user-input -p tcp -m tcp --dport 5900 -j ACCEPT",
                                    std::string("-A INPUT -m conntrack --ctstate NEW,ESTABLISHED -j ACCEPT"),
                                    std::string("-A INPUT ! -i lo -j ACCEPT")}) {
      INFO(tool << " " << rule);
      Host host;
      REQUIRE(host.apply().ok());
      REQUIRE(host.holds());
      host.machine.firewall[tool].put_first(rule);
      CHECK_FALSE(host.holds());
      REQUIRE(host.apply().ok());
      CHECK_FALSE(has(host.machine.firewall[tool].list(), rule));
      CHECK(host.holds());
    }
  }
}

FIELD_CASE("ufw-leftovers: another program's chain that accepts is seen where INPUT leads to it") {
  Host host;
  REQUIRE(host.apply().ok());
  auto& table = host.machine.firewall["iptables"];
  REQUIRE(table
              .restore("*filter\n:site - [0:0]\n:banned - [0:0]\n-A site -p tcp --dport 6001 -j ACCEPT\n"
                       "-A banned -s 192.0.2.7 -j REJECT\n-A INPUT -j banned\nCOMMIT\n",
                       true)
              .empty());
  CHECK(host.holds());  // nothing leads to `site`, and `banned` lets nothing in
  table.put_first("-A INPUT -j site");
  CHECK_FALSE(host.holds());
  REQUIRE(host.apply().ok());
  CHECK(host.four().find("6001") == std::string::npos);
  CHECK(has(host.four(), "-A INPUT -j banned"));
}

FIELD_CASE("ufw-leftovers: a frame that was taken apart is noticed and put together") {
  for (const char* tool : {"iptables", "ip6tables"}) {
    const std::string ufw = std::string(tool) == "iptables" ? "ufw-" : "ufw6-";
    for (const std::string& chain : {std::string("INPUT"), ufw + "before-input", ufw + "user-input"}) {
      if (chain == "ufw6-user-input") continue;  // nothing is declared there
      INFO(tool << " " << chain);
      Host host;
      REQUIRE(host.apply().ok());
      const std::string whole = host.machine.firewall[tool].list();
      host.machine.firewall[tool].flush(chain);
      CHECK_FALSE(host.holds());
      REQUIRE(host.apply().ok());
      CHECK(host.machine.firewall[tool].list() == whole);
      CHECK(host.holds());
    }
    Host host;
    REQUIRE(host.apply().ok());
    host.machine.firewall[tool].policies["INPUT"] = "ACCEPT";
    CHECK_FALSE(host.holds());
    REQUIRE(host.apply().ok());
    CHECK(host.machine.firewall[tool].policies["INPUT"] == "DROP");
  }
}

FIELD_CASE("ufw-leftovers: an accept that is written into a file is noticed before the next boot") {
  for (const char* file : {"before.rules", "before6.rules"}) {
    INFO(file);
    Host host;
    REQUIRE(host.apply().ok());
    const std::string chain = std::string(file) == "before.rules" ? "ufw-before-input" : "ufw6-before-input";
    std::string text = host.machine.get(std::string("/etc/ufw/") + file);
    text.insert(text.find("COMMIT"), ":INPUT ACCEPT [0:0]\n-A " + chain + " -s 192.0.2.0/24 -j ACCEPT\n");
    host.machine.put(std::string("/etc/ufw/") + file, text);
    CHECK_FALSE(host.holds());
    REQUIRE(host.apply().ok());
    CHECK(host.holds());
    CHECK(has(host.four(), "-P INPUT DROP"));
    CHECK(has(host.six(), "-P INPUT DROP"));
  }
}

FIELD_CASE("ufw-leftovers: a firewall that was open or closed to IPv6 by its settings") {
  for (const char* defaults :
       {"IPV6=no\nDEFAULT_INPUT_POLICY=\"DROP\"\n", "IPV6=yes\nDEFAULT_INPUT_POLICY=\"ACCEPT\"\n"}) {
    INFO(defaults);
    Host host;
    host.machine.put("/etc/default/ufw", defaults);
    host.machine.firewall.clear();
    host.start();
    CHECK_FALSE(host.holds());
    REQUIRE(host.apply().ok());
    check_closed(host);
    CHECK(host.holds());
  }
}

FIELD_CASE("ufw-leftovers: without its controller the host is as it was, rules of others included") {
  Host host;
  host.machine.firewall["iptables"].put_first("-A INPUT -p tcp --dport 6000 -j ACCEPT");
  host.machine.firewall["ip6tables"].put_first("-A INPUT -s fd00::1 -j DROP");
  const std::string four = host.four(), six = host.six(), files = host.files();
  Json params = kSsh;
  params["controller"] = "https://not-an-address:1";
  CHECK_FALSE(host.apply(params).ok());
  CHECK(host.four() == four);
  CHECK(host.six() == six);
  CHECK(host.files() == files);
}

FIELD_CASE("ufw-leftovers: what of a file is a way in") {
  const auto accepts = [](const std::string& rule, Family family) {
    const std::string chain = steps::ufw_chain(family, "before-input");
    return !steps::undeclared_accepts(steps::filter_table("*filter\n:" + chain + " - [0:0]\n-A " + chain +
                                                          " " + rule + "\nCOMMIT\n"),
                                      family, {})
                .empty();
  };
  for (const char* own : {"-i lo -j ACCEPT", "-m state --state ESTABLISHED -j ACCEPT",
                          "-p icmp -m icmp --icmp-type 3/4 -j ACCEPT", "-p tcp --dport 22 -j DROP",
                          "-p udp -m udp --sport 67 --dport 68 -j ACCEPT",
                          "-d 239.255.255.250/32 -p udp -m udp --dport 1900 -j ACCEPT"}) {
    INFO(own);
    CHECK_FALSE(accepts(own, Family::v4));
  }
  for (const char* open : {"-j ACCEPT", "-p icmp -j ACCEPT", "! -i lo -j ACCEPT", "-p 112 -j ACCEPT",
                           "-m conntrack --ctstate NEW -j ACCEPT", "-p udp --sport 67 -j ACCEPT",
                           "-p udp --dport 5353 -j ACCEPT", "-s 10.0.0.0/8 --jump ACCEPT",
                           "-m comment --comment \"-i lo\" -j ACCEPT"}) {
    INFO(open);
    CHECK(accepts(open, Family::v4));
  }
  CHECK_FALSE(accepts("-p ipv6-icmp -m icmp6 --icmpv6-type 135 -m hl --hl-eq 255 -j ACCEPT", Family::v6));
  CHECK(accepts("-p ipv6-icmp -m icmp6 --icmpv6-type 137 -j ACCEPT", Family::v6));
  CHECK(accepts("-p udp -m udp --sport 547 --dport 546 -j ACCEPT", Family::v6));
}

FIELD_CASE("ufw-accept-behind") {
  Host host;
  REQUIRE(host.apply().ok());
  auto& table = host.machine.firewall["iptables"];
  REQUIRE(table.restore("-A INPUT -p tcp -m tcp --dport 1789 -j ACCEPT\n", true).empty());
  CHECK_FALSE(host.holds());
  REQUIRE(host.apply().ok());
  CHECK(host.four().find("1789") == std::string::npos);
  CHECK(host.holds());
}

FIELD_CASE("ufw-own-drop-policy") {
  Host host;
  host.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  host.machine.firewall.clear();
  auto& table = host.machine.firewall["iptables"];
  REQUIRE(table.restore("*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n", true)
              .empty());
  const std::string before = host.four();
  Json params = kSsh;
  params["controller"] = "https://not-an-address:1";
  CHECK_FALSE(host.apply(params).ok());
  CHECK(host.four() == before);
}

FIELD_CASE("ufw-disabled-empty-chains") {
  Host host;
  REQUIRE(host.machine.run({.argv = {"/lib/ufw/ufw-init", "force-stop"}})->ok());
  host.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  REQUIRE(host.apply().ok());
  check_closed(host);
  CHECK(host.holds());
}

FIELD_CASE("ufw-limit-rule") {
  Host host;
  host.machine.put("/etc/ufw/user.rules",
                   "*filter\n:ufw-user-input - [0:0]\n-A ufw-user-input -p tcp --dport 22 -j "
                   "ufw-user-limit-accept\nCOMMIT\n");
  CHECK_FALSE(host.holds());
  REQUIRE(host.apply().ok());
  CHECK(host.holds());
  CHECK(host.four().find("--dport 22 -j ufw-user-limit-accept") == std::string::npos);
}

FIELD_CASE("ufw-before-ssh-is-allowed") {
  FakeMachine machine;
  machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  machine.put("/etc/default/ufw", "");
  StepContext context = machine.context();
  CHECK_FALSE(find_step_module("ufw")
                  ->apply(context, {{"allow", Json::array()}, {"controller", "https://not-an-address:1"}})
                  .ok());
  CHECK(machine.get("/etc/ufw/ufw.conf") == "ENABLED=no\n");
  CHECK(machine.firewall["iptables"].list() == FakeFirewall().list());
}

// What a provider's image has: accepts, and a refusal of all else behind them.
FIELD_CASE("input-closed-before-ufw") {
  Host host;
  host.machine.firewall.clear();
  host.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  auto& table = host.machine.firewall["iptables"];
  REQUIRE(table.restore(field_input("input-closed-before-ufw", "input.rules"), true).empty());
  REQUIRE(host.apply().ok());
  const auto input = steps::lines_of_chain(steps::filter_table(host.four()), "INPUT");
  const auto at = [&](const std::string& line) {
    return std::find(input.begin(), input.end(), line) - input.begin();
  };
  CHECK(at("-A INPUT -j ufw-before-input") < at("-A INPUT -j REJECT --reject-with icmp-host-prohibited"));
  CHECK(at("-A INPUT -s 192.0.2.7/32 -j DROP") < at("-A INPUT -j ufw-before-input"));
  check_closed(host);
  CHECK(host.holds());
  // Put in front again, it is noticed.
  table.put_first("-A INPUT -j REJECT --reject-with icmp-host-prohibited");
  CHECK_FALSE(host.holds());
  REQUIRE(host.apply().ok());
  CHECK(host.holds());
}

FIELD_CASE("input-closed-before-ufw: also where only together they were the way in") {
  const char* const ways[][2] = {
      {"-p tcp -m tcp --dport 22 -j ACCEPT", "! -i lo -j DROP"},
      {"-i eth0 -p tcp -m tcp --dport 22 -j ACCEPT", "-i eth0 -j DROP"},
      {"-p tcp -m tcp --dport 22 -j ACCEPT", "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP"}};
  for (const auto& [accept, refusal] : ways) {
    INFO(refusal);
    Host host;
    host.machine.firewall.clear();
    host.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
    const std::string ban = "-A INPUT -p tcp -m multiport --dports 22 -j f2b-sshd",
                      closed = std::string("-A INPUT ") + refusal;
    REQUIRE(
        host.machine.firewall["iptables"]
            .restore(
                "*filter\n:f2b-sshd - [0:0]\n-A f2b-sshd -s 192.0.2.9/32 -j REJECT\n-A f2b-sshd -j RETURN\n" +
                    ban + "\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT " +
                    accept + "\n" + closed + "\nCOMMIT\n",
                true)
            .empty());
    REQUIRE(host.apply().ok());
    const auto input = steps::lines_of_chain(steps::filter_table(host.four()), "INPUT");
    const auto at = [&](const std::string& line) {
      return std::find(input.begin(), input.end(), line) - input.begin();
    };
    CHECK(at(ban) < at("-A INPUT -j ufw-before-input"));
    CHECK(at("-A INPUT -j ufw-track-input") < at(closed));
    CHECK(at(closed) < static_cast<long>(input.size()));
    check_closed(host);
    CHECK(host.holds());
  }
}

FIELD_CASE("input-closed-before-ufw: what IPv6 itself needs gets through") {
  Host host;
  host.machine.firewall.clear();
  host.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  auto& table = host.machine.firewall["ip6tables"];
  const std::string closed = "-A INPUT -j REJECT --reject-with icmp6-adm-prohibited";
  REQUIRE(table
              .restore("*filter\n-A INPUT -p ipv6-icmp -j ACCEPT\n-A INPUT -i lo -j ACCEPT\n" + closed +
                           "\nCOMMIT\n",
                       true)
              .empty());
  REQUIRE(host.apply().ok());
  CHECK(steps::lines_of_chain(steps::filter_table(host.six()), "INPUT").back() == closed);
  CHECK(host.holds());
  table.put_first(closed);
  CHECK_FALSE(host.holds());
}

FIELD_CASE("input-closed-before-ufw: a line of before.rules about another port stays") {
  Host host;
  const std::string line = "-A ufw-before-input -p tcp --dport 25 -j DROP";
  add_before_rule(host, line);
  REQUIRE(host.apply({{"allow", {{{"from", "10.20.0.1"}}, {{"from", "10.20.0.0/24"}, {"port", 22}}}}}).ok());
  CHECK(host.machine.get("/etc/ufw/before.rules").find("\n" + line + "\n") != std::string::npos);
}

FIELD_CASE("own-chain-drops-the-rest: a chain that lets some go on is the site's own restriction") {
  for (const char* first : {"-s 10.20.0.7/32 -j RETURN", "-p tcp -m tcp --dport 22 -j RETURN"}) {
    INFO(first);
    const auto table = steps::filter_table(
        "-N site\n-N ufw-before-input\n-A INPUT -j site\n-A INPUT -j ufw-before-input\n"
        "-A site " +
        std::string(first) + "\n-A site -p tcp -m tcp --dport 22 -j DROP\n");
    CHECK(steps::closed_before(table, Family::v4, {kSshRule}).empty());
  }
}

FIELD_CASE("own-chain-drops-the-rest") {
  Host host;
  REQUIRE(host.apply().ok());
  auto& table = host.machine.firewall["iptables"];
  REQUIRE(
      table
          .restore("*filter\n:guard - [0:0]\n-A guard -p tcp -m tcp --dport 22 -j ACCEPT\n-A guard -j DROP\n"
                   "-I INPUT 1 -j guard\nCOMMIT\n",
                   true)
          .empty());
  CHECK_FALSE(host.holds());
  REQUIRE(host.apply().ok());
  check_closed(host);
  CHECK(host.holds());
  CHECK(steps::lines_of_chain(steps::filter_table(host.four()), "INPUT").back() == "-A INPUT -j guard");
}

FIELD_CASE("own-chain-drops-the-rest: which refusals are of what is declared") {
  const auto closed = [](const std::string& rule) {
    const auto table =
        steps::filter_table("-N ufw-before-input\n-A INPUT " + rule + "\n-A INPUT -j ufw-before-input\n");
    return !steps::closed_before(table, Family::v4, {kSshRule}).empty();
  };
  for (const char* rule :
       {"-j DROP", "-p tcp -j REJECT --reject-with tcp-reset", "-p tcp -m tcp --dport 22 -j DROP",
        "-p tcp -m multiport --dports 20:30,80 -j DROP", "-m conntrack --ctstate NEW,INVALID -j DROP"}) {
    INFO(rule);
    CHECK(closed(rule));
  }
  for (const char* rule :
       {"-s 192.0.2.7/32 -j DROP", "-i eth1 -j DROP", "-p tcp -m tcp --dport 25 -j DROP", "-p udp -j DROP",
        "-m conntrack --ctstate INVALID -j DROP", "-m set --match-set banned src -j DROP", "-p icmp -j DROP",
        "! -i lo -j DROP", "-p tcp -m tcp --dport 22 -m recent --update --name x -j DROP", "-j LOG"}) {
    INFO(rule);
    CHECK_FALSE(closed(rule));
  }
}

FIELD_CASE("accept-with-a-memory") {
  Host host;
  auto& table = host.machine.firewall["iptables"];
  for (const auto& line : split_lines(field_input("accept-with-a-memory", "lines.txt")))
    table.put_first(line);
  CHECK_FALSE(host.holds());
  REQUIRE(host.apply().ok());
  check_closed(host);
  CHECK(host.four().find("7000") == std::string::npos);
  CHECK(host.four().find("7001") == std::string::npos);
  CHECK(host.holds());
}

FIELD_CASE("forward-line-once") {
  Host host;
  const std::string line = "-A FORWARD -i wg0 -j ACCEPT";
  add_before_rule(host, line);
  host.machine.firewall.clear();
  host.start();
  for (const int port : {22, 23, 24}) {
    Json params = kSsh;
    params["allow"][0]["port"] = port;
    REQUIRE(host.apply(params).ok());
    const auto lines = steps::lines_of_chain(steps::filter_table(host.four()), "FORWARD");
    CHECK(std::count(lines.begin(), lines.end(), line) == 1);
  }
}

FIELD_CASE("libvirt-guests-keep-names") {
  Host host;
  auto& table = host.machine.firewall["iptables"];
  const std::string guests = "-A LIBVIRT_INP -i virbr0 -p udp -m udp --dport 53 -j ACCEPT";
  const std::string all = "-A LIBVIRT_INP -p tcp -m tcp --dport 16509 -j ACCEPT";
  REQUIRE(table
              .restore("*filter\n:LIBVIRT_INP - [0:0]\n" + guests + "\n" + all +
                           "\n-A INPUT -j LIBVIRT_INP\nCOMMIT\n",
                       true)
              .empty());
  REQUIRE(host.apply().ok());
  CHECK(has(host.four(), guests));
  CHECK_FALSE(has(host.four(), all));
  CHECK(host.holds());
}

}  // namespace muster::tests
