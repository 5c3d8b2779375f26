// Lists of hosts: what is read of them, and that everything wrong is said at once, with its place.
#include "cli/hosts_file.h"

#include <algorithm>

#include "cli/destination.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::cli;

namespace {

// ssh's configuration has all of them.
std::set<std::string> any_alias(const std::set<std::string>& words) { return words; }

// "3:7: message" of each error.
std::vector<std::string> errors_of(const std::string& text) {
  std::vector<std::string> out;
  for (const SpecError& error : read_hosts_file(text, any_alias).errors) out.push_back(to_string(error, "f"));
  return out;
}
std::string places_of(const std::string& text) {
  std::string out;
  for (const SpecError& error : read_hosts_file(text, any_alias).errors)
    out += std::to_string(error.line) + ":" + std::to_string(error.column) + " ";
  return out;
}
bool says(const std::string& text, const std::string& words) {
  const auto errors = errors_of(text);
  INFO(text);
  for (const auto& error : errors) {
    INFO(error);
    if (error.find(words) != std::string::npos) return true;
  }
  return false;
}

std::string names_of(const HostsFile& file) {
  std::string out;
  for (const ListedHost& host : file.hosts) out += host.name + " ";
  return out;
}

}  // namespace

TEST_CASE("hosts: names, destinations, addresses and groups of a range go in step", "[cli][hosts]") {
  const HostsFile file = read_hosts_file(
      "# the new rack\n"
      "gpu[01-03] admin@10.0.3.[7-9] address=10.40.3.{n+6} group=h100\n"
      "\n"
      "login   # by its own name\n"
      "\tcpu01\tssh://ops@[2001:db8::7]:2222\tgroup=cpu\t\n");
  REQUIRE(file.errors.empty());
  CHECK(file.warnings.empty());
  REQUIRE(file.hosts.size() == 5);
  CHECK(file.hosts[1].written == "gpu02");
  CHECK(names_of(file) == "gpu01 gpu02 gpu03 login cpu01 ");
  CHECK(file.hosts[1].destination == "admin@10.0.3.8");
  CHECK(file.hosts[1].address == "10.40.3.8");
  CHECK(file.hosts[1].group == "h100");
  CHECK(file.hosts[1].line == 2);
  CHECK(file.hosts[3].destination == "login");
  CHECK(file.hosts[3].address == "");
  CHECK(file.hosts[3].group == "");
  CHECK(file.hosts[4].destination == "ssh://ops@[2001:db8::7]:2222");
  CHECK(file.hosts[4].line == 5);
  CHECK(file.hosts[4].column == 2);
}

TEST_CASE("hosts: a destination's range keeps its own digits", "[cli][hosts]") {
  const HostsFile file = read_hosts_file("gpu[1-3] rack2-n[09-11].site\nn[1,5] h[2,4]", any_alias);
  REQUIRE(file.errors.empty());
  REQUIRE(file.hosts.size() == 5);
  CHECK(file.hosts[0].destination == "rack2-n09.site");
  CHECK(file.hosts[2].destination == "rack2-n11.site");
  CHECK(file.hosts[4].name == "n5");
  CHECK(file.hosts[4].destination == "h4");
}

TEST_CASE("hosts: files of editors of other systems", "[cli][hosts]") {
  const std::string bom = "\xef\xbb\xbf";
  const HostsFile file = read_hosts_file(bom + "gpu01 h1\r\n\r\ngpu02\th2 # x\r\ngpu03", any_alias);
  REQUIRE(file.errors.empty());
  CHECK(names_of(file) == "gpu01 gpu02 gpu03 ");
  CHECK(file.hosts[0].destination == "h1");
  CHECK(file.hosts[0].column == 1);
  CHECK(says(std::string("\xff\xfeg\0p\0", 6), "UTF-16"));
  CHECK(says(std::string("\xfe\xff\0g", 4), "UTF-16"));
  // One error for a line, whatever it is full of.
  CHECK(places_of(std::string("g\0p\0u\0\n", 7)) == "1:2 ");
  CHECK(says("gpu01\x1b[2J h1\n", "control character 0x1b"));
  CHECK(says("gpu01\rgpu02\n", "control character 0x0d"));
  CHECK(places_of("gpu01 \xc2\xa0h1\n") == "1:7 ");
  CHECK(says("g\xc3\xbcnther\n", "not an ASCII character"));
  // In a comment anything may stand; a column counts characters.
  CHECK(errors_of("gpu01 # \xc3\xbc\x1b\n").empty());
}

