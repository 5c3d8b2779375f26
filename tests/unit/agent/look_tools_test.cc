// What a host lacks for tests of several hosts, over made-up files.
#include "agent/measuring/look_tools.h"

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
  CHECK(closing_firewall(files) == "firewalld");
  put("/etc/firewalld/zones/public.xml", "<zone><port port=\"7490-7560\" protocol=\"tcp\"/></zone>");
  CHECK(closing_firewall(files).empty());
}

TEST_CASE("look: perftest is found in the path, and in the usual folders", "[hosts]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  CHECK(look_tools(files, "/opt/mofed/bin")["perftest"] == false);
  REQUIRE(files.write("/opt/mofed/bin/ib_write_bw", "").ok());
  CHECK(look_tools(files, "/bin:/opt/mofed/bin")["perftest"] == true);
  CHECK(look_tools(files, "")["perftest"] == false);
  CHECK(look_tools(files, "")["libibverbs"] == false);
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
