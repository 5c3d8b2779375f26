#include "base/facts_text.h"

#include "base/json_dump.h"
#include "tests/catch.h"

using namespace muster;

namespace {

std::string text_of(const std::string& serial) {
  HardwareFacts facts;
  facts.system.serial = serial;
  return dump_ascii(to_json(facts));
}

}  // namespace

TEST_CASE("facts text: copies share what is parsed once", "[store]") {
  const FactsText text = text_of("SN1");
  const FactsText copy = text;
  REQUIRE(text.facts());
  CHECK(text.facts()->system.serial == "SN1");
  CHECK(copy.facts() == text.facts());
  CHECK(copy == text);
}

TEST_CASE("facts text: its digest is that of what it says", "[store]") {
  const FactsText text = text_of("SN1");
  CHECK(FactsText("  " + text.text() + "\n").digest() == text.digest());
  CHECK_FALSE(FactsText(text_of("SN2")).digest() == text.digest());
  CHECK_FALSE(text.digest().empty());
}

TEST_CASE("facts text: of what is no inventory there are no facts", "[store]") {
  for (const FactsText& none : {FactsText(), FactsText(""), FactsText("{"), FactsText("3"),
                                FactsText(R"({"kernel": 3})"), FactsText(R"({"kernel": "secret:bmc"})")}) {
    CAPTURE(none.text());
    CHECK_FALSE(none.facts());
    CHECK(none.digest().empty());
  }
  CHECK(FactsText("").empty());
  CHECK_FALSE(FactsText("{").empty());
}
