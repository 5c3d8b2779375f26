// Where libraries for GPUs are found, over made-up trees.
#include "sys/library_places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "base/cuda_driver.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

using Paths = std::vector<std::string>;

void put(const Files& files, const std::string& path, const std::string& text = "") {
  REQUIRE(files.write(path, text, 0644).ok());
}

std::string word(uint32_t value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }

// A cache with one library, as ldconfig writes it.
std::string loader_cache(const std::string& name, const std::string& path, uint32_t flags = 0x0303) {
  const uint32_t names = 48 + 24;
  std::string out = "glibc-ld.so.cache1.1" + word(1) + word(0) + std::string(20, '\0');
  out += word(flags) + word(names) + word(names + static_cast<uint32_t>(name.size()) + 1) + word(0) +
         std::string(8, '\0');
  return out + name + '\0' + path + '\0';
}

}  // namespace

TEST_CASE("libraries are found where toolkits put them, the highest version first", "[libraries]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  for (const char* path : {"/usr/local/cuda-9.2/lib64/libx.so.2", "/usr/local/cuda-12.4/lib64/libx.so.2",
                           "/opt/hpcx-v2.20/nccl_rdma_sharp_plugin/lib/libx.so.2", "/usr/lib64/liby.so"})
    put(files, path);
  CHECK(library_places(files, "libx.so.2") == Paths{"/usr/local/cuda-12.4/lib64/libx.so.2",
                                                    "/usr/local/cuda-9.2/lib64/libx.so.2",
                                                    "/opt/hpcx-v2.20/nccl_rdma_sharp_plugin/lib/libx.so.2"});
  CHECK(library_places(files, "liby.so") == Paths{"/usr/lib64/liby.so"});
  CHECK(library_places(files, "/usr/lib64/liby.so").empty());
}

TEST_CASE("each of the usual places of cuBLASLt and NCCL is enough", "[libraries]") {
  const LibraryHomes homes{{"/home/ops"}, {"/data/venv"}};
  for (const char* path :
       {"/usr/local/cuda-12.4/lib64/libcublasLt.so.12", "/usr/lib/x86_64-linux-gnu/libcublasLt.so.12",
        "/usr/local/lib/python3.10/dist-packages/nvidia/cublas/lib/libcublasLt.so.12",
        "/home/ops/.local/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
        "/data/venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
        "/opt/train/lib/python3.10/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
        "/home/ops/miniconda3/envs/torch/lib/libcublasLt.so.12",
        "/home/ops/mambaforge/envs/torch/lib/libcublasLt.so.12",
        "/home/ops/micromamba/envs/torch/lib/python3.12/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
        "/home/ops/.local/share/mamba/envs/torch/lib/libcublasLt.so.12",
        "/opt/conda/lib/libcublasLt.so.12"}) {
    CAPTURE(path);
    const TempDir dir;
    const Files files(dir.path("root"));
    put(files, path);
    put(files, "/home/other/.local/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2");
    const auto found = gpu_libraries(files, homes);
    REQUIRE(found.size() == 1);  // and nothing of another user
    CHECK(found[0].name == "libcublasLt.so.12");
    CHECK(found[0].path == path);
  }
}

TEST_CASE("what ld.so's cache lists comes first, if it is there and for this processor", "[libraries]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  put(files, "/srv/nccl/libnccl.so.2");
  put(files, "/usr/lib64/libnccl.so.2");
  put(files, "/etc/ld.so.cache", loader_cache("libnccl.so.2", "/srv/nccl/libnccl.so.2"));
  CHECK(library_places(files, "libnccl.so.2") == Paths{"/srv/nccl/libnccl.so.2", "/usr/lib64/libnccl.so.2"});
  put(files, "/etc/ld.so.cache", loader_cache("libnccl.so.2", "/srv/nccl/libnccl.so.2", 0x0803));
  CHECK(library_places(files, "libnccl.so.2") == Paths{"/usr/lib64/libnccl.so.2"});
  for (const std::string& broken : {std::string("glibc-ld.so.cache1.1"),
                                    "glibc-ld.so.cache1.1" + std::string(8, '\xff'), std::string(500, 'x')}) {
    put(files, "/etc/ld.so.cache", broken);
    CHECK(library_places(files, "libnccl.so.2") == Paths{"/usr/lib64/libnccl.so.2"});
  }
}

