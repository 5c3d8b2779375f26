// Roles of a spec: who leads what, and what a role must have for it.
#include <fmt/format.h>

#include "controller/engines/engine.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

std::string spec_of(const std::string& roles, const std::string& storage = "storage: {}") {
  return fmt::format(R"(cluster: gaggle
network: {{ provisioning: {{ cidr: 10.20.0.0/24 }} }}
nodes:
  - name: b[1-2]
    role: gpu
    power: {{ driver: redfish, address: "10.20.1.{{n}}", secret: bmc }}
    disks: {{ bulk: {{ match: {{ serial: B }}, policy: format }} }}
  - name: a
    role: store
    power: {{ driver: redfish, address: 10.20.1.3, secret: bmc }}
    disks: {{ bulk: {{ match: {{ serial: B }}, policy: format }} }}
  - name: z[1-2]
    role: head
    power: {{ driver: redfish, address: "10.20.2.{{n}}", secret: bmc }}
{}
roles:
{})",
                     storage, roles);
}

std::string errors_of(const std::string& text) {
  std::string out;
  for (const SpecError& error : parse_spec(text).errors) out += to_string(error, "f") + "\n";
  return out;
}

std::string leader(const Spec& spec, const std::string& playbook) {
  const NodeSpec* node = spec.leader_of(playbook);
  return node ? node->name : "";
}

}  // namespace

TEST_CASE("a playbook is led by the declared role's first node, else by the first that has it",
          "[spec][roles]") {
  const ParsedSpec parsed = parse_spec(
      spec_of("  gpu: { playbooks: [ base, scheduler, mpi ] }\n"
              "  store: { playbooks: [ base ] }\n"
              "  head: { playbooks: [ accounting, scheduler, monitoring ], leads: [ scheduler ] }\n"));
  REQUIRE(parsed.errors.empty());
  CHECK(leader(parsed.spec, "scheduler") == "z1");
  CHECK(leader(parsed.spec, "accounting") == "z1");
  CHECK(leader(parsed.spec, "monitoring") == "z1");
  CHECK(leader(parsed.spec, "base") == "a");
  CHECK(leader(parsed.spec, "mpi") == "b1");
  CHECK(leader(parsed.spec, "nobody's") == "");
  CHECK(parsed.spec.plays(*parsed.spec.node("b2"), "mpi"));
  CHECK_FALSE(parsed.spec.plays(*parsed.spec.node("a"), "mpi"));
}

TEST_CASE("storage and accounting are led where they must be, or the spec is refused", "[spec][roles]") {
  const std::string rest = "  store: { playbooks: [ base ] }\n";
  CHECK(
      errors_of(spec_of("  gpu: { playbooks: [ storage-shared ], leads: [ storage-shared ] }\n"
                        "  head: { playbooks: [ base ] }\n" +
                        rest)) ==
      "f:17:50: roles.gpu.leads[0]: a storage section is led by its server (engines nfs, moosefs) or by the "
      "first node that holds its data, and a role cannot change that\n");
  CHECK(
      errors_of(spec_of("  gpu: { playbooks: [ base, accounting ] }\n"
                        "  head: { playbooks: [ base ] }\n" +
                        rest)) ==
      "f:17:29: roles.gpu.playbooks[1]: accounting is part of Slurm and requires the playbook `scheduler`\n");
  CHECK(errors_of(spec_of("  gpu: { playbooks: [ scheduler ] }\n"
                          "  head: { playbooks: [ accounting, scheduler ] }\n" +
                          rest)) ==
        "f:18:24: roles.head.playbooks[0]: Slurm is led by b1, but its role 'gpu' does not have the "
        "playbook `accounting`: add it to that role, or list `scheduler` under `leads` in a role that has "
        "both\n");
  CHECK(errors_of(spec_of("  gpu: { playbooks: [ accounting, scheduler ] }\n"
                          "  head: { playbooks: [ accounting, scheduler ], leads: [ accounting ] }\n" +
                          rest)) ==
        "f:18:58: roles.head.leads[0]: `accounting` must be led by the same node as `scheduler`, b1 of role "
        "'gpu': make this role lead `scheduler` as well, or remove `accounting` here\n");
  CHECK(
      errors_of(spec_of("  gpu: { playbooks: [ scheduler, mpi, accounting ] }\n"
                        "  head: { playbooks: [ base ] }\n" +
                        rest)) ==
      "f:17:39: roles.gpu.playbooks[2]: must come before 'scheduler': slurmctld starts only if its database "
      "runs\n");
  // A role without nodes says nothing yet.
  CHECK(errors_of(spec_of("  gpu: { playbooks: [ base ] }\n  head: { playbooks: [ base ] }\n"
                          "  later: { playbooks: [ accounting ] }\n" +
                          rest)) == "");
}

