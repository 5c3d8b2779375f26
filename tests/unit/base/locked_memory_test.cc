// How much memory a process may lock, by the files of /proc.
#include "sys/locked_memory.h"

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

TEST_CASE("locked memory: by the limit, unless the process has the capability", "[sys]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  const auto bytes = [&](const std::string& limit, const std::string& capabilities) {
    REQUIRE(files
                .write("/proc/self/limits",
                       "Max processes             96364                96364                processes \n"
                       "Max locked memory         " +
                           limit + "              65536                bytes     \n")
                .ok());
    REQUIRE(files.write("/proc/self/status", "Name:\tx\nCapEff:\t" + capabilities + "\n").ok());
    return locked_memory(files);
  };
  CHECK_FALSE(locked_memory(files));
  CHECK(bytes("65536", "0000000000000000") == uint64_t{65536});
  CHECK(bytes("unlimited", "0000000000000000") == kUnlimited);
  CHECK(bytes("65536", "000001ffffffffff") == kUnlimited);
  CHECK(bytes("65536", "00000000a80425fb") == uint64_t{65536});  // root in a container of Docker
  CHECK_FALSE(bytes("many", "0000000000000000"));

  CHECK(too_little_locked(65536).find("64 KiB") != std::string::npos);
  for (const uint64_t enough : {uint64_t{8} << 20, kUnlimited}) CHECK(too_little_locked(enough).empty());
  CHECK(too_little_locked({}).empty());
}
