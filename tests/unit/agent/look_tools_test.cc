// What a host lacks for tests of several hosts, over made-up files.
#include "agent/measuring/look_tools.h"

#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

TEST_CASE("look: a firewall counts where its rules can be read and open none of the ports", "[hosts]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  const auto put = [&](const std::string& path, const std::string& text) {
    REQUIRE(files.write(path, text, 0644).ok());
  };
  const std::string rule = "### tuple ### allow tcp ", anywhere = " 0.0.0.0/0 any 10.0.0.0/8 in\n";
  CHECK(closing_firewall(files).empty());
  put("/etc/ufw/ufw.conf", "ENABLED=yes\n");
  put("/etc/default/ufw", "DEFAULT_INPUT_POLICY=\"DROP\"\n");
  CHECK(closing_firewall(files).empty());  // its rules cannot be read
  put("/etc/ufw/user.rules", rule + "22" + anywhere);
  CHECK(closing_firewall(files) == "ufw");
  put("/etc/ufw/user.rules", rule + "7490:7500" + anywhere);
  CHECK(closing_firewall(files) == "ufw");
  for (const char* open : {"7490:7560", "22,7490:7560", "any"}) {
    put("/etc/ufw/user.rules", rule + open + anywhere);
    CHECK(closing_firewall(files).empty());
  }
  put("/etc/ufw/user.rules", "");
  put("/etc/default/ufw", "DEFAULT_INPUT_POLICY=\"ACCEPT\"\n");
  CHECK(closing_firewall(files).empty());
  put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  put("/run/firewalld.pid", "1\n");
  put("/etc/firewalld/firewalld.conf", "DefaultZone=public\n");
  CHECK(closing_firewall(files).empty());  // what the zone opens cannot be read
  put("/usr/lib/firewalld/zones/public.xml", "<zone><service name=\"ssh\"/></zone>");
  CHECK(closing_firewall(files) == "firewalld");
  for (const char* tcp :
       {"<port port=\"7490-7560\" protocol=\"tcp\"/>", "<port protocol=\"tcp\" port=\"7490-7560\"/>"}) {
    put("/etc/firewalld/zones/public.xml", std::string("<zone>") + tcp + "</zone>");
    CHECK(closing_firewall(files).empty());
  }
  put("/etc/firewalld/zones/public.xml", "<zone><port port=\"7490-7560\" protocol=\"udp\"/></zone>");
  CHECK(closing_firewall(files) == "firewalld");
}

TEST_CASE("look: where something else may let hosts in, no firewall is named", "[hosts]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  const auto put = [&](const std::string& path, const std::string& text) {
    REQUIRE(files.write(path, text, 0644).ok());
  };
  put("/run/firewalld.pid", "1\n");
  put("/etc/firewalld/firewalld.conf", "DefaultZone=public\n");
  put("/usr/lib/firewalld/zones/public.xml", "<zone><service name=\"ssh\"/></zone>");
  put("/etc/NetworkManager/system-connections/lan.nmconnection", "[connection]\nid=lan\n");
  put("/etc/sysconfig/network-scripts/ifcfg-lan", "DEVICE=lan\n");
  put("/etc/sysconfig/network-scripts/ifup-post", "ZONE=trusted\n");
  REQUIRE(closing_firewall(files) == "firewalld");
  const std::vector<std::pair<std::string, std::string>> uncertain = {
      {"/etc/NetworkManager/system-connections/ib.nmconnection", "[connection]\nzone=trusted\n"},
      {"/run/NetworkManager/system-connections/ib.nmconnection", "[connection]\nzone=trusted\n"},
      {"/etc/sysconfig/network-scripts/ifcfg-ib0", "DEVICE=ib0\nZONE=trusted\n"},
      {"/etc/firewalld/policies/in.xml", "<policy/>"},
      {"/etc/firewalld/services/mpi.xml", "<service/>"},
      {"/etc/firewalld/direct.xml", "<direct/>"},
      {"/etc/firewalld/zones/work.xml", "<zone><protocol value=\"tcp\"/></zone>"},
      {"/etc/firewalld/zones/work.xml", "<zone target=\"ACCEPT\"/>"},
      {"/etc/firewalld/firewalld.conf", "DefaultZone=trusted\n"}};
  for (const auto& [path, text] : uncertain) {
    CAPTURE(path, text);
    const std::string before = files.read(path).value_or("");
    put(path, text);
    CHECK(closing_firewall(files).empty());
    if (before.empty())
      REQUIRE(files.remove(path).ok());
    else
      put(path, before);
    CHECK(closing_firewall(files) == "firewalld");
  }
}

TEST_CASE("look: perftest is found in the path, and in the usual folders", "[hosts]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  CHECK(look_tools(files, "/opt/mofed/bin")["perftest"] == false);
  REQUIRE(files.write("/opt/mofed/bin/ib_write_bw", "").ok());
  CHECK(look_tools(files, "/bin:/opt/mofed/bin")["perftest"] == true);
  CHECK(look_tools(files, "")["perftest"] == false);
  CHECK(look_tools(files, "")["libibverbs"] == false);
  CHECK(look_tools(files, "")["verbs_providers"] == false);
  REQUIRE(files.write("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n").ok());
  CHECK(look_tools(files, "")["verbs_providers"] == true);
}

TEST_CASE("look: a glibc older than 2.34 is known by the name of its file", "[hosts]") {
  for (const char* old : {"/lib64", "/lib/x86_64-linux-gnu"}) {
    const TempDir dir;
    const Files files(dir.path("root"));
    const std::string library = std::string(old) + "/libc.so.6";
    CHECK(look_tools(files, "")["glibc_2_34"] == true);  // unknown: nothing is foretold
    REQUIRE(files.write(library, "").ok());
    CHECK(look_tools(files, "")["glibc_2_34"] == true);
    REQUIRE(files.symlink("libc-2.28.so", library).ok());
    CHECK(look_tools(files, "")["glibc_2_34"] == false);
  }
}