TEST_CASE("the version of a library is its file's, or its wheel's", "[libraries]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  put(files, "/usr/lib64/libcublasLt.so.12.4.5.8");
  REQUIRE(files.symlink("libcublasLt.so.12.4.5.8", "/usr/lib64/libcublasLt.so.12").ok());
  CHECK(library_version(files, "/usr/lib64/libcublasLt.so.12") == "12.4.5.8");
  const std::string site = "/opt/venv/lib/python3.11/site-packages";
  put(files, site + "/nvidia/nccl/lib/libnccl.so.2");
  put(files, site + "/nvidia_nccl_cu12-2.21.5.dist-info/METADATA");
  CHECK(library_version(files, site + "/nvidia/nccl/lib/libnccl.so.2") == "2.21.5");
  put(files, "/opt/nccl/lib/libnccl.so.2");
  CHECK(library_version(files, "/opt/nccl/lib/libnccl.so.2").empty());
}

TEST_CASE("with sudo the environments of the calling user count", "[libraries]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  put(files, "/etc/passwd", "root:x:0:0::/root:/bin/sh\nops:x:1000:1000::/srv/ops:/bin/sh\n");
  std::map<std::string, std::string> environment = {{"HOME", "/root"}};
  const auto homes = [&] {
    return library_homes(files, [&](const char* name) { return environment[name]; });
  };
  CHECK(homes().homes == Paths{"/root"});
  environment["SUDO_USER"] = "ops";
  environment["CONDA_PREFIX"] = "/opt/conda";
  environment["VIRTUAL_ENV"] = "relative";
  CHECK(homes().homes == Paths{"/srv/ops"});
  CHECK(homes().environments == Paths{"/opt/conda"});
}

TEST_CASE("LD_LIBRARY_PATH comes first, as the loader has it", "[libraries]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  put(files, "/usr/lib64/libnccl.so.2");
  put(files, "/shared/nccl/lib/libnccl.so.2");
  put(files, "/shared/cu12/lib/libcublasLt.so.12");
  const LibraryHomes homes = library_homes(files, [](const char* name) -> std::string {
    return name == std::string("LD_LIBRARY_PATH") ? "relative::/shared/nccl/lib:/shared/cu12/lib" : "";
  });
  CHECK(library_places(files, "libnccl.so.2", homes) ==
        Paths{"/shared/nccl/lib/libnccl.so.2", "/usr/lib64/libnccl.so.2"});
  HardwareFacts facts;
  facts.properties["GPU driver"] = "580.159.04";
  facts.gpu_libraries = gpu_libraries(files, homes);
  CHECK(cuda_for(facts, {12, 13}) == 12);
}

TEST_CASE("the program for GPUs is chosen by driver and cuBLASLt", "[libraries]") {
  CHECK(cuda_of_driver("580.159.04") == 13);
  CHECK(cuda_of_driver("579.1") == 12);
  CHECK(cuda_of_driver("525.60.13") == 12);
  CHECK(cuda_of_driver("515.48.07") == 11);
  CHECK(cuda_of_driver("") == 0);
  HardwareFacts facts;
  facts.properties["GPU driver"] = "580.159.04 (open)";
  CHECK(driver_of(facts) == "580.159.04");
  CHECK(cuda_for(facts, {12, 13}) == 13);
  facts.gpu_libraries = {{"libcublasLt.so.12", "", "/x"}};
  CHECK(cuda_for(facts, {12, 13}) == 12);
  facts.gpu_libraries.push_back({"libcublasLt.so.13", "", "/y"});
  CHECK(cuda_for(facts, {12, 13}) == 13);
  facts.properties["GPU driver"] = "550.54.15";
  CHECK(cuda_for(facts, {12, 13}) == 12);
  CHECK(cuda_for(facts, {13}) == 0);
  CHECK(cuda_for(facts, {}) == 0);
}

