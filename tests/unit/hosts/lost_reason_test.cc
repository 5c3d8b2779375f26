// Which reason comes of what a command wrote, and whether another try can help.
#include "controller/hosts/lost_reason.h"

#include "sys/os.h"
#include "tests/catch.h"

using namespace muster;

namespace {

ErrorText text_of(const std::string& err) {
  ErrorText out;
  out.take(err);
  return out;
}

Error reason_of(const std::string& err, int status = 255, const std::string& last_out = "",
                bool shell_ran = false) {
  return lost_reason({status, text_of(err), last_out, shell_ran, false});
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// How ssh gets until the key was accepted, with the site's banner; a banner need not end its line.
std::string until_the_key(const std::string& banner) {
  return "debug1: Connecting to gpu01 [10.0.0.1] port 22.\r\n"
         "debug1: SSH2_MSG_SERVICE_ACCEPT received\r\n" +
         banner +
         "debug1: Authentications that can continue: publickey,password\r\n"
         "debug1: Next authentication method: publickey\r\n"
         "debug1: Offering public key: /home/a/.ssh/id_ed25519 ED25519 SHA256:x\r\n"
         "debug1: Server accepts key: /home/a/.ssh/id_ed25519 ED25519 SHA256:x\r\n";
}
const std::string kBanner = "Authorized use only.\nYour account has expired, should you not belong here.\n";
const std::string kClosed = "Connection closed by 10.0.0.1 port 22\r\n";
const std::string kInside =
    "Authenticated to gpu01 ([10.0.0.1]:22) using \"publickey\".\r\ndebug1: Entering interactive "
    "session.\r\n";

}  // namespace

TEST_CASE("lost reason: OpenSSH's words become codes", "[hosts]") {
  const auto code = [](const std::string& err) { return reason_of(err).code; };
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
  CHECK(code("Bad owner or permissions on /home/a/.ssh/config\r\n") == Code::invalid);
  CHECK(code("Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: "
             "ssh-rsa\r\n") == Code::denied);
  CHECK(code("kex_exchange_identification: Connection closed by remote host\n") == Code::unavailable);
  const Error proxy = reason_of("fork failed: Resource temporarily unavailable\r\n");
  CHECK(proxy.code == Code::unavailable);
  CHECK(proxy.message == kNoMoreProcesses);
  // A limit of the host.
  CHECK(reason_of("bash: fork: retry: Resource temporarily unavailable\n").message != kNoMoreProcesses);
  // What a shell cannot write is no refused login.
  CHECK(code("/bin/sh: 1: cannot create /x: Permission denied\n") == Code::unavailable);
}

TEST_CASE("lost reason: PAM's words, whether they are known or not, and no banner", "[hosts]") {
  const std::string banner = GENERATE(std::string(), kBanner, kBanner + "No end of line.");
  const auto said = [&](const std::string& words) {
    return reason_of(until_the_key(banner) + words + kClosed);
  };
  const Error booting = said("\"System is booting up. Come back later. See pam_nologin(8).\"\n\n");
  CHECK(booting.code == Code::unavailable);
  CHECK(has(booting.message, "System is booting up"));
  const Error expired = said("Your account has expired; please contact your administrator.\n");
  CHECK(expired.code == Code::denied);
  CHECK(has(expired.message, "contact your administrator"));
  CHECK(said("Access denied: user ops (uid=1000) has no active jobs on this node.\n").code == Code::denied);
  CHECK(said("Access denied by pam_slurm_adopt: you have no active jobs on this node\n").code ==
        Code::denied);
  // pam_sss, of an account that has expired in the directory; the server's words may be missing.
  CHECK(said("Permission denied. Server message: account 4711 is closed\n").code == Code::denied);
  CHECK(said("Permission denied. \n").message == "Permission denied.");
  CHECK(said("Too many logins for 'ops'.\n").code == Code::unavailable);
  const Error unknown = said("Wartung bis 18 Uhr.\nFragen an die Rechnerr\xc3\xa4ume.\n");
  CHECK(unknown.code == Code::unavailable);
  CHECK(unknown.message == "Fragen an die Rechnerr\xc3\xa4ume.");
  // pam_access writes nothing.
  const Error silent = said("");
  CHECK(silent.code == Code::denied);
  CHECK_FALSE(has(silent.message, "Connection closed"));
  CHECK_FALSE(has(silent.message, "Authorized"));
}

TEST_CASE("lost reason: a password or code as well", "[hosts]") {
  const Error second = reason_of(until_the_key(kBanner) +
                                 "Authenticated using \"publickey\" with partial success.\r\n"
                                 "debug1: Authentications that can continue: keyboard-interactive\r\n"
                                 "debug1: No more authentication methods to try.\r\n"
                                 "ops@gpu01: Permission denied (keyboard-interactive).\r\n");
  CHECK(second.code == Code::denied);
  CHECK(has(second.message, "ControlMaster"));
  const Error password = reason_of(
      "debug1: Authentications that can continue: password\r\n"
      "ops@gpu01: Permission denied (password).\r\n");
  CHECK(password.code == Code::denied);
  CHECK(has(password.message, "(password)"));
}

TEST_CASE("lost reason: what sshd sends instead of its version", "[hosts]") {
  const Error lost = reason_of(
      "debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups\r\n"
      "kex_exchange_identification: Connection closed by remote host\r\n" +
      kClosed);
  CHECK(lost.code == Code::unavailable);
  CHECK(lost.message == "Exceeded MaxStartups");
}

TEST_CASE("lost reason: what a jump host says of the host behind it", "[hosts]") {
  // How ssh ends in each of these cases, whatever the reason.
  const std::string ending =
      "kex_exchange_identification: Connection closed by remote host\r\n"
      "Connection closed by UNKNOWN port 65535\r\n";
  const auto behind = [&](const std::string& words) {
    return reason_of("channel 0: open failed: " + words + "\r\nstdio forwarding failed\r\n" + ending);
  };
  for (const std::string away :
       {"No route to host", "Connection refused", "Connection timed out", "Host is down"}) {
    const Error lost = behind("connect failed: " + away);
    CHECK(lost.code == Code::unavailable);
    CHECK(has(lost.message, away));
  }
  CHECK(behind("connect failed: Name or service not known").code == Code::not_found);
  CHECK(behind("connect failed: Temporary failure in name resolution").code == Code::unavailable);
  CHECK(behind("administratively prohibited: open failed").code == Code::denied);
  CHECK(has(reason_of("stdio forwarding failed\r\n" + ending).message, "stdio forwarding failed"));
  const Error unknown =
      reason_of("ssh: Could not resolve hostname bastion: Name or service not known\r\n" + ending);
  CHECK(unknown.code == Code::not_found);
  CHECK(has(unknown.message, "bastion"));
  CHECK(has(reason_of(ending).message, "MaxStartups"));
}

TEST_CASE("lost reason: a login that works, and a shell that ends before it does anything", "[hosts]") {
  // pam_nologin writes to root, too, and lets it in.
  const std::string inside = until_the_key(kBanner) + "System is booting up. See pam_nologin(8).\n" + kInside;
  const std::string sent =
      "Transferred: sent 3512, received 3504 bytes, in 0.1 seconds\r\n"
      "Bytes per second: sent 35120.1, received 35040.1\r\n";
  CHECK(reason_of(inside + sent, 0).code == Code::failed);
  CHECK(reason_of(inside + sent, 1).code == Code::failed);
  CHECK(has(reason_of(inside, 0, "Welcome").message, "Welcome"));
  CHECK(reason_of(inside, 1, "Welcome").message == "Welcome");
  CHECK(reason_of(inside, 255).code == Code::unavailable);
  // In place of the shell, tmux and screen: theirs is no reason to log in again.
  for (const char* words : {"open terminal failed: not a terminal\n", "Must be connected to a terminal.\n"}) {
    CHECK(reason_of(inside + words, 1).code == Code::failed);
    CHECK(has(reason_of(inside + words, 1).message, "bashrc"));
  }
  // Behind the shell's answer a status says nothing about start-up files.
  CHECK(reason_of("", 0, "", true).code == Code::unavailable);
  CHECK(has(reason_of("", 9, "", true).message, "9"));
  ErrorText err = text_of(inside);
  CHECK(err.key_accepted());
  CHECK(err.logged_in());
  err.take(".bashrc: line 7: module: timed out\n");
  err.forget();
  CHECK(err.words().empty());
  CHECK(lost_reason({255, err, "", true, true}).message == "the connection was lost");
  err.take("client_loop: send disconnect: Broken pipe\r\n" + sent);
  CHECK(has(lost_reason({255, err, "", true, true}).message, "Broken pipe"));
  CHECK_FALSE(has(lost_reason({255, err, "", true, true}).message, "Bytes per second"));
}

TEST_CASE("lost reason: which key, and the last line where there is no better one", "[hosts]") {
  CHECK(reason_of("IDENTIFICATION HAS CHANGED").code == Code::unavailable);  // not ssh's words
  CHECK(reason_of("first\nlast\x1b[0m  \n\n", 1, "out").message == "last");
  CHECK(reason_of(" \n", 1, "said on standard output").message == "said on standard output");
  CHECK(reason_of("sh: 1: srun: not found\n", 127).code == Code::failed);
  CHECK(has(reason_of("", 9).message, "9"));
  CHECK(lost_reason({255, text_of("ops@gpu01: Permission denied (publickey)."), "", true, true}).code ==
        Code::unavailable);
  CHECK(reason_of("sudo: a password is required\n", 1).code == Code::denied);
}

TEST_CASE("lost reason: pieces of any size are one text", "[hosts]") {
  const std::string all = until_the_key(kBanner) + "Go away.\n" + kClosed;
  ErrorText pieces;
  for (const char c : all) pieces.take(std::string(1, c));
  CHECK(pieces.words() == text_of(all).words());
  CHECK(text_of(all + "debug1: half a li").words() == text_of(all).words());
  pieces.take(std::string(100000, 'x'));
  CHECK(pieces.words().size() < 10000);
}

TEST_CASE("lost reason: text for people has no bytes of programs", "[hosts]") {
  CHECK(one_line("a\tb\r\n c\x07") == "a b c");
  CHECK(one_line("\x1b[1;31mred\x1b[0m \x1b(Bbox") == "red box");
  CHECK(one_line("gr\xc3\xbc\xc3\x9f Gott \xe2\x82\xac \xf0\x9f\x90\x9f") ==
        "gr\xc3\xbc\xc3\x9f Gott \xe2\x82\xac \xf0\x9f\x90\x9f");
  CHECK(one_line("one \xfc byte of Latin-1") == "one byte of Latin-1");
  for (const char* broken :
       {"\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xc2\x9b", "\x80", "\xe2\x80\xae"})
    CHECK(one_line(broken) == "");
  std::string program;
  for (int i = 0; i < 2000; ++i) program += static_cast<char>(i * 7919 % 251);
  CHECK(one_line(program) == "");
  CHECK(last_line("last words\n" + program) == "last words");
  CHECK(last_line(std::string(1000, 'x')).size() == 300);
}
