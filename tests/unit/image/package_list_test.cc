#include "controller/image/package_list.h"

#include "base/digest.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

TEST_CASE("packages of an image are those that dpkg has installed", "[image][packages]") {
  const auto list = installed_packages(
      "Package: bash\nStatus: install ok installed\nVersion: 5.2-1\n\n"
      "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
      "Package: half\nStatus: install ok half-installed\nVersion: 1\n\n"
      "Package: zlib\nVersion: 1:1.2\nStatus: install ok installed\nDescription: x\n Version: no field\n");
  CHECK(list == PackageList{{"bash", "5.2-1"}, {"zlib", "1:1.2"}});
  CHECK(installed_packages("").empty());
}

TEST_CASE("packages: NVIDIA's driver is the one with the kernel module", "[image][packages]") {
  for (const std::string driver : {"nvidia-kernel-dkms", "nvidia-open-kernel-dkms", "nvidia-kernel-open-dkms",
                                   "nvidia-dkms-570-server-open", "nvidia-tesla-470-kernel-dkms",
                                   "linux-modules-nvidia-570-server-generic-hwe-24.04"})
    CHECK(nvidia_driver_in({{"bash", "5"}, {driver, "1"}, {"zlib", "1"}}) == driver);
  for (const std::string other : {"nvidia-smi", "nvidia-fs-dkms", "nvidia-peermem-dkms",
                                  "nvidia-cuda-toolkit", "libcuda1", "firmware-nvidia-gsp", "zfs-dkms"})
    CHECK(nvidia_driver_in({{other, "1"}}).empty());
}

TEST_CASE("packages that are new, gone, or of another version", "[image][packages]") {
  const Json changes =
      package_changes({{"a", "1"}, {"b", "1"}, {"c", "1"}}, {{"a", "1"}, {"b", "2"}, {"d", "1"}});
  CHECK(changes["added"] == Json{{"d", "1"}});
  CHECK(changes["removed"] == Json{{"c", "1"}});
  CHECK(changes["changed"] == Json{{"b", {{"from", "1"}, {"to", "2"}}}});
}

TEST_CASE("packages are found by the image's digest, where they are recorded", "[image][packages]") {
  TempDir dir;
  const std::string hex = sha256("x").substr(7);
  REQUIRE(Files("/").write(dir.path("images/gpu/" + hex + "/build.json"), R"({"packages": {"bash": "5"}})"));
  CHECK(packages_of_image(dir.path(""), "sha256:" + hex).value() == PackageList{{"bash", "5"}});
  CHECK(packages_of_image(dir.path(""), sha256("y")).error().code == Code::not_found);
  CHECK(packages_of_image(dir.path(""), "../../etc").error().code == Code::not_found);
  REQUIRE(Files("/").write(dir.path("images/gpu/" + hex + "/build.json"), R"({"inputs": {}})"));
  CHECK(packages_of_image(dir.path(""), "sha256:" + hex).error().code == Code::not_found);
}
