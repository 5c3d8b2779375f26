// Names of nodes.
#include "controller/spec/host_name.h"

#include "tests/catch.h"

using namespace muster;

TEST_CASE("a node's name is a host name of lower-case letters, digits and dashes", "[spec]") {
  for (const std::string& good :
       {std::string("a"), std::string("gpu01"), std::string("rack-2--gpu-7"), "a" + std::string(62, '1')})
    CHECK(wrong_host_name(good) == "");
  for (const std::string& bad :
       {std::string(""), std::string("-gpu"), std::string("gpu-"), std::string("1gpu"), std::string("Gpu"),
        std::string("gpu_1"), std::string("gpu.site"), std::string("gpu 1"), std::string("gp\xc3\xbc"),
        std::string("gpu1\n"), std::string("a\0b", 3), "a" + std::string(63, '1')})
    CHECK(wrong_host_name(bad) != "");
}
