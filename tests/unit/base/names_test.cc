#include "base/names.h"

#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/record.h"
#include "controller/executor/executor.h"
#include "tests/catch.h"

using namespace muster;

namespace {

struct Named {
  NodeName node;
  OrderId order;
};
MUSTER_RECORD(Named, node, sparse(order))

// Plain text, and each name in place of another: none of it compiles.
template <typename To, typename... From>
constexpr bool kNoneBecomes = (!std::is_convertible_v<From, To> && ...);
static_assert(kNoneBecomes<NodeName, OrderId, Digest, std::string, std::string_view>);
static_assert(kNoneBecomes<OrderId, NodeName, Digest, std::string, std::string_view>);
static_assert(kNoneBecomes<Digest, NodeName, OrderId, std::string, std::string_view>);
// Nor is one made from another by its constructor.
static_assert(!std::is_constructible_v<NodeName, OrderId> && !std::is_constructible_v<NodeName, Digest> &&
              !std::is_constructible_v<OrderId, NodeName> && !std::is_constructible_v<OrderId, Digest> &&
              !std::is_constructible_v<Digest, NodeName> && !std::is_constructible_v<Digest, OrderId>);

template <typename Function, typename... Arguments>
constexpr bool kTakes = std::is_invocable_v<Function, Arguments...>;
using Withdraw = decltype(&LinkPort::withdraw);
static_assert(kTakes<Withdraw, LinkPort&, NodeName, OrderId>);
static_assert(!kTakes<Withdraw, LinkPort&, OrderId, NodeName>);
static_assert(!kTakes<Withdraw, LinkPort&, NodeName, Digest>);
static_assert(!kTakes<Withdraw, LinkPort&, std::string, std::string>);
using LetGo = decltype(&LinkPort::let_go);
static_assert(kTakes<LetGo, LinkPort&, NodeName, OrderId> && !kTakes<LetGo, LinkPort&, OrderId, NodeName>);
using Expects = decltype(&Executor::expects);
static_assert(kTakes<Expects, Executor&, NodeName, OrderId>);
static_assert(!kTakes<Expects, Executor&, OrderId, NodeName>);
using Row = decltype(&Store::node);
static_assert(kTakes<Row, Store&, NodeName> && !kTakes<Row, Store&, Digest> && !kTakes<Row, Store&, OrderId>);

}  // namespace

TEST_CASE("a name reads as text, and has its JSON form") {
  const NodeName node = "gpu01";
  CHECK(node == "gpu01");
  CHECK(node != std::string("gpu02"));
  CHECK(node + "/image" == "gpu01/image");
  CHECK(fmt::format("{:>6}", node) == " gpu01");
  CHECK(std::map<std::string, int>{{"gpu01", 7}}.at(node) == 7);
  CHECK(record_json(Named{node, {}}) == Json{{"node", "gpu01"}});
  const auto read = read_record<Named>(Json{{"node", "gpu01"}, {"order", "1/a#1"}}, "named");
  REQUIRE(read.ok());
  CHECK(read->order == OrderId("1/a#1"));
  CHECK_FALSE(read_record<Named>(Json{{"node", 1}}, "named").ok());
}