TEST_CASE("containers come after the GPU driver and local storage, and before Slurm", "[spec][roles]") {
  const auto errors = [](const std::string& playbooks) {
    return errors_of(spec_of("  gpu: { playbooks: [ " + playbooks +
                             " ] }\n  store: { playbooks: [ base ] }\n  head: { playbooks: [ base ] }\n"));
  };
  CHECK(errors("storage-local, gpu, containers, scheduler") == "");
  CHECK(errors("containers, gpu")
            .starts_with("f:17:35: roles.gpu.playbooks[1]: must come before 'containers'"));
  CHECK(errors("containers, gpu-ubuntu").starts_with("f:17:35: roles.gpu.playbooks[1]: "));
  CHECK(errors("containers, storage-local").starts_with("f:17:35: roles.gpu.playbooks[1]: "));
  CHECK(errors("scheduler, containers")
            .starts_with("f:17:34: roles.gpu.playbooks[1]: must come before 'scheduler'"));
}

TEST_CASE("a storage section is of the nodes whose role has its engine's playbook", "[spec][roles]") {
  const auto members = [](const std::string& roles, const std::string& storage) {
    const ParsedSpec parsed = parse_spec(spec_of(roles, "storage: { s: " + storage + " }"));
    std::string out;
    for (const auto& e : parsed.errors) out += to_string(e, "f") + "\n";
    for (const auto& node : parsed.spec.nodes)
      if (out.find(':') == std::string::npos && is_member(parsed.spec.storage[0], node))
        out += node.name + " ";
    return out;
  };
  const std::string moosefs = "{ engine: moosefs, disks: bulk, copies: 2, mount: /s }";
  const std::string nfs = "{ engine: nfs, server: a, disks: bulk, mount: /s }";
  const std::string shared = "  gpu: { playbooks: [ storage-shared, storage-nfs ] }\n";
  const std::string none = "  store: { playbooks: [ base ] }\n  head: { playbooks: [ base ] }\n";
  CHECK(members("  gpu: { playbooks: [ base ] }\n" + none, moosefs) ==
        "a b1 b2 ");  // a playbook of one's own
  CHECK(members(shared + none, moosefs) == "b1 b2 ");
  CHECK(members(shared + none, "{ engine: moosefs, disks: bulk, copies: 3, mount: /s }") ==
        "f:15:55: storage.s.copies: 3 copies require as many nodes, but only 2 hold data of this storage\n");
  CHECK(members(shared + none, nfs) ==
        "f:15:38: storage.s.server: no node would create this storage: role 'store' of a does not have the "
        "playbook 'storage-nfs'\n");
  CHECK(members("  gpu: { playbooks: [ base ] }\n  head: { playbooks: [ storage-shared ] }\n"
                "  store: { playbooks: [ base ] }\n",
                moosefs) ==
        "f:15:41: storage.s.disks: no node would create this storage: role 'gpu' of b1 does not have the "
        "playbook 'storage-shared'\n");
}
