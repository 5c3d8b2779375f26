// The scripts that make packages, over trees of their own with programs that only remember: which packages
// a folder has afterwards, under which version they were built, and which of two versions is the later one.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/digest.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;
namespace fs = std::filesystem;

namespace {

Output run(std::vector<std::string> argv, const std::string& cwd,
           std::map<std::string, std::string> env = {}) {
  auto done = make_process()->run({.argv = std::move(argv), .env = std::move(env), .cwd = cwd});
  REQUIRE(done.ok());
  UNSCOPED_INFO(done->out + done->err);
  return std::move(*done);
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> out;
  if (fs::exists(folder))
    for (const auto& one : fs::directory_iterator(folder))
      if (one.is_regular_file()) out.insert(one.path().filename());
  return out;
}

// A source tree with these files of the real one, and a folder `bin` that comes first in PATH.
struct Tree {
  TempDir dir;
  std::string root = dir.path("tree"), bin = dir.path("bin");

  explicit Tree(const std::vector<std::string>& files) {
    fs::create_directories(bin);
    for (const auto& file : files) {
      fs::create_directories(fs::path(root + "/" + file).parent_path());
      fs::copy_file(source_dir() + "/" + file, root + "/" + file);
    }
  }
  void program(const std::string& path, const std::string& script) const {
    std::ofstream(path) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  std::map<std::string, std::string> path_first() const { return {{"PATH", bin + ":/usr/bin:/bin"}}; }
};

std::string for_cuda(const std::string& version, const std::string& major) {
  const TempDir dir;
  dir.write("x.cmake", "include(" + source_dir() + "/cmake/version.cmake)\nmuster_cuda_version(out " +
                           version + " " + major + ")\nfile(WRITE " + dir.path("out") + " \"${out}\")\n");
  REQUIRE(run({"cmake", "-P", dir.path("x.cmake")}, "/").ok());
  return dir.read("out");
}

bool is_later(const std::string& a, const std::string& b) {
  return run({"dpkg", "--compare-versions", a, "gt", b}, "/").ok();
}

}  // namespace

TEST_CASE("a folder of packages has one of each name, however often they are made", "[packages]") {
  const Tree tree({"scripts/package-lib.sh", "scripts/package.sh", "scripts/build-gpu-package.sh"});
  const std::string folder = tree.dir.path("out");
  fs::create_directories(folder);
  std::ofstream(folder + "/another_1_amd64.deb") << "";
  std::vector<std::string> command;
  std::vector<std::string> packages = {"muster-accept-gpu"};
  SECTION("of the GPU checks") {
    tree.program(tree.bin + "/nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'");
    tree.program(tree.root + "/scripts/build-gpu-deb.sh",
                 "rm -rf \"$1\"; mkdir -p \"$1\"; touch \"$1/muster-accept-gpu_${VERSION}_amd64.deb\" "
                 "\"$1/muster-gpu-${VERSION}-cuda13-linux-x86_64.tar.zst\"");
    command = {"scripts/build-gpu-package.sh", "--here", folder};
  }
  SECTION("of the others") {
    packages = {"muster", "muster-agent", "muster-controller"};
    tree.program(tree.bin + "/cpack",
                 "while [[ $1 != -B ]]; do shift; done; mkdir -p \"$2\"; "
                 "touch \"$2\"/muster{,-agent,-controller}_\"${VERSION}\"_amd64.deb");
    fs::create_directories(tree.root + "/build");
    std::ofstream(tree.root + "/build/CPackConfig.cmake") << "";
    command = {"scripts/package.sh", "--of", "build", folder};
  }
  for (const char* version : {"1", "2", "2"}) {
    auto env = tree.path_first();
    env["VERSION"] = version;
    REQUIRE(run(command, tree.root, env).ok());
  }
  std::set<std::string> now = {"another_1_amd64.deb"}, older;
  for (const std::string& name : packages) {
    now.insert(name + "_2_amd64.deb");
    older.insert({name + "_1_amd64.deb", name + "_2_amd64.deb"});
  }
  if (packages.size() == 1) {
    now.insert("muster-gpu-2-cuda13-linux-x86_64.tar.zst");
    older.insert({"muster-gpu-1-cuda13-linux-x86_64.tar.zst", "muster-gpu-2-cuda13-linux-x86_64.tar.zst"});
  }
  CHECK(names_in(folder) == now);
  CHECK(names_in(folder + "/older") == older);
}

TEST_CASE("pages that are unpacked have no link to a file that is not among them", "[packages]") {
  const TempDir dir;
  const std::string pages = dir.path("pages");
  REQUIRE(run({"bash", "-c", "source scripts/package-lib.sh; copy_pages \"$0\"", pages}, source_dir()).ok());
  for (const char* page : {"README.md", "docs/accept-hosts.md", "docs/operations.md", "docs/lab.md"})
    CHECK(fs::exists(pages + "/" + page));
  const auto lead_inside = [&] { return run({source_dir() + "/scripts/dead_links.py", pages}, "/").ok(); };
  CHECK(lead_inside());
  fs::remove(pages + "/docs/lab.md");
  CHECK_FALSE(lead_inside());
  dir.write("pages/docs/lab.md", "[a](#here) [b](https://example.org/x) [c](operations.md#roles)\n");
  CHECK(lead_inside());
  dir.write("beside.md", "");
  dir.write("pages/docs/lab.md", "[a](../../beside.md)\n");
  CHECK_FALSE(lead_inside());
}

TEST_CASE("a release's list of digests, which is signed, has the archives for GPUs of its version",
          "[packages]") {
  const TempDir dir;
  const std::string out = dir.path("out"), key = dir.path("key"), pub = dir.path("pub");
  const auto in_shell = [&](const std::string& script, std::map<std::string, std::string> env = {}) {
    return run({"bash", "-euc", script, out}, source_dir(), std::move(env)).ok();
  };
  const auto list = [&](const std::string& with) {
    return in_shell("source scripts/package-lib.sh; list_release \"$0\" 1.g2",
                    {{"MUSTER_RELEASE_KEY", with}});
  };
  // `sum`: of the program, as the archive's own list has it.
  const auto add_gpu = [&](const std::string& name, const std::string& sum) {
    dir.write(name + "/lib/muster/muster-accept-gpu", "program");
    dir.write(name + "/muster-gpu.json", R"({"cuda": "12.4", "sha256": ")" + sum + "\"}\n");
    return in_shell("tar -C " + dir.path("") + " --zstd -cf \"$0\"/" + name + ".tar.zst " + name);
  };
  const std::string gpu = "muster-gpu-1.g2-cuda12-linux-x86_64", program = sha256("program").substr(7);
  for (const char* file : {"muster-1.g2-linux-x86_64.tar.zst", "muster-1.g2-linux-x86_64.spdx.json",
                           "muster-gpu-1.g1-cuda12-linux-x86_64.tar.zst"})
    dir.write(std::string("out/") + file, file);
  REQUIRE(add_gpu(gpu, program));
  REQUIRE(in_shell("openssl genpkey -algorithm ED25519 -out " + key + "; openssl pkey -in " + key +
                   " -pubout -out " + pub));
  REQUIRE(list(key));
  const std::string sums = dir.read("out/SHA256SUMS");
  CHECK(std::count(sums.begin(), sums.end(), '\n') == 3);
  CHECK(sums.find(sha256(dir.read("out/" + gpu + ".tar.zst")).substr(7) + "  " + gpu) != std::string::npos);
  const std::string verify = "cd \"$0\"; openssl pkeyutl -verify -pubin -inkey " + pub +
                             " -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig; sha256sum -c SHA256SUMS";
  CHECK(in_shell(verify));

