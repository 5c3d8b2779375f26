#include "controller/hosts/ssh_command.h"

#include <algorithm>

#include "tests/catch.h"

using namespace muster;
using StringList = std::vector<std::string>;

TEST_CASE("ssh command: a shell at the destination, without questions", "[hosts]") {
  const auto argv = ssh_command("ops@gpu01", "").value();
  CHECK(argv.front() == "ssh");
  CHECK(StringList(argv.end() - 3, argv.end()) == StringList{"--", "ops@gpu01", "/bin/sh"});
  CHECK(std::count(argv.begin(), argv.end(), "BatchMode=yes") == 1);
  CHECK(std::count(argv.begin(), argv.end(), "LogLevel=DEBUG1") == 1);  // lost_reason.h reads its lines
  CHECK(std::count(argv.begin(), argv.end(), "-F") == 0);
  const auto with_config = ssh_command("gpu01", "/etc/site").value();
  CHECK(StringList(with_config.begin(), with_config.begin() + 4) ==
        StringList{"ssh", "-T", "-F", "/etc/site"});
  CHECK(ssh_command("", "").error().code == Code::invalid);
  CHECK(ssh_command("-oProxyCommand=x", "").error().code == Code::invalid);
}

TEST_CASE("via command: words without a shell, the host in each", "[hosts]") {
  CHECK(via_command("srun --jobid 4711 -N1 -n1 -w {host}", "gpu01").value() ==
        StringList{"srun", "--jobid", "4711", "-N1", "-n1", "-w", "gpu01", "/bin/sh"});
  CHECK(via_command("  a\t'b {host}'  --x={host}.lan,{host} ", "n 1").value() ==
        StringList{"a", "b n 1", "--x=n 1.lan,n 1", "/bin/sh"});
  CHECK(via_command(R"(a "b \"c\" \d" e\ f '' $HOME *; {host})", "h").value() ==
        StringList{"a", "b \"c\" \\d", "e f", "", "$HOME", "*;", "h", "/bin/sh"});
  CHECK(via_command("ssh {host}", "{host}").value() == StringList{"ssh", "{host}", "/bin/sh"});
  for (const char* bad : {"", "  ", "ssh", "ssh 'a {host}", "ssh \"{host}", "ssh {host} \\"})
    CHECK(via_command(bad, "gpu01").error().code == Code::invalid);
}
