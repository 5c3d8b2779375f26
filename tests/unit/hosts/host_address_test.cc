// Where hosts reach one another: what decides, and that only hosts for which nothing fits are refused.
#include "controller/hosts/host_address.h"

#include "tests/catch.h"

using namespace muster;

namespace {

using Own = std::vector<std::string>;
using Addresses = std::map<std::string, std::string>;

Addresses chosen(const std::vector<HostAddresses>& hosts) {
  const auto out = choose_addresses(hosts, true);
  CHECK(out.refused.empty());
  return out.address;
}

}  // namespace

TEST_CASE("address: the list's, then the looked up one, then the one of sshd", "[hosts]") {
  CHECK(chosen({{"a", "10.0.0.1", "10.0.9.1", "10.0.8.1"},
                {"b", "", "10.0.0.2", "10.0.8.2"},
                {"c", "", "", "10.0.0.3"}}) ==
        Addresses{{"a", "10.0.0.1"}, {"b", "10.0.0.2"}, {"c", "10.0.0.3"}});
  // One that the host does not have is a gateway's: where the host has another, that is taken.
  CHECK(chosen({{"a", "", "52.1.1.1", "172.31.0.1", Own{"172.31.0.1/20"}},
                {"b", "", "52.1.1.2", "172.31.0.2", Own{"172.31.0.2/20"}}}) ==
        Addresses{{"a", "172.31.0.1"}, {"b", "172.31.0.2"}});
  CHECK(chosen({{"a", "", "52.1.1.1", "", Own{"169.254.1.1/16"}}, {"b", "", "52.1.1.2"}}) ==
        Addresses{{"a", "52.1.1.1"}, {"b", "52.1.1.2"}});
}

TEST_CASE("address: of a host's own, the one in the network that all share", "[hosts]") {
  // Container bridges have one address everywhere; loopback and link-local ones are none.
  CHECK(chosen({{"a", "", "127.0.1.1", "127.0.0.1", Own{"172.17.0.1/16", "10.1.0.1/24", "192.168.0.1/16"}},
                {"b", "", "", "", Own{"172.17.0.1/16", "10.2.0.1/24", "192.168.0.2/16"}}}) ==
        Addresses{{"a", "192.168.0.1"}, {"b", "192.168.0.2"}});
  // Of two such networks, the one that the others were found in.
  CHECK(chosen({{"a", "", "127.0.1.1", "", Own{"10.1.0.1/24", "192.168.0.1/16"}},
                {"b", "", "192.168.0.2", "", Own{"10.1.0.2/24", "192.168.0.2/16"}},
                {"c", "", "192.168.0.3", "", Own{"10.1.0.3/24", "192.168.0.3/16"}}})["a"] == "192.168.0.1");
  // Racks with networks of their own stay as they were found.
  CHECK(chosen({{"a", "", "10.1.0.1", "", Own{"10.1.0.1/24", "192.168.0.1/16"}},
                {"b", "", "10.2.0.1", "", Own{"10.2.0.1/24", "192.168.0.2/16"}}})["b"] == "10.2.0.1");
}

TEST_CASE("address: a host for which nothing fits is refused alone, if an address is needed", "[hosts]") {
  const std::vector<HostAddresses> hosts = {
      {"a", "", "10.0.0.1"}, {"b", "", "10.0.0.2"}, {"c", "", "127.0.1.1"}};
  const auto needed = choose_addresses(hosts, true);
  CHECK(needed.refused.size() == 1);
  REQUIRE(needed.refused.count("c") == 1);
  CHECK(needed.refused.at("c").find("127.0.1.1") != std::string::npos);
  CHECK(needed.address == Addresses{{"a", "10.0.0.1"}, {"b", "10.0.0.2"}});
  const auto not_needed = choose_addresses(hosts, false);
  CHECK(not_needed.refused.empty());
  CHECK(not_needed.address.size() == 3);
  CHECK(choose_addresses({hosts[2]}, true).address == Addresses{{"c", "127.0.0.1"}});

  const auto far =
      choose_addresses({{"a", "", "10.0.0.1"}, {"b", "", "10.0.0.2"}, {"c", "", "192.168.0.1"}}, true);
  CHECK(far.refused.size() == 1);
  CHECK(far.refused.count("c") == 1);
  const auto same = choose_addresses({{"a", "10.0.0.1"}, {"b", "10.0.0.1"}, {"c", "10.0.0.3"}}, true);
  CHECK(same.refused.size() == 2);
  CHECK(same.address == Addresses{{"c", "10.0.0.3"}});
}

TEST_CASE("address: which ones can be a single host's", "[hosts]") {
  for (const char* good : {"10.0.0.1", "172.17.0.1", "52.1.2.3"}) CHECK(reaches_one_host(good));
  for (const char* bad :
       {"", "gpu01", "127.0.1.1", "0.0.0.0", "169.254.1.1", "224.0.0.1", "255.255.255.255", "fd00::1"})
    CHECK_FALSE(reaches_one_host(bad));
}
