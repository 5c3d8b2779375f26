#include "base/machine_uuid.h"

#include "tests/catch.h"

using namespace muster;

TEST_CASE("a machine is known by its UUID in either byte order and any case", "[base]") {
  Machines machines;
  machines.bind("12345678-9ABC-def0-1234-56789abcdef0", "gpu03");
  CHECK(machines.node_of("12345678-9abc-def0-1234-56789abcdef0") == "gpu03");
  CHECK(machines.node_of("78563412-BC9A-F0DE-1234-56789ABCDEF0") == "gpu03");
  CHECK(machines.node_of("12345678-9abc-def0-1234-56789abcdef1").empty());
  CHECK(machines.node_of("").empty());
}

TEST_CASE("a remark about a machine stands beside its node, or alone", "[base]") {
  Machines machines;
  machines.bind("12345678-9abc-def0-1234-56789abcdef0", "head01");
  machines.remark("78563412-BC9A-F0DE-1234-56789ABCDEF0", "own");  // the other byte order
  CHECK(machines.node_of("12345678-9abc-def0-1234-56789abcdef0") == "head01, own");
  machines.remark("12345678-9abc-def0-1234-56789abcdef1", "own");
  CHECK(machines.node_of("12345678-9abc-def0-1234-56789abcdef1") == "own");
  machines.remark("", "own");
  CHECK(machines.node_of("").empty());
}

TEST_CASE("a placeholder tells no machine apart", "[base]") {
  Machines machines;
  for (const std::string uuid :
       {"", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009"}) {
    CAPTURE(uuid);
    CHECK_FALSE(names_one_machine(uuid));
    machines.bind(uuid, "gpu03");
    CHECK(machines.node_of(uuid).empty());
  }
  CHECK(names_one_machine("00000000-0000-0000-0000-ac1f6b8e2f10"));  // made of a MAC address
}
