// Where a playbook may name a secret.
#include "controller/spec/playbook.h"
#include "controller/spec/reader/own_playbooks.h"
#include "tests/catch.h"

namespace muster {
namespace {

using Places = std::vector<std::string>;

// Where the errors of a playbook with a step of these lines are.
Places wrong_at(const std::string& lines) {
  Places out;
  const std::string text = "playbook: site\nsteps:\n  - name: one\n" + lines;
  for (const SpecError& error : parse_own_playbook({"site.yaml", text}).errors) {
    UNSCOPED_INFO(error.message);
    out.push_back(error.path);
  }
  return out;
}

}  // namespace

TEST_CASE("a secret is refused in arguments, checks and wait_for when the playbook is read", "[secrets]") {
  CHECK(wrong_at("    module: command\n    params: { argv: [ a, \"secret:app\" ], creates: /x }\n") ==
        Places{"steps[0].params.argv"});
  CHECK(wrong_at("    module: command\n    params: { argv: [ a ], check: [ b, \"secret:app\" ] }\n") ==
        Places{"steps[0].params.check"});
  CHECK(wrong_at("    module: wait_for\n    params: { command: [ a, \"secret:app\" ] }\n") ==
        Places{"steps[0].params.command"});
  CHECK(wrong_at("    module: file\n    params: { path: /x, content: x }\n"
                 "    verify: { module: wait_for, params: { command: [ a, \"secret:app\" ] } }\n") ==
        Places{"steps[0].verify.params.command"});
  CHECK(wrong_at("    module: timer\n    params: { name: a, argv: [ a, \"secret:{{vars.app}}\" ] }\n") ==
        Places{"steps[0].params.argv"});
}

TEST_CASE("a secret is taken as environment, standard input and content of a file", "[secrets]") {
  CHECK(wrong_at("    module: command\n    params: { argv: [ a ], check: [ b ], input: \"secret:app\", "
                 "env: { APP: \"secret:app\" } }\n")
            .empty());
  CHECK(wrong_at("    module: file\n    params: { path: /x, content: \"secret:{{vars.app}}\" }\n").empty());
  CHECK(wrong_at("    module: line\n    params: { path: /x, line: \"secret:app\" }\n").empty());
  CHECK(wrong_at("    module: config\n    params: { path: /x, format: json, values: { a: { b: \"secret:app\" "
                 "} } }\n")
            .empty());
}

TEST_CASE("a step of phase image takes no secret at all", "[secrets]") {
  const std::string file = "    module: file\n    params: { path: /x, content: \"secret:app\" }\n";
  CHECK(wrong_at("    phase: node\n" + file).empty());
  CHECK(wrong_at("    phase: image\n" + file) == Places{"steps[0].params"});
  CHECK(check_image_step("secret:app").error().code == Code::invalid);
  CHECK(check_image_step("no secret:app").ok());
}

TEST_CASE("each parameter of each module takes a secret only where it is declared so", "[secrets]") {
  size_t takes = 0;
  for (const auto& [module, parameters] : module_list())
    for (const auto& [name, parameter] : parameters) {
      INFO(module << "." << name);
      for (const Json& value : {Json("secret:app"), Json::array({"x", "secret:app"}),
                                Json::object({{"a", Json::array({"secret:app"})}})}) {
        CHECK(why_no_secret(module, name, value).empty() == parameter.secret);
        CHECK(check_secrets(module, Json::object({{name, value}})).ok() == parameter.secret);
      }
      CHECK(why_no_secret(module, name, "no secret:app").empty());
      takes += parameter.secret;
    }
  CHECK(takes >= 8);
  CHECK_FALSE(why_no_secret("no_such_module", "x", "secret:app").empty());
  CHECK_FALSE(why_no_secret("file", "no_such_parameter", "secret:app").empty());
}

}  // namespace muster
