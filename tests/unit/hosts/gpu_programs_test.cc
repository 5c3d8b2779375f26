// muster-accept-gpu on the machine of the command: where it is looked for, and what is one.
#include "controller/hosts/gpu_programs.h"

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

std::string program(const std::string& cuda) {
  return "#!/bin/sh\n# @(#)muster-accept-gpu cuda " + cuda + "\n";
}

}  // namespace

TEST_CASE("programs for GPUs: what was named; else muster's own, then an archive beside it", "[hosts][gpu]") {
  TempDir dir;
  const std::string accept = dir.path("tools/muster-1/lib/muster/muster-accept");
  const std::string own = "tools/muster-1/lib/muster/muster-accept-gpu",
                    beside = "tools/muster-gpu-1-cuda12-linux-x86_64/lib/muster/muster-accept-gpu",
                    other = "tools/muster-gpu-1-cuda13-linux-x86_64/lib/muster/muster-accept-gpu",
                    named = "elsewhere/gpu";
  dir.write("tools/muster-1/lib/muster/muster-accept", "");
  dir.write(beside, program("12.4"));
  dir.write(other, program("13.0"));
  const auto found = [&](const std::vector<std::string>& given = {}) {
    const auto all = find_gpu_programs(given, gpu_program_folders(accept));
    REQUIRE(all.ok());
    CHECK(all->wrong.empty());
    return all->by_cuda;
  };
  CHECK(found().at(12) == dir.path(beside));
  CHECK(found().at(13) == dir.path(other));
  dir.write(own, program("12.6"));
  CHECK(found().at(12) == dir.path(own));
  CHECK(found().at(13) == dir.path(other));
  dir.write(named, program("12.8"));
  // Nothing else is offered then: the one for CUDA 13 would be chosen for newer drivers.
  CHECK(found({dir.path(named)}) == std::map<int, std::string>{{12, dir.path(named)}});
  CHECK(found({dir.path("tools/muster-gpu-1-cuda12-linux-x86_64")}) ==
        std::map<int, std::string>{{12, dir.path(beside)}});
  CHECK(gpu_program_folders(accept).back() == "/usr/lib/muster");
}

TEST_CASE("programs for GPUs: of two archives for one CUDA the newer version is taken", "[hosts][gpu]") {
  TempDir dir;
  const auto archive = [](const std::string& version) {
    return "tools/muster-gpu-" + version + "-cuda12-linux-x86_64/lib/muster/muster-accept-gpu";
  };
  dir.write("tools/muster-1/lib/muster/muster-accept", "");
  for (const char* version : {"0.9.0", "0.10.0", "0.2.0"}) dir.write(archive(version), program("12.4"));
  const auto all =
      find_gpu_programs({}, gpu_program_folders(dir.path("tools/muster-1/lib/muster/muster-accept")));
  REQUIRE(all.ok());
  CHECK(all->by_cuda.at(12) == dir.path(archive("0.10.0")));
}

TEST_CASE("programs for GPUs: a wrong file is named", "[hosts][gpu]") {
  TempDir dir;
  dir.write("wrong/muster-accept-gpu", "#!/bin/sh\n");
  dir.write("empty/readme", "");
  const std::string wrong = dir.path("wrong/muster-accept-gpu");
  for (const std::string& given : {wrong, dir.path("wrong")}) {
    const auto refused = find_gpu_programs({given}, {});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::invalid);
    CHECK(refused.error().message.find(wrong) != std::string::npos);
  }
  CHECK(find_gpu_programs({dir.path("empty")}, {}).error().code == Code::not_found);
  CHECK(find_gpu_programs({dir.path("none")}, {}).error().code == Code::not_found);
  // In a folder that was not named it stops nothing.
  const auto found = find_gpu_programs({}, {dir.path("wrong"), dir.path("none")});
  REQUIRE(found.ok());
  CHECK(found->by_cuda.empty());
  REQUIRE(found->wrong.size() == 1);
  CHECK(found->wrong[0].find(wrong) != std::string::npos);
}