TEST_CASE("hosts: everything that is wrong is said at once, with its place", "[cli][hosts]") {
  CHECK(places_of("GPU;01\n"
                  "gpu02 -oProxyCommand=reboot\n"
                  "gpu03 h3 addresz=10.0.0.3\n"
                  "gpu04 h4 address=10.0.0.300 group=Rack_1\n"
                  "gpu05 h5 h6\n"
                  "gpu[06-08] h[6-7]\n"
                  "gpu[10-09]\n"
                  "gpu02 h2\n") == "1:1 2:7 3:10 4:18 4:35 5:10 6:12 7:1 8:1 ");
  CHECK(says("gpu03 addresz=10.0.0.3", "did you mean 'address'?"));
  CHECK(says("gpu03 slots=8", "unknown key 'slots'"));
  CHECK(says("gpu02\nn1\ngpu02", "f:3:1: listed twice: gpu02 (first on line 1)"));
  CHECK(says("gpu[01-09]\ngpu[02-09]", "listed twice: gpu02, gpu03, gpu04 and 5 more (first on line 1)"));
  CHECK(says("n[1,1]", "listed twice: n1"));
}

TEST_CASE("hosts: what ssh takes is enough, and gets a name that is a node's", "[cli][hosts]") {
  const HostsFile file = read_hosts_file(
      "DGX-01\nnode_01\ngpu01.cluster.local\n10.0.0.11\nops@gpu05:2222\n[FD00:0::12]\n7gpu\nssh://gpu06\n");
  REQUIRE(file.errors.empty());
  CHECK(names_of(file) ==
        "dgx-01 node-01 gpu01-cluster-local ip-10-0-0-11 gpu05-2222 ip-fd00--12 n7gpu gpu06 ");
  CHECK(file.hosts[0].written == "DGX-01");
  CHECK(file.hosts[4].destination == "ops@gpu05:2222");
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0].message.find("DGX-01 is dgx-01") != std::string::npos);
  // A name depends on what is written for the host, and on nothing else in the list.
  CHECK(names_of(read_hosts_file("gpu01.b.site\ngpu01.cluster.local\n")) ==
        "gpu01-b-site gpu01-cluster-local ");
  const std::string longest(253, 'a');
  const auto cut = read_hosts_file(longest + "\n" + longest + "b\n");
  REQUIRE(cut.hosts.size() == 2);
  for (const auto& host : cut.hosts) CHECK(host.name.size() == 63);
  CHECK(says("node_01\nnode-01\n", "write 'node-01-b destination=node-01'"));
  CHECK(says("gpu01\nGPU01\n", "listed twice: GPU01"));
}

TEST_CASE("hosts: what is no host is an error that says what to write", "[cli][hosts]") {
  for (const char* name : {"gpu[1-2", "gpu1-2]", "gpu[0x1-0x3]", "gpu[01-003]", "'gpu01'", "*", "-gpu",
                           "gpu[]", "[fd00::1]x", "[gpu1,2]", "gpu:70000", "gpu[1-4/0]"})
    CHECK(places_of(std::string(name) + "\n") == "1:1 ");
  CHECK(says("localhost\n", "localhost01 destination=localhost"));
  CHECK(says("all\n", "all01 destination=all"));
  CHECK(says("@compute\n", "nodeset -f @compute"));
  CHECK(says("node[1-9]!node3\n", "nodeset -f"));
  CHECK(says("gpu*\n", "write a range"));
  CHECK(says("-x gpu03\n", "-gpu03"));
  CHECK(says(std::string(600, 'a') + "[1-4096]\n", "the name is too long (608 characters)"));
  CHECK(says("address=10.0.0.1 group=x\n", "the name is missing"));
}

