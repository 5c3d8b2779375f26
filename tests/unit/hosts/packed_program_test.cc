// Programs that lie packed beside themselves: used if they are what is beside them, and only then.
#include "controller/hosts/packed_program.h"

#include "base/gzip.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

const std::string kProgram(100000, 'a');

std::string sent(const TempDir& dir) {
  const auto packed = packed_program(Files(), dir.path("agent"));
  REQUIRE(packed.ok());
  CHECK(packed->size == kProgram.size());
  CHECK(gunzip(*packed->bytes, packed->size).value() == kProgram);  // whatever lies beside it
  return *packed->bytes;
}

}  // namespace

TEST_CASE("packed: a file beside the program is used if it is of this program", "[hosts]") {
  TempDir dir;
  dir.write("agent", kProgram);
  const std::string here = sent(dir);
  // The same program, packed by another system: a byte of the header, which no unpacker minds.
  std::string other = gzip(kProgram).value();
  other[9] = '\x07';
  REQUIRE(other != here);
  dir.write("agent.gz", other);
  CHECK(sent(dir) == other);
}

TEST_CASE("packed: one of another program, damaged or cut off is not sent", "[hosts]") {
  TempDir dir;
  dir.write("agent", kProgram);
  const std::string here = sent(dir), whole = gzip(kProgram).value();
  std::string changed = kProgram;
  changed.back() = 'b';
  for (const std::string& stale : {gzip(changed).value(), gzip(kProgram + "a").value(), gzip("a").value(),
                                   whole.substr(0, whole.size() / 2), whole + "x", std::string()}) {
    dir.write("agent.gz", stale);
    CHECK(sent(dir) == here);
  }
  CHECK_FALSE(packed_program(Files(), dir.path("none")).ok());
}
