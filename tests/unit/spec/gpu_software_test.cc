// The playbooks that exclude each other, and the branch that follows from a driver's version.
#include "controller/spec/gpu_software.h"

#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

struct Wishes {
  std::string baked = "base", played = "base", vars = "{}", own_vars = "{}";
};

ParsedSpec parsed(const Wishes& wishes) {
  return parse_spec(
      "cluster: x\nnetwork: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed } }\n"
      "images: { gpu: { recipe: debian-13, bake: [ " +
          wishes.baked +
          " ] } }\n"
          "nodes:\n  - { name: gpu01, role: gpu, mac: \"52:54:00:aa:00:01\", image: gpu, power: { driver: "
          "redfish, "
          "address: 10.20.1.1, secret: bmc }, disks: { os: { match: { serial: S1 } } }, vars: " +
          wishes.own_vars + " }\nroles: { gpu: { playbooks: [ " + wishes.played +
          " ] } }\nvars: " + wishes.vars + "\n",
      {{"base", "gpu", "gpu-ubuntu", "gpu-vendor", "cuda-vendor"}, {}, {{"debian-13"}}});
}

// "PATH: message" of the only error; "" if there is none.
std::string error_of(const Wishes& wishes) {
  const ParsedSpec spec = parsed(wishes);
  CHECK(spec.errors.size() <= 1);
  return spec.errors.empty() ? "" : spec.errors[0].path + ": " + spec.errors[0].message;
}

bool names(const std::string& error, const std::string& one, const std::string& other) {
  return error.find("'" + one + "'") != std::string::npos &&
         error.find("'" + other + "'") != std::string::npos;
}

}  // namespace

TEST_CASE("never two drivers: in a role, in an image, or one of each", "[spec][gpu]") {
  for (const auto& [one, other] : {std::pair<std::string, std::string>{"gpu", "gpu-vendor"},
                                   {"gpu-vendor", "gpu-ubuntu"},
                                   {"gpu-ubuntu", "gpu"},
                                   {"gpu-vendor", "cuda-vendor"},
                                   {"cuda-vendor", "gpu"}}) {
    CAPTURE(one, other);
    const std::string both = "base, " + one + ", " + other;
    const std::string of_role = error_of({.played = both});
    CHECK(of_role.starts_with("roles.gpu.playbooks[2]: "));
    CHECK(names(of_role, one, other));
    const std::string of_image = error_of({.baked = both});
    CHECK(of_image.starts_with("images.gpu.bake[2]: "));
    CHECK(names(of_image, one, other));
    const std::string of_both = error_of({.baked = "base, " + one, .played = "base, " + other});
    CHECK(of_both.starts_with("roles.gpu.playbooks[1]: "));
    CHECK(of_both.find("'" + one + "'") != std::string::npos);
    CHECK(of_both.find("gpu01") != std::string::npos);
  }
  for (const char* right : {"gpu", "gpu-vendor", "gpu-ubuntu", "gpu-ubuntu, cuda-vendor"})
    CHECK(error_of({.baked = right, .played = right}) == "");
}

TEST_CASE("the branch follows from the driver's version", "[spec][gpu]") {
  CHECK(driver_branch("580.95.05") == "580");
  CHECK(driver_branch("595.84") == "595");
  CHECK(driver_branch("1005.10.01") == "1005");
  for (const char* wrong : {"", "580", "580.", "580.*", "580.95.05-1", "v580.95.05", "580-open", "58.95.05"})
    CHECK(driver_branch(wrong) == "");

  const auto vars = [](const Wishes& wishes) { return parsed(wishes).spec.vars; };
  CHECK(vars({.vars = "{ nvidia_driver: 570.172.08 }"}).at("nvidia_branch") == "570");
  CHECK(vars({}).count("nvidia_branch") == 0);
  CHECK(vars({.vars = "{ nvidia_branch: \"580\" }"}).count("nvidia_driver") == 0);
  // A node's own driver has its own branch.
  const Spec own =
      parsed({.vars = "{ nvidia_driver: 570.172.08 }", .own_vars = "{ nvidia_driver: 595.84 }"}).spec;
  CHECK(own.vars.at("nvidia_branch") == "570");
  CHECK(own.nodes.at(0).vars.at("nvidia_branch") == "595");
}

TEST_CASE("a driver that is no full version, or of another branch, is an error", "[spec][gpu]") {
  const auto wrong = [](const std::string& vars, const std::string& own_vars = "{}") {
    return error_of({.baked = "base, gpu-vendor", .vars = vars, .own_vars = own_vars});
  };
  CHECK(wrong("{ nvidia_driver: \"580\" }").starts_with("vars.nvidia_driver: "));
  CHECK(wrong("{ nvidia_driver: 580-open }").starts_with("vars.nvidia_driver: "));
  CHECK(wrong("{ nvidia_branch: \"-580\" }").starts_with("vars.nvidia_branch: "));
  const std::string mixed = wrong("{ nvidia_driver: 580.95.05, nvidia_branch: \"570\" }");
  CHECK(mixed.starts_with("vars.nvidia_branch: "));
  CHECK(mixed.find("580.95.05") != std::string::npos);
  CHECK(wrong("{ nvidia_driver: 580.95.05, nvidia_branch: \"580\" }") == "");
  CHECK(wrong("{ nvidia_driver: 580.95.05 }", "{ nvidia_branch: \"570\" }")
            .starts_with("nodes[0].vars.nvidia_branch: "));
  CHECK(error_of({.played = "base, gpu-ubuntu", .vars = "{ nvidia_branch: 580-server }"})
            .starts_with("vars.nvidia_branch: "));
  // Where no playbook of muster's installs a driver, they are a site's own.
  CHECK(error_of({.vars = "{ nvidia_driver: \"535\", nvidia_branch: 535-server }"}) == "");
}

TEST_CASE("messages name the playbooks that install a driver, and those that install CUDA", "[spec][gpu]") {
  CHECK(gpu_driver_playbooks() == "`gpu`, `gpu-ubuntu` or `gpu-vendor`");
  CHECK(cuda_playbooks() == "`gpu`, `gpu-vendor` or `cuda-vendor`");
  CHECK(installs_gpu_driver("gpu-ubuntu"));
  CHECK_FALSE(installs_gpu_driver("cuda-vendor"));
}
