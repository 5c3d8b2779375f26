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

TEST_CASE("lost reason: OpenSSH's words become codes", "[hosts]") {
  const auto code = [](const std::string& err) { return lost_reason({255, err, "", false}).code; };
  CHECK(code("ops@gpu01: Permission denied (publickey,gssapi-with-mic).\r\n") == Code::denied);
  CHECK(code("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n") ==
        Code::denied);
  CHECK(code("No ED25519 host key is known for gpu01 and you have requested strict checking.\n"
             "Host key verification failed.\n") == Code::denied);
  CHECK(code("Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures\n") ==
        Code::denied);
  CHECK(code("ssh: Could not resolve hostname gpu01: Temporary failure in name resolution\n") ==
        Code::not_found);
  for (const char* away : {"Connection refused", "Connection timed out", "No route to host"})
    CHECK(code(std::string("ssh: connect to host gpu01 port 22: ") + away + "\n") == Code::unavailable);
  CHECK(code("/home/a/.ssh/config: terminating, 1 bad configuration options\n") == Code::invalid);
  CHECK(code("kex_exchange_identification: Connection closed by remote host\n") == Code::unavailable);
  // What a shell cannot write is no refused login.
  CHECK(code("/bin/sh: 1: cannot create /x: Permission denied\n") == Code::unavailable);
}

TEST_CASE("lost reason: which key, and the last line where there is no better one", "[hosts]") {
  const Error changed = lost_reason({255, "IDENTIFICATION HAS CHANGED", "", false});
  CHECK(changed.code == Code::unavailable);  // not ssh's words
  CHECK(lost_reason({1, "first\nlast\x1b[0m  \n\n", "out", false}).message == "last[0m");
  CHECK(lost_reason({1, " \n", "said on standard output", false}).message == "said on standard output");
  CHECK(lost_reason({127, "sh: 1: srun: not found\n", "", false}).code == Code::failed);
  CHECK(lost_reason({9, "", "", false}).message.find('9') != std::string::npos);
  CHECK(lost_reason({255, "ops@gpu01: Permission denied (publickey).", "", true}).code == Code::unavailable);
  CHECK(last_line(std::string(1000, 'x')).size() == 300);
}
