// The way into the RAM system: errors of kexec that leave another way.
#include <sstream>

#include "agent/kexec.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

// Lines "NAME ERRNO denied|failed".
int check_answers(const std::string& name) {
  std::istringstream lines(field_input(name, "answers.txt"));
  int tried = 0;
  for (std::string word, error, code; lines >> word >> error >> code; ++tried) {
    INFO(word);
    const Status answer = kexec_refusal(std::stoi(error));
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code == (code == "denied" ? Code::denied : Code::failed));
  }
  return tried;
}

}  // namespace

FIELD_CASE("kexec-address-not-available") { CHECK(check_answers("kexec-address-not-available") == 3); }
FIELD_CASE("kexec-invalid-argument") { CHECK(check_answers("kexec-invalid-argument") == 3); }
FIELD_CASE("kexec-no-file-load") { CHECK(check_answers("kexec-no-file-load") == 2); }
FIELD_CASE("kexec-not-implemented") { CHECK(check_answers("kexec-not-implemented") == 3); }

}  // namespace muster::tests
