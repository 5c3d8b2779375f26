#include "base/record.h"

#include <map>
#include <optional>
#include <set>

#include "base/json_dump.h"
#include "base/time.h"
#include "tests/catch.h"

namespace muster {
namespace {

enum class Colour { red, green };
constexpr Words<Colour, 2> kColours = {{{Colour::red, "red"}, {Colour::green, "green"}}};
MUSTER_WORDS(Colour, kColours)

struct Wheel {
  std::string serial;
  double pressure = 2.5;
  bool spare = false;
};
MUSTER_RECORD(Wheel, serial, opt(pressure), sparse(spare))

struct Size {
  int64_t length = 0, width = 0;
};
MUSTER_RECORD(Size, length, width)

struct Cart {
  std::string name;
  Colour colour = Colour::red;
  std::vector<Wheel> wheels;
  std::map<std::string, Wheel> by_place;
  std::map<std::string, int> counts;
  std::optional<Wheel> steering;
  std::optional<double> load;
  std::vector<std::string> faulty_parts;
  std::set<std::string> tags;
  DurationMs timeout = 5 * kMinute;
  Size size;
  Json extra;
};
MUSTER_RECORD(Cart, name, colour, wheels, by_place, counts, steering, load, as(faulty_parts, "blame"),
              sparse(tags), opt(timeout, "timeout_ms"), flat(size), extra)

struct Message {
  int version = 0;
  std::string text = "none";
};
MUSTER_RECORD(Message, lenient, version, opt(text))

struct Disk {
  uint64_t bytes = 0;
};
MUSTER_RECORD(Disk, bytes)

struct Envelope {
  int version = 0;
  Cart cart;
  const Json* rest = nullptr;
};
MUSTER_RECORD(Envelope, version, flat(cart), rest)

Cart a_cart() {
  Cart cart;
  cart.name = "c1";
  cart.colour = Colour::green;
  cart.wheels = {{"w1", 3.5, true}, {"w2"}};
  cart.by_place = {{"left", {"w3"}}};
  cart.counts = {{"nuts", 4}};
  cart.steering = Wheel{"w4"};
  cart.faulty_parts = {"axle"};
  cart.size = {3, 2};
  cart.extra = {{"any", nullptr}};
  return cart;
}

constexpr const char* kCart =
    R"({"blame":["axle"],"by_place":{"left":{"pressure":2.5,"serial":"w3"}},"colour":"green",)"
    R"("counts":{"nuts":4},"extra":{"any":null},"length":3,"load":null,"name":"c1",)"
    R"("steering":{"pressure":2.5,"serial":"w4"},"timeout_ms":300000,)"
    R"("wheels":[{"pressure":3.5,"serial":"w1","spare":true},{"pressure":2.5,"serial":"w2"}],"width":2})";

Json json_of(const std::string& text) {
  auto json = parse_json(text);
  REQUIRE(json.ok());
  return *json;
}

template <typename T>
std::string problems(const Json& json) {
  const auto read = read_record<T>(json, "cart");
  if (read.ok()) return "";
  CHECK(read.error().code == Code::invalid);
  return read.error().message;
}

}  // namespace

TEST_CASE("a record is written as its fields, and read back equal", "[base]") {
  CHECK(dump_json(record_json(a_cart())) == kCart);
  const auto read = read_record<Cart>(json_of(kCart), "cart");
  REQUIRE(read.ok());
  CHECK(dump_json(record_json(*read)) == kCart);
  CHECK(read->colour == Colour::green);
  CHECK(read->wheels.at(0).spare);
  CHECK(read->wheels.at(1).pressure == 2.5);
  CHECK(read->steering->serial == "w4");
  CHECK_FALSE(read->load.has_value());
  CHECK(read->size.width == 2);
  CHECK(read->faulty_parts == std::vector<std::string>{"axle"});
}

TEST_CASE("a field of a record that may be absent keeps its initialiser", "[base]") {
  Json json = json_of(kCart);
  for (const char* key : {"timeout_ms", "steering", "load", "extra"}) json.erase(key);
  const auto read = read_record<Cart>(json, "cart");
  REQUIRE(read.ok());
  CHECK(read->timeout == 5 * kMinute);
  CHECK_FALSE(read->steering.has_value());
  CHECK(read->extra.is_null());
  json["tags"] = {"b", "a"};
  CHECK(read_record<Cart>(json, "cart")->tags == std::set<std::string>{"a", "b"});
}

TEST_CASE("reading a record reports all of its problems with their paths", "[base]") {
  Json json = json_of(kCart);
  json["colour"] = "blue";
  json["wheels"][1]["serial"] = nullptr;
  json["by_place"]["left"].erase("serial");
  json["by_place"]["left"]["size"] = 1;
  json["counts"]["nuts"] = "four";
  json["steering"] = 5;
  json["tags"] = Json::object();
  json.erase("blame");
  json["width"] = "wide";
  CHECK(problems<Cart>(json) ==
        "cart.colour: unknown word 'blue'; cart.wheels[1].serial: wrong type (null); "
        "cart.by_place.left.serial: missing; cart.by_place.left.size: unknown key; "
        "cart.counts.nuts: wrong type (string); cart.steering: expected an object, got number; "
        "cart.blame: missing; cart.tags: wrong type (object); cart.width: wrong type (string)");
  CHECK(problems<Cart>(Json::array()).find("cart: expected an object, got array") == 0);
  CHECK(read_record<Disk>(json_of(R"({"bytes": -1})"), "disk").error().message == "disk.bytes: out of range");
}

TEST_CASE("a number that its member cannot hold is a problem, not another number", "[base]") {
  for (const char* version : {"2147483648", "4294967297", "-2147483649", "18446744073709551615", "1e300",
                              "-1e300", "2147483648.0"}) {
    CAPTURE(version);
    CHECK(problems<Message>(json_of(std::string(R"({"version": )") + version + "}")) ==
          "cart.version: out of range");
  }
  for (const char* bytes : {"-1", "-1e300", "1e300", "18446744073709551616", "-9223372036854775808"}) {
    CAPTURE(bytes);
    CHECK_FALSE(read_record<Disk>(json_of(std::string(R"({"bytes": )") + bytes + "}"), "disk").ok());
  }
  CHECK(problems<Message>(json_of(R"({"version": 2147483647})")).empty());
  CHECK(problems<Message>(json_of(R"({"version": -2147483648})")).empty());
  CHECK(problems<Message>(json_of(R"({"version": 7.9})")).empty());
  CHECK(read_record<Disk>(json_of(R"({"bytes": 18446744073709551615})"), "disk")->bytes == UINT64_MAX);
}

TEST_CASE("an unknown key is an error in a strict record only", "[base]") {
  CHECK(problems<Wheel>({{"serial", "w"}, {"colour", "red"}}) == "cart.colour: unknown key");
  CHECK(problems<Message>({{"version", 2}, {"later", true}}).empty());
  CHECK(problems<Message>({{"later", true}}) == "cart.version: missing");
}

TEST_CASE("problems of a hostile message are counted, not all named", "[base]") {
  Json wheels = Json::array();
  for (int i = 0; i < 1000; ++i) wheels.push_back(i);
  Json json = json_of(kCart);
  json["wheels"] = wheels;
  const std::string text = problems<Cart>(json);
  CHECK(text.size() < 2000);
  CHECK(text.find("and 980 more") != std::string::npos);
}

TEST_CASE("fields of a flat record stand in the object around it, and raw ones are not copied", "[base]") {
  Json json = json_of(kCart);
  json["version"] = 2;
  json["rest"] = {1, 2};
  const auto read = read_record<Envelope>(json, "envelope");
  REQUIRE(read.ok());
  CHECK(read->version == 2);
  CHECK(read->cart.name == "c1");
  CHECK(read->rest == &json["rest"]);
  Json back = record_json(*read);
  CHECK_FALSE(back.contains("rest"));
  back.erase("version");
  CHECK(dump_json(back) == kCart);
}

}  // namespace muster
