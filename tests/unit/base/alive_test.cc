#include "base/alive.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"

using namespace muster;

namespace {

struct Owner {
  explicit Owner(std::vector<std::string>& lines) : log(lines) {}

  std::vector<std::string>& log;
  Alive alive = {};

  std::function<void(const std::string&)> callback() {
    return alive.wrap([this](const std::string& text) { log.push_back(text); });
  }
};

}  // namespace

TEST_CASE("a wrapped callback does nothing once its owner is gone", "[base]") {
  std::vector<std::string> log;
  auto owner = std::make_unique<Owner>(log);
  const auto callback = owner->callback();
  const auto watch = owner->alive.watch();
  callback("there");
  CHECK(*watch);
  owner.reset();
  callback("gone");
  CHECK_FALSE(*watch);
  CHECK(log == std::vector<std::string>{"there"});
}

TEST_CASE("an owner can end its callbacks before it is gone, and may be gone after one of them", "[base]") {
  std::vector<std::string> log;
  auto owner = std::make_unique<Owner>(log);
  std::function<void()> last = owner->alive.wrap([&owner] { owner.reset(); });
  last();
  last();
  CHECK(owner == nullptr);
  Owner other(log);
  const auto callback = other.callback();
  other.alive.end();
  callback("ended");
  CHECK(log.empty());
}