TEST_CASE("hosts: ranges as Slurm, pdsh, clush and Ansible write them", "[cli][hosts]") {
  CHECK(names_of(read_hosts_file("rack[1-2]n[09-10]\n")) == "rack1n09 rack1n10 rack2n09 rack2n10 ");
  CHECK(names_of(read_hosts_option("gpu[01-03,07],login1")) == "gpu01 gpu02 gpu03 gpu07 login1 ");
  CHECK(names_of(read_hosts_file("gpu[01-02,07],login1\n")) == "gpu01 gpu02 gpu07 login1 ");
  CHECK(names_of(read_hosts_option("n[0-8/4,11]")) == "n0 n4 n8 n11 ");
  CHECK(names_of(read_hosts_option("mapr[009-010],mapr07")) == "mapr009 mapr010 mapr07 ");
  CHECK(names_of(read_hosts_option("w[01:05:2],db[a:c]")) == "w01 w03 w05 dba dbb dbc ");
  CHECK(names_of(read_hosts_option("gpu01\ngpu02\n")) == "gpu01 gpu02 ");
  CHECK(names_of(read_hosts_option("gpu[01-04],-gpu[02-03]")) == "gpu01 gpu04 ");
  CHECK(read_hosts_option("gpu[01-04],-gpu09").errors.size() == 1);
  const HostsFile two = read_hosts_file("rack[1-2]n[1-2] 10.0.[1-2].[1-2]\n");
  REQUIRE(two.hosts.size() == 4);
  CHECK(two.hosts[2].destination == "10.0.2.1");
  CHECK(says("rack[1-2]n[1-2] 10.0.0.{n}\n", "{n} needs"));
  CHECK(says("a[1-99]b[1-99]\n", "more than 4096 names"));
}

TEST_CASE("hosts: a second word is a destination only if it looks like one or ssh knows it", "[cli][hosts]") {
  const auto errors = [](const std::string& text, const KnownAliases& aliases = {}) {
    return read_hosts_file(text, aliases).errors.size();
  };
  CHECK(errors("node04 storage\n") == 1);
  CHECK(errors("node04 storage\n", any_alias) == 0);
  CHECK(errors("node04 node06\n", any_alias) == 1);  // siblings
  CHECK(errors("n[1-3] n[4-6]\n", any_alias) == 1);
  CHECK(errors("node04 node06.site\n", any_alias) == 1);
  CHECK(errors("node4 node04\nnode5 node5\n", any_alias) == 0);
  CHECK(errors("node04 destination=node06\n") == 0);
  for (const char* second :
       {"storage.site", "node04.site", "ops@node06", "node06:22", "10.0.0.6", "[fd00::6]", "ssh://node06"})
    CHECK(errors(std::string("node04 ") + second + "\n") == 0);
  CHECK(errors("node04 node06 node08\n", any_alias) == 1);
  CHECK(errors("10.0.0.4 node04\n", any_alias) == 1);  // /etc/hosts, pssh
  CHECK(errors("n[1-3] h[1-3]\nm1 h9\n") == 2);        // one for a line
  int asked = 0;
  const auto some = [&](const std::set<std::string>& words) {
    ++asked;
    CHECK(words.size() == 4);
    return std::set<std::string>{"h1", "h2", "h3"};
  };
  CHECK(errors("n[1-3] h[1-3]\nm1 h9\nk1 k1.site\n", some) == 1);
  CHECK(asked == 1);
}

TEST_CASE("hosts: an inventory of Ansible, and a file of genders", "[cli][hosts]") {
  const HostsFile file = read_hosts_file(
      "; all of them\n"
      "[gpu]\n"
      "gpu[01:02].site ansible_user=root\n"
      "web_1 ansible_host=10.0.3.7 ansible_port=2222 ansible_ssh_common_args='-o ProxyJump=login -q'\n"
      "localhost ansible_connection=local\n"
      "[new]\n"
      "web_1 rack=7\n"
      "[all:children]\n"
      "gpu\n"
      "[gpu:vars]\n"
      "ansible_user = ops\n"
      "[all:vars]\n"
      "ansible_user=nobody\n"
      "ansible_ssh_private_key_file=~/.ssh/id\n");
  REQUIRE(file.errors.empty());
  CHECK(names_of(file) == "gpu01-site gpu02-site web-1 ");
  CHECK(file.hosts[1].destination == "root@gpu02.site");
  CHECK(file.hosts[2].destination == "ops@10.0.3.7:2222");
  CHECK(file.hosts[2].line == 4);
  for (const char* word : {"ansible_ssh_private_key_file", "ansible_ssh_common_args", "localhost"}) {
    INFO(word);
    CHECK(std::any_of(file.warnings.begin(), file.warnings.end(), [&](const SpecError& warning) {
      return warning.message.find(word) != std::string::npos;
    }));
  }
  CHECK(says("[gpu]\nw[1:3] ansible_host=10.0.0.1\n", "a line of its own"));
  CHECK(says("w1 ansible_host={{ ip }}\n", "is a template"));
  CHECK(says("all:\n  hosts:\n    gpu01:\n", "YAML"));
  const HostsFile genders = read_hosts_file("node[01-02]  compute,rack=1\nlogin1 login\n");
  REQUIRE(genders.errors.empty());
  CHECK(names_of(genders) == "node01 node02 login1 ");
  CHECK(genders.hosts[2].destination == "login1");
}