TEST_CASE("libraries count only where none but root and the user may write", "[libraries]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  const std::string folder = "/opt/eve/lib", path = folder + "/libnccl.so.2";
  put(files, path);
  const auto allow = [&](const std::string& at, mode_t mode) {
    REQUIRE(::chmod(files.real(at).c_str(), mode) == 0);
  };
  for (const char* at : {"/", "/opt", "/opt/eve", "/opt/eve/lib"}) allow(at, 0755);
  const LibraryHomes mine{{}, {}, {}, {0, ::geteuid()}}, others{{}, {}, {}, {::geteuid() + 1}};
  const auto found = [&](const LibraryHomes& homes) {
    return !library_places(files, "libnccl.so.2", homes).empty();
  };
  CHECK(found(mine));
  CHECK_FALSE(found(others));
  CHECK(found({}));
  for (const std::string& at : {std::string("/opt"), std::string("/opt/eve"), folder, path}) {
    CAPTURE(at);
    allow(at, 0777);
    CHECK_FALSE(found(mine));
    CHECK(found({}));
    allow(at, 0755);
  }
  allow("/opt", 01777);  // only its owner can replace what is there
  CHECK(found(mine));
  allow("/opt", 0755);
  allow(folder, 01777);  // but add what the library loads
  CHECK_FALSE(found(mine));
  allow(folder, 0755);

  // A link leads to where another user may write, or out of the tree.
  put(files, "/srv/drop/libnccl.so.2");
  REQUIRE(files.remove(path).ok());
  REQUIRE(files.symlink("../../../srv/drop/libnccl.so.2", path).ok());
  CHECK(found(mine));
  allow("/srv/drop", 0777);
  CHECK_FALSE(found(mine));
  // A link that another user can change later, to a file that is the user's now.
  allow("/srv/drop", 0755);
  allow("/srv", 0777);
  REQUIRE(files.symlink("../opt/eve", "/srv/link").ok());
  put(files, "/opt/eve/true.so");
  REQUIRE(files.remove(path).ok());
  REQUIRE(files.symlink("../../../srv/link/true.so", path).ok());
  CHECK_FALSE(found(mine));
  allow("/srv", 0755);
  CHECK(found(mine));
  dir.write("outside", "");
  REQUIRE(files.remove(path).ok());
  REQUIRE(files.symlink(dir.path("outside"), path).ok());
  CHECK_FALSE(found(mine));

  // What the system itself loads.
  allow("/srv/drop", 0777);
  REQUIRE(files.remove(path).ok());
  put(files, "/etc/ld.so.cache", loader_cache("libnccl.so.2", "/srv/drop/libnccl.so.2"));
  CHECK(library_places(files, "libnccl.so.2", others) == Paths{"/srv/drop/libnccl.so.2"});
}

TEST_CASE("libraries: a group that may write counts as its members", "[libraries]") {
  const TempDir dir;
  const Files files(dir.path("root"));
  put(files, "/opt/conda/lib/libnccl.so.2");
  REQUIRE(::chmod(files.real("/opt/conda/lib").c_str(), 0775) == 0);
  REQUIRE(::chown(files.real("/opt/conda/lib").c_str(), ::geteuid(), ::getegid()) == 0);
  if (::getegid() == 0 && ::chown(files.real("/opt/conda/lib").c_str(), ::geteuid(), 1000) != 0) return;
  struct stat status = {};
  REQUIRE(::stat(files.real("/opt/conda/lib").c_str(), &status) == 0);
  const std::string group = std::to_string(status.st_gid), user = std::to_string(::geteuid());
  const LibraryHomes homes{{}, {}, {}, {0, ::geteuid()}};
  const auto found = [&](const std::string& members, const std::string& passwd) {
    put(files, "/etc/group", "staff:x:" + group + ":" + members + "\n");
    put(files, "/etc/passwd", "ops:x:" + user + ":" + group + "::/home/ops:/bin/sh\n" + passwd);
    return !library_places(files, "libnccl.so.2", homes).empty();
  };
  CHECK(found("", ""));
  CHECK(found("ops", ""));
  CHECK_FALSE(found("ops,eve", ""));
  CHECK_FALSE(found("", "eve:x:54321:" + group + "::/home/eve:/bin/sh\n"));
}