  SECTION("without a key no old signature stays") {
    CHECK(list(""));
    CHECK(dir.read("out/SHA256SUMS") == sums);
    CHECK_FALSE(fs::exists(out + "/SHA256SUMS.sig"));
  }
  SECTION("an archive with another program is not listed, and nothing is") {
    REQUIRE(add_gpu(gpu, sha256("another").substr(7)));
    CHECK_FALSE(list(key));
    CHECK_FALSE(fs::exists(out + "/SHA256SUMS"));
  }
  SECTION("nor is one that is called after another CUDA") {
    REQUIRE(add_gpu("muster-gpu-1.g2-cuda13-linux-x86_64", program));
    CHECK_FALSE(list(key));
  }
}

TEST_CASE("the package of GPU checks is another version with another CUDA, and a later commit's is later",
          "[packages][version]") {
  const std::string commit = "0.1.0+20261124.080945.gb953f06", later = "0.1.0+20261124.080946.g0000000";
  CHECK(for_cuda(commit, "13") == commit + ".cuda13");
  CHECK(is_later(for_cuda(commit, "13"), for_cuda(commit, "12")));
  CHECK(is_later(for_cuda(commit, "12"), commit));  // as it was called before
  CHECK(is_later(for_cuda(later, "12"), for_cuda(commit, "13")));
  CHECK(is_later(for_cuda(commit + ".dirty", "12"), for_cuda(commit, "13")));
  CHECK(is_later("0.1.1", for_cuda(commit, "13")));
  CHECK(is_later(for_cuda("0.1.0", "12"), "0.1.0"));
  CHECK(is_later(for_cuda(commit, "12"), for_cuda("0.1.0", "13")));
  CHECK(run({"dpkg", "--validate-version", for_cuda(commit + ".dirty", "13")}, "/").ok());
}