TEST_CASE("hosts: destinations in a second column are no attributes of genders", "[cli][hosts]") {
  // No line is read as another host's, or by its name alone.
  CHECK(places_of("gpu[01-02] 10.0.3.1,10.0.3.2\ngpu03 10.0.3.3\n") == "1:12 ");
  CHECK(places_of("gpu01 ops@a,ops@b\n") == "1:7 ");
  CHECK(places_of("gpu01 a,10.0.3.1\n") == "1:7 ");
  CHECK(places_of("n1 compute,rack=1\n"
                  "login1 admin@login.site.org address=10.0.3.9\n"
                  "gpu03 10.0.3.3\n"
                  "gpu04 group=h100\n"
                  "gpu05 destination=a,b\n") == "2:29 3:7 4:7 5:7 ");
  const HostsFile file = read_hosts_file("n1 compute,os=8.9,url=a:b@c\nn2 os=8.9\nn3\nn4 login\n-n3\n");
  REQUIRE(file.errors.empty());
  CHECK(names_of(file) == "n1 n2 n4 ");
  // A node may stand in several lines, with more attributes in each (genders 1.3).
  const HostsFile again = read_hosts_file("n[1-3] compute\nn2 gpu,rack=1\nn2 login\nN_1 a\nn-1 b\n");
  CHECK(names_of(again) == "n1 n2 n3 n-1 ");
  REQUIRE(again.errors.size() == 1);  // two hosts that would have one name
  CHECK(again.errors[0].line == 5);
}

TEST_CASE("hosts: in an inventory, the port in a name is the host's own", "[cli][hosts]") {
  const HostsFile file = read_hosts_file(
      "[servers]\n"
      "inst1:32775 ansible_host=192.0.2.18\n"
      "192.0.2.18:32776\n"
      "inst3:22\n"
      "inst4:32777 ansible_port=32778\n"
      "inst5\n"
      "[again]\n"
      "inst4:32777\n"
      "[servers:vars]\n"
      "ansible_port=2222\n");
  REQUIRE(file.errors.empty());
  REQUIRE(file.hosts.size() == 5);
  CHECK(file.hosts[0].destination == "192.0.2.18:32775");
  CHECK(file.hosts[1].destination == "192.0.2.18:32776");
  CHECK(file.hosts[2].destination == "inst3:22");
  CHECK(file.hosts[3].destination == "inst4:32778");
  CHECK(file.hosts[4].destination == "inst5:2222");
  CHECK(names_of(file) == "inst1-32775 ip-192-0-2-18-32776 inst3 inst4-32777 inst5 ");
  CHECK(places_of("n1 ansible_host=192.0.2.18:2222\n") == "1:1 ");
  CHECK(places_of("n1 ansible_host=2001:db8::1\n") == "");
}

TEST_CASE("hosts: in an inventory, the inner group wins, and groups apart must agree", "[cli][hosts]") {
  // The outer group has the same members, and the earlier name.
  const std::string nested =
      "[cluster:children]\nrack\n[cluster:vars]\nansible_user=admin\nansible_port=2222\n"
      "[rack:children]\nvgpu\n"
      "[vgpu]\ngpu[01:02]\n[vgpu:vars]\nansible_user=ops\n";
  const HostsFile file = read_hosts_file(nested);
  REQUIRE(file.errors.empty());
  REQUIRE(file.hosts.size() == 2);
  CHECK(file.hosts[1].destination == "ops@gpu02:2222");
  const auto apart = [](const std::string& of_dc1, const std::string& of_host) {
    return "[gpu]\ngpu01\ngpu02" + of_host +
           "\n[dc1]\ngpu02\n[gpu:vars]\nansible_user=ops\n[dc1:vars]\nansible_user=" + of_dc1 +
           "\n[all:vars]\nansible_user=nobody\n";
  };
  CHECK(places_of(apart("admin", "")) == "3:1 ");
  CHECK(places_of(apart("ops", "")) == "");
  CHECK(places_of(apart("admin", " ansible_user=root")) == "");
  CHECK(read_hosts_file(apart("ops", "")).hosts.at(1).destination == "ops@gpu02");
  CHECK(read_hosts_file(apart("admin", " ansible_user=root")).hosts.at(1).destination == "root@gpu02");
  // One for two groups, however many hosts they share.
  CHECK(places_of("[a]\nn[1:9]\n[b]\nn[1:9]\n[a:vars]\nansible_port=22\n[b:vars]\nansible_port=23\n") ==
        "2:1 ");
}

