// Text that is held once by all who have it, and JSON that is put together from it.
#include "controller/plan/shared_text.h"

#include "base/json_dump.h"
#include "controller/plan/action_params.h"
#include "controller/plan/cluster_context.h"
#include "tests/catch.h"

using namespace muster;

namespace {

// What is in hostile hardware and in honest names: quotes, control characters, DEL, two to four bytes, and
// bytes that are no UTF-8.
const std::string kHard = "a\"\\\n\x7f\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff\xc3z";

std::vector<NodeSpec> named(int count) {
  std::vector<NodeSpec> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].name = NodeName("node" + std::to_string(i));
    out[i].address = "10.20.0." + std::to_string(i + 11);
  }
  return out;
}

std::string joined(const ActionParams& params) {
  std::string out;
  params.each_piece([&](std::string_view piece) { out += piece; });
  return out;
}

}  // namespace

TEST_CASE("shared text is what its pieces are, and copies share them", "[plan][text]") {
  const auto whole = std::make_shared<const std::string>("0123456789");
  SharedText text(std::string("<"));
  text.add(whole, 2, 5);
  text.add(whole, 5, 5);  // nothing
  text.add_literal("|");
  SharedText twice = text;
  twice.add(text);
  twice.add(whole);
  CHECK(text.text() == "<234|");
  CHECK(text.size() == 5);
  CHECK(twice.text() == "<234|<234|0123456789");
  std::vector<const char*> sources;
  twice.each_source([&](std::string_view source) { sources.push_back(source.data()); });
  CHECK(std::count(sources.begin(), sources.end(), whole->data()) == 3);
  CHECK(text == SharedText(std::string("<234|")));

  TextPool pool;
  CHECK(pool.of("same") == pool.of("same"));
  CHECK(pool.of("same") != pool.of("other"));
}

TEST_CASE("a list of nodes without one of them is cut out of the text of all", "[plan][text]") {
  for (const int count : {0, 1, 2, 5}) {
    Spec spec;
    spec.nodes = named(count);
    const std::map<std::string, const HardwareFacts*> machines;
    ClusterContext cluster(spec, machines);
    const NodeSet& set = *cluster.of("").set;
    const NodeSpec stranger = named(count + 1).back();
    CHECK(set.text_without(stranger).text() == dump_json(set.nodes));
    CHECK(set.others_than(stranger) == static_cast<size_t>(count));
    std::vector<int> all;
    for (size_t i = 0; i < spec.nodes.size(); ++i) {
      Json others = set.nodes;
      others.erase(i);
      CHECK(set.text_without(spec.nodes[i]).text() == dump_json(others));
      CHECK(set.others_than(spec.nodes[i]) == others.size());
      CHECK(set.text_of({static_cast<int>(i)}).text() == dump_json(Json::array({set.nodes[i]})));
      all.push_back(static_cast<int>(i));
    }
    CHECK(set.text_of(all).text() == dump_json(set.nodes));
  }
}

TEST_CASE("JSON from pieces is what is written of the whole", "[plan][text]") {
  const Json whole = {{"a", 1}, {"m" + kHard, {{"x", kHard}}}, {"z", Json::array({1.5, nullptr, true})}};
  for (const auto& [key, value] : whole.items()) {
    Json others = whole;
    others.erase(key);
    const TextAround around = text_around(others, key);
    CHECK(around.before + dump_json(value) + around.after == dump_json(whole));
  }
  const TextAround alone = text_around(Json::object(), "k");
  CHECK(alone.before + "7" + alone.after == R"({"k":7})");
}

TEST_CASE("the digest of JSON from pieces is that of its ASCII form", "[plan][text]") {
  Json all = {
      {"plain", std::string(100'000, 'x')}, {kHard, kHard}, {"end", kHard + std::string(40'000, 'y')}};
  JsonDigest digest;
  const char* before = "{";
  for (const auto& [key, value] : all.items()) {
    digest.add(std::exchange(before, ","));
    digest.add(dump_json(Json(key)) + ":");
    digest.add(dump_json(value));
  }
  digest.add("}");
  CHECK(digest.finish() == sha256(dump_ascii(all)));
  digest.add("null");  // afresh
  CHECK(digest.finish() == sha256("null"));
}

TEST_CASE("parameters of an action are one object, however they are held", "[plan][text]") {
  const Json whole = {{"mode", "apply"},
                      {"ring", Json::array({{{"name", "n1"}}})},
                      {"steps", Json::array({{{"id", "a"}, {"params", {{"text", kHard}}}}, {{"id", "b"}}})},
                      {"stop_on_failure", true}};
  TextPool pool;
  const ActionParams held = ActionParams::with_texts(whole, pool),
                     again = ActionParams::with_texts(whole, pool);
  ActionParams plain;
  plain = whole;
  for (const auto& params : {held, plain}) {
    CHECK(joined(params) == dump_json(whole));
    CHECK(dump_json(params.json()) == dump_json(whole));
    CHECK(params["steps"].size() == 2);
    CHECK(params["steps"][1]["id"] == "b");
    CHECK(params["ring"][0]["name"] == "n1");
    CHECK(params["nothing"].is_null());
    CHECK(params.value("nothing", 5) == 5);
    CHECK(params.contains("ring"));
    CHECK_FALSE(params.contains("rings"));
  }
  CHECK(held == plain);
  CHECK(held.steps().size() == 2);
  CHECK(held.own() == Json{{"mode", "apply"}, {"stop_on_failure", true}});
  std::vector<const char*> texts, same;
  held.steps()[0].each_source([&](std::string_view text) { texts.push_back(text.data()); });
  again.steps()[0].each_source([&](std::string_view text) { same.push_back(text.data()); });
  CHECK(texts == same);

  CHECK(joined(ActionParams()) == "{}");
  ActionParams none;
  none.set_steps({});
  CHECK(joined(none) == R"({"steps":[]})");
  ActionParams strange;
  strange = Json::array({1});
  CHECK(joined(strange) == "[1]");
  CHECK_FALSE(strange.is_object());
}
