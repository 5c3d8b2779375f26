// The controller's own SSH keys: libssh, which this code does not use, reads what it writes.
#include "controller/trust/own_ssh_key.h"

#include "controller/ssh/ssh.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("a new SSH key is read by libssh, with the same public half", "[secret]") {
  const auto made = make_ssh_key();
  REQUIRE(made.ok());
  const auto line = public_ssh_key(*made, "muster-mpi");
  REQUIRE(line.ok());
  CHECK(*line == "ssh-ed25519 " + public_key_of(*made).value() + " muster-mpi");
  CHECK(*make_ssh_key() != *made);
}

TEST_CASE("the public half of a stored SSH key is read, and of nothing else", "[secret]") {
  // As libssh 0.10 wrote them: other line lengths, the same format.
  const std::string made = make_ssh_key().value();
  const std::string line = public_ssh_key(made, "x").value();
  std::string joined = made;
  for (size_t at = joined.find('\n', 40); at != std::string::npos && at + 30 < joined.size();
       at = joined.find('\n', at))
    joined.erase(at, 1);
  CHECK(public_ssh_key(joined, "x").value_or("") == line);
  for (const std::string& wrong : {std::string(), std::string("text"), made.substr(0, made.size() / 2),
                                   "x" + made, std::string(made).replace(60, 4, "AAAA")})
    CHECK(public_ssh_key(wrong, "x").error().code == Code::corrupt);
}