TEST_CASE("hosts: in an inventory, a group may be the machine Ansible runs on", "[cli][hosts]") {
  const HostsFile file = read_hosts_file(
      "[control]\nmgmt\nlogin "
      "ansible_connection=ssh\n[gpu]\ngpu01\n[control:vars]\nansible_connection=local\n");
  REQUIRE(file.errors.empty());
  CHECK(names_of(file) == "login gpu01 ");
  REQUIRE_FALSE(file.warnings.empty());
  CHECK(file.warnings[0].message.find("mgmt (ansible_connection=local)") != std::string::npos);
}

TEST_CASE("hosts: an inventory has as many hosts as a list", "[cli][hosts]") {
  CHECK(places_of("[a]\nn[1:4096]\n[b]\nn1\nn4096\n") == "");
  CHECK(places_of("[a]\nn[1:4096]\nm1\nm2\n[b]\nm1\nm2\n") == "3:1 ");
}

TEST_CASE("hosts: port 22 distinguishes no host from another", "[cli][hosts]") {
  CHECK(distinct_port("ops@gpu01:22") == "");
  CHECK(distinct_port("ops@gpu01:2222") == "2222");
  CHECK(destination_port("ops@gpu01:22") == "22");
  CHECK(names_of(read_hosts_file("gpu01:22\ngpu02:23\n")) == "gpu01 gpu02-23 ");
  CHECK(read_hosts_file("a gpu01.site:22\nb gpu01.site\n").warnings.size() == 1);
}

TEST_CASE("hosts: keys are given once and hold something", "[cli][hosts]") {
  CHECK(says("n1 group=a group=b", "group is given twice"));
  CHECK(says("n1 address=", "address= has no value"));
  CHECK(says("n1 group=-x", "is not a group"));
  CHECK(says("n1 group=" + std::string(41, 'a'), "is not a group"));
  CHECK(errors_of("n1 group=" + std::string(40, 'a')).empty());
  CHECK(says("n1 =x", "unknown key ''"));
  CHECK(read_hosts_file("n1 address=10.0.0.1 h1", any_alias).hosts.at(0).destination == "h1");
}

TEST_CASE("hosts: addresses are those at which hosts reach one another", "[cli][hosts]") {
  for (const char* address : {"10.0.0", "10.0.0.256", "010.0.0.1", "2001:db8::1", "gpu01", "10.0.0.1/24",
                              "127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "10.0.0.{n}"})
    CHECK(places_of(std::string("n1 address=") + address) == "1:12 ");
  CHECK(says("a address=10.0.0.1\nb address=10.0.0.1", "10.0.0.1 is given to both a and b"));
  CHECK(says("n[1-3] address=10.0.0.1", "1 address for 3 names"));
  CHECK(says("n[1-3] address=10.0.0.[1-4]", "4 addresses for 3 names"));
  CHECK(says("n[254-256] address=10.0.0.{n}", "'10.0.0.256' is not an IPv4 address"));
  CHECK(says("n1 address=10.0.0.{x}", "are allowed in braces"));
}

TEST_CASE("hosts: one destination for several names", "[cli][hosts]") {
  CHECK(says("n[1-3] gateway", "1 destination for 3 names"));
  CHECK(says("n1 h[1-4]", "4 destinations for 1 name"));
  const HostsFile file =
      read_hosts_file("a root@H1.site\nb h1.site\nc h2\nd ssh://h2:2222\nh2 x\n", any_alias);
  CHECK(file.errors.empty());
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0].line == 2);
  CHECK(file.warnings[0].message == "2 names have the same destination, h1.site: a, b");
  // A name is a destination as well.
  CHECK(read_hosts_file("gpu01\nspare gpu01\n", any_alias).warnings.size() == 1);
}

