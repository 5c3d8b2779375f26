// Libraries and drivers of GPU hosts that were already running: what a program for GPUs finds there.
#include "base/cuda_driver.h"
#include "base/split.h"
#include "sys/library_places.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

// What a search finds among the files of this case, as the user ops.
std::vector<LibraryFacts> found_in(const std::string& name) {
  const TempDir dir;
  const Files files(dir.path("root"));
  for (const std::string& path : split_lines(field_input(name, "input.txt")))
    REQUIRE(files.write(path, "", 0644).ok());
  return gpu_libraries(files, {{"/home/ops"}, {}});
}

}  // namespace

FIELD_CASE("nccl-of-hpc-sdk") {
  const auto found = found_in("nccl-of-hpc-sdk");
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == kNcclLibrary);
}

FIELD_CASE("cublaslt-13-for-12") {
  HardwareFacts facts;
  facts.gpu_libraries = found_in("cublaslt-13-for-12");
  REQUIRE(facts.gpu_libraries.size() == 1);
  CHECK(has_library(facts, cublaslt_of(13)));
  CHECK_FALSE(has_library(facts, cublaslt_of(12)));
  facts.properties["GPU driver"] = "590.44.01";
  CHECK(cuda_for(facts, {12, 13}) == 13);
}

FIELD_CASE("nccl-of-a-wheel") {
  const auto found = found_in("nccl-of-a-wheel");
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == kNcclLibrary);
  CHECK(found[0].version == "2.18.1");
}

FIELD_CASE("driver-older-than-program") {
  HardwareFacts facts;
  facts.properties["GPU driver"] = trim(field_input("driver-older-than-program", "input.txt"));
  CHECK(cuda_for(facts, {12, 13}) == 0);
  CHECK(oldest_driver_for(12) == 525);
}

}  // namespace muster::tests