TEST_CASE("a copy to build in has the tree's commit, also where there is no cmake to write it",
          "[packages][version]") {
  const Tree tree({"scripts/chroot-lib.sh", "cmake/version.cmake", "cmake/commit.txt", ".gitattributes"});
  const auto git = [&](std::vector<std::string> words) {
    std::vector<std::string> argv = {
        "git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"};
    argv.insert(argv.end(), words.begin(), words.end());
    REQUIRE(run(argv, tree.root, {{"GIT_COMMITTER_DATE", "1795507785 +0900"}}).ok());
  };
  for (const char* tool :
       {"bash", "comm", "find", "git", "mkdir", "rm", "sed", "sort", "tar", "xargs", "cat"})
    fs::create_symlink(std::string("/usr/bin/") + tool, tree.bin + "/" + tool);
  const std::string copy = tree.dir.path("root/src");
  const auto version = [&](const std::string& path) {
    const auto made =
        run({"bash", "-c", "set -euo pipefail; source scripts/chroot-lib.sh; chroot_copy_tree ../root"},
            tree.root, {{"PATH", path}});
    if (!made.ok()) return std::string("failed");
    const std::string out = tree.dir.path("version.cc");
    REQUIRE(run({"cmake", "-D", "SOURCE=" + copy, "-D", "BASE=0.1.0", "-D", "OUT=" + out, "-P",
                 copy + "/cmake/version.cmake"},
                "/")
                .ok());
    const std::string text = text_of(out);
    const auto from = text.find("= \"") + 3;
    return text.substr(from, text.find('"', from) - from);
  };
  const std::string without = tree.bin, with = "/usr/bin:/bin";
  git({"init", "-q", "-b", "main"});
  CHECK(version(without) == "failed");  // no commit: it would be older than every package that is installed
  git({"add", "-A"});
  git({"commit", "-q", "-m", "x"});
  const std::string clean = version(with);
  CHECK(clean.starts_with("0.1.0+20261124.080945.g"));
  CHECK(version(without) == clean);
  std::ofstream(tree.root + "/report.md") << "x";
  CHECK(version(without) == clean);
  std::ofstream(tree.root + "/cmake/version.cmake", std::ios::app) << "\n";
  CHECK(version(with) == clean + ".dirty");
  CHECK(version(without) == clean + ".dirty");
}