TEST_CASE("hosts: a destination is no option and no shell's word", "[cli][hosts]") {
  for (const char* good :
       {"gpu01", "10.0.0.1", "root@gpu01.site", "DOM\\user@gpu01", "a@b@gpu01", "2001:db8::1", "fe80::1%eth0",
        "ops@2001:db8::1", "ssh://gpu01", "ssh://ops@gpu01:22/", "ssh://[2001:db8::1]:22", "SSH://gpu01",
        "gpu_01", "h:22", "ops@h:22", "[fd00::12]", "ops@[fd00::12]:22"}) {
    INFO(good);
    CHECK(wrong_destination(good) == "");
  }
  for (const char* bad : {"",
                          "-oProxyCommand=x",
                          "root@-oProxyCommand",
                          "ssh://-x",
                          "-l@h",
                          "@h",
                          "root@",
                          "h:",
                          "h:x",
                          "h:0",
                          "[h]",
                          "DOM\\u@h:22",
                          "ssh://",
                          "ssh://h:",
                          "ssh://h:0",
                          "ssh://h:65536",
                          "ssh://h:2x",
                          "ssh://a/b",
                          "h/x",
                          "h;reboot",
                          "$(reboot)",
                          "`x`",
                          "a|b",
                          "u$x@h",
                          "h\\x",
                          "u\\@h",
                          "[h]x",
                          "h x",
                          "h\n",
                          "h\xc3\xbc",
                          "h'",
                          "\"h\"",
                          "h&",
                          "<h",
                          "{h}"}) {
    INFO(bad);
    CHECK(wrong_destination(bad) != "");
  }
  CHECK(wrong_destination(std::string(321, 'a')) != "");
  CHECK(ssh_argument("ops@gpu01") == "ops@gpu01");
  CHECK(ssh_argument("gpu01:2222") == "ssh://gpu01:2222");
  CHECK(ssh_argument("ops@[fd00::12]") == "ops@fd00::12");
  CHECK(ssh_argument("ops@[fe80::1%eth0]:22") == "ssh://ops@[fe80::1%25eth0]:22");
  CHECK(ssh_argument("ssh://gpu01:22/") == "ssh://gpu01:22/");
  CHECK(with_user_and_port("ops@fd00::1", "", "22") == "ops@[fd00::1]:22");
  CHECK(with_user_and_port("ops@gpu01:22", "root", "") == "root@gpu01:22");
  CHECK(destination_key("ops@GPU01.Site.") == "gpu01.site");
  CHECK(destination_key("ssh://ops@gpu01:22") == "gpu01");
  CHECK(destination_key("ssh://[2001:DB8::1]:2222") == "2001:db8::1:2222");
  CHECK(says("n1 h1 -x", "unexpected word '-x'"));
  CHECK(says("n[1-2] -oProxyCommand={n}", "ssh would take it for an option"));
}

TEST_CASE("hosts: none, and too many", "[cli][hosts]") {
  CHECK(says("", "f: no hosts are listed"));
  CHECK(says("# nothing\n\n  \t\r\n", "no hosts are listed"));
  CHECK(read_hosts_file("n[0001-4096]").errors.empty());
  CHECK(read_hosts_file("n[0001-4096]").hosts.size() == 4096);
  const HostsFile many = read_hosts_file("n[0001-4096]\nm[1-3]\nm4\n");
  CHECK(many.hosts.size() == 4096);
  REQUIRE(many.errors.size() == 1);
  CHECK(to_string(many.errors[0], "f") == "f:2:1: more than 4096 hosts");
  CHECK(says("n[1-9999]", "more than 4096 names"));
  CHECK(says(std::string(kMostBytesOfHosts + 1, '#'), "bytes"));
}

TEST_CASE("hosts: the option has commas where a file has lines", "[cli][hosts]") {
  const HostsFile file = read_hosts_option("gpu[01-02,05], login ops@l1 group=x,cpu01");
  REQUIRE(file.errors.empty());
  CHECK(names_of(file) == "gpu01 gpu02 gpu05 login cpu01 ");
  CHECK(file.hosts[3].destination == "ops@l1");
  CHECK(file.hosts[3].column == 16);
  CHECK(read_hosts_option("gpu01,").hosts.size() == 1);
  CHECK(read_hosts_option("").errors.size() == 1);
  const HostsFile bad = read_hosts_option("gpu01,GP;02,gpu01");
  REQUIRE(bad.errors.size() == 2);
  CHECK(bad.errors[0].column == 7);
  CHECK(bad.errors[1].column == 13);
  CHECK(read_hosts_option("gpu[01-02").errors.size() == 1);
}
