// Building images with a Debian that exists only on paper: when an image is built, why, and when it is not.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/json_at.h"
#include "base/release_sources.h"
#include "controller/image/folder.h"
#include "controller/image/image.h"
#include "controller/image/inputs.h"
#include "controller/image/layers.h"
#include "controller/image/ram.h"
#include "controller/image/recipe_tree.h"
#include "controller/image/shared_cache.h"
#include "sys/clock.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// cap_net_raw=ep, as it stands in the attribute: magic and flags, permitted, inheritable.
constexpr unsigned char kCapability[20] = {1, 0, 0, 2, 0, 0x20};

// Answers for mmdebstrap, mke2fs and apt's sources; anything else is refused.
class PaperDebian : public Process {
 public:
  int archives = 0, trees = 0, finished = 0;
  bool lists = false;  // apt has its lists while the recipe's commands run
  std::vector<std::string> layers =
      {};  // ids of the steps that were carried out, and what their tree held then
  bool broken = false, resolved = false;  // resolved: a resolver daemon of the tree's own
  std::string builtin = "kernel/fs/ext4/ext4.ko\nkernel/drivers/nvme/host/nvme.ko\n";  // by its kernel
  std::string loader = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi";
  Output bootstrap = {0, "", ""};      // of mmdebstrap when it installs packages
  Output customized = {0, "", ""};     // and when the recipe's files and commands come over them
  std::vector<std::string> last = {};  // its arguments
  std::string sources = {}, script = {};
  std::string resolver = {}, packed_resolver = {};  // while packages are installed, and in the file system
  std::set<std::string> packed = {};                // names in /srv of the tree that became a file system
  std::string features = {};                        // the settings of that file system, as the tree has them
  std::string unknown = {};                         // settings with a feature that this mke2fs does not know
  bool capable = false;                // a program of the tree has capabilities; the real mke2fs is run
  std::string packed_capability = {};  // of this program, in the file system

  Result<Output> run(const Command& command) override {
    const auto& argv = command.argv;
    if (argv[0] == "mmdebstrap") {
      last = argv;
      sources = command.input;
      if (std::count(argv.begin(), argv.end(), "--format=tar") == 1) {
        ++archives;
        // The builder's own files are of this build: another one has its own.
        const bool own =
            std::count(argv.begin(), argv.end(),
                       "--customize-hook=rm -f \"$1\"/etc/apt/sources.list \"$1\"/etc/resolv.conf") == 0;
        TRY_(Files("/").write(argv.at(argv.size() - 2), own ? sources : "packages"));
        return bootstrap;
      }
      lists = std::count(argv.begin(), argv.end(), "--skip=update") == 0;
      std::string archive;
      for (const auto& word : argv) {
        if (word.starts_with("--customize-hook=")) script = Files("/").read(word.substr(17)).value_or("");
        if (word.starts_with("--setup-hook=tar-in '")) archive = word.substr(21, word.size() - 24);
      }
      if (Files("/").read(archive).value_or("") != "packages")
        return Output{1, "", "E: no archive " + archive};
      return customized.ok() ? make_tree(argv.at(argv.size() - 2)) : customized;
    }
    if (argv[0] == "apt-get") return Output{0, "http://m/debian|s|main|\nhttp://m/debian|s|new|\n", ""};
    if (argv[0] == "mke2fs") {
      const auto settings = command.env.find("MKE2FS_CONFIG");
      features = settings == command.env.end() ? "the builder's"
                                               : Files("/").read(settings->second).value_or("none");
      if (!unknown.empty() && features == unknown)
        return Output{1, "", "Invalid filesystem option set: has_journal,orphan_file\n"};
      const auto names = Files(*(std::find(argv.begin(), argv.end(), "-d") + 1)).list("/srv");
      packed = {names.begin(), names.end()};
      packed_resolver = Files(*(std::find(argv.begin(), argv.end(), "-d") + 1))
                            .read_link("/etc/resolv.conf")
                            .value_or("none");
      return capable ? make_real(command) : make_raw(argv.at(argv.size() - 2));
    }
    if (argv[0] == "chroot") return apply_layer(argv.at(1), command.input);
    if (argv[0].find("/finish.sh") != std::string::npos) return ++finished, Output{0, "", ""};
    if (argv[0] == "rm") return std::filesystem::remove_all(argv.back()), Output{0, "", ""};
    return fail(Code::not_found, argv[0]);
  }

 private:
  // One file per step in /srv.
  Result<Output> apply_layer(const std::string& root, const std::string& order) {
    TRY_(Files(root).write("/run/muster/log", "+ apt-get install\n"));
    if (broken) return Output{1, "", "muster-agent: gpu/a: no such package" + std::string(900, '.') + "\n"};
    const Json steps = Json::parse(order)["steps"];
    for (const Json& step : steps) {
      resolver = Files(root).read("/etc/resolv.conf").value_or("none");
      layers.push_back(step["id"].get<std::string>() + " over " +
                       std::to_string(Files(root).list("/srv").size()));
      TRY_(Files(root).write("/srv/" + step["id"].get<std::string>(), "x"));
    }
    return Output{0, "", ""};
  }
  Result<Output> make_tree(const std::string& tree) {
    ++trees;
    const Files files(tree);
    const std::string modules = "/usr/lib/modules/6.12-paper";
    TRY_(files.write(modules + "/modules.dep", "kernel/nvme.ko:\n"));
    TRY_(files.write(modules + "/modules.alias", ""));
    TRY_(files.write(modules + "/kernel/nvme.ko", "module"));
    TRY_(files.write("/boot/vmlinuz-6.12-paper", "kernel"));
    TRY_(files.write(modules + "/modules.builtin", builtin));
    if (!loader.empty()) TRY_(files.write(loader, "loader"));
    if (resolved) TRY_(files.symlink("../run/nowhere", "/etc/resolv.conf"));
    TRY_(files.write("/usr/lib/os-release", "PRETTY_NAME=\"Paper 1\"\n"));
    TRY_(files.write("/etc/mke2fs.conf", "of Paper 1"));
    for (const char* tool : {"busybox", "mkfs.vfat", "mkfs.ext4", "blkid"})
      TRY_(files.write(std::string("/usr/sbin/") + tool, "#!/bin/sh\n", 0755));
    if (!capable) return Output{0, "", ""};
    TRY_(files.write("/etc/mke2fs.conf", Files("/").read("/etc/mke2fs.conf").value_or("")));
    TRY_(files.write("/large", ""));  // the journal is no more than half of a file system
    std::filesystem::resize_file(files.real("/large"), 64 << 20);
    const std::string program = files.real("/usr/sbin/busybox");
    capable = ::setxattr(program.c_str(), "security.capability", kCapability, sizeof(kCapability), 0) == 0;
    return Output{0, "", ""};
  }
  Result<Output> make_real(const Command& command) {
    const auto process = make_process();
    TRY(const Output made, process->run(command));
    TRY(const Output attribute,
        process->run({.argv = {"debugfs", "-R", "ea_get -x /usr/sbin/busybox security.capability",
                               command.argv.at(command.argv.size() - 2)}}));
    packed_capability = attribute.out;
    return made;
  }
  Result<Output> make_raw(const std::string& raw) {
    TRY_(Files("/").write(raw, std::string(5000, 'x')));
    return Output{0, "", ""};
  }
};

struct Bench {
  TempDir dir = {};
  PaperDebian debian = {};
  ImageRequest request = {};
  std::vector<std::string> reasons = {};

  Bench() {
    request.name = "gpu";
    request.variant = "cloud";
    request.state_dir = dir.path("state");
    request.host_root = dir.path("host");
    request.level = 1;
    for (const Distribution& one : distributions()) dir.write("host" + one.keyring, "key");
    recipe("[ vim ]");
  }
  void recipe(const std::string& packages) {
    request.recipe =
        parse_recipe("suite: s\nmirror: http://m/debian\nkernel: {cloud: k, full: f}\npackages: " + packages,
                     "r.yaml")
            .value();
  }
  Result<ImageInfo> build() {
    reasons.clear();
    return build_image(request, debian, [&](const std::string& what, double fraction) {
      if (fraction <= 0) reasons.push_back(what);
    });
  }
  std::string reason() {
    const auto info = build();
    REQUIRE(info);
    CHECK(info->reused == reasons.empty());
    return reasons.empty() ? "" : reasons.front();
  }
};

}  // namespace

TEST_CASE("an image is built once, again when an input changed, and says which") {
  Bench b;
  CHECK(b.reason() == "not built yet");
  CHECK(b.reason().empty());
  CHECK(b.debian.trees == 1);
  b.recipe("[ htop ]");
  CHECK(b.reason() == "packages: +htop -vim");
  CHECK(b.reason().empty());
  b.request.packages = {"fio"};
  CHECK(b.reason() == "packages: +fio");
  b.request.files = {{"/etc/motd", "hello", 0644}};
  CHECK(b.reason() == "files: +/etc/motd");
  b.request.files[0].content = "bye";
  CHECK(b.reason() == "files: /etc/motd");
  b.request.run = {{"systemctl", "mask", "x"}};
  CHECK(b.reason() == "the commands in `run` changed");
  const int trees = b.debian.trees;
  b.request.rebuild = true;
  CHECK(b.reason() == "a rebuild was requested");
  CHECK(b.debian.trees == trees + 1);
}

TEST_CASE("packages are installed again only if they, their sources or the day are others", "[image][apt]") {
  Bench b;
  b.request.recipe.suite = "bookworm";
  REQUIRE(b.build());
  CHECK(b.debian.archives == 1);
  CHECK_FALSE(b.debian.lists);
  const auto reused = [&] {
    const int archives = b.debian.archives, trees = b.debian.trees;
    const auto built = b.build();
    INFO((built.ok() ? "" : built.error().message));
    REQUIRE(built);
    CHECK(b.debian.trees == trees + 1);
    CHECK(Files(b.request.state_dir).list("/images/gpu/.bootstrap").size() == 1);
    return b.debian.archives == archives;
  };
  b.request.files = {{"/etc/motd", "hello", 0644}};
  CHECK(reused());
  b.request.run = {{"systemctl", "mask", "x"}};
  CHECK(reused());
  CHECK(b.debian.lists);  // a command may install packages
  b.request.recipe.mask = {"x.service"};
  CHECK(reused());

  b.request.packages = {"fio"};
  CHECK_FALSE(reused());
  b.request.recipe.exclude = {"/usr/share/doc/*"};
  CHECK_FALSE(reused());
  b.request.recipe.mirror = "http://other/debian";
  CHECK_FALSE(reused());
  b.request.recipe.key = "key";
  CHECK_FALSE(reused());
  b.request.recipe.suite = "trixie";
  CHECK_FALSE(reused());
  b.request.variant = "full";  // another kernel
  CHECK_FALSE(reused());
  b.request.rebuild = true;
  CHECK_FALSE(reused());
  b.request.rebuild = false;

  const Files kept(b.request.state_dir + "/images/gpu/.bootstrap");
  const std::string folder = "/" + kept.list("/").at(0), record = folder + "/built.json";
  const auto another = [&] { b.request.files[0].content += "!"; };
  const auto built_at = [&](TimeMs at) {
    Json now = Json::parse(kept.read(record).value());
    now["built_at"] = at;
    REQUIRE(kept.write(record, now.dump()));
  };
  another(), built_at(wall_clock() - kPackagesReused + kMinute);
  CHECK(reused());
  for (const TimeMs at : {wall_clock() - kPackagesReused, wall_clock() + kDay}) {  // old; the clock was wrong
    another(), built_at(at);
    CHECK_FALSE(reused());
  }
  another(), std::filesystem::resize_file(kept.real(folder + "/packages.tar"), 1);
  CHECK_FALSE(reused());
  another();
  REQUIRE(kept.write(record, "nonsense"));
  CHECK_FALSE(reused());
  another();
  CHECK(reused());
}

TEST_CASE("what fails behind the packages does not install them again", "[image]") {
  Bench b;
  b.debian.customized = {1, "", "E: /site/tool: not found\n"};
  REQUIRE_FALSE(b.build());
  CHECK(b.debian.archives == 1);
  b.debian.customized = {0, "", ""};
  REQUIRE(b.build());
  CHECK(b.debian.archives == 1);
  // Those that were not completed are no basis, and the ones before stay until others are.
  b.request.packages = {"foi"};
  b.debian.bootstrap = {25, "", "E: Unable to locate package foi\n"};
  for (int time = 0; time < 2; ++time) REQUIRE_FALSE(b.build());
  CHECK(b.debian.archives == 3);
  b.request.packages = {};
  b.request.files = {{"/etc/motd", "hello", 0644}};
  REQUIRE(b.build());
  CHECK(b.debian.archives == 3);
}

TEST_CASE("images that differ in files alone share their packages, in a cache", "[image]") {
  Bench b;
  b.request.shared_cache = b.dir.path("cache");
  REQUIRE(b.build());
  b.request.state_dir = b.dir.path("other");
  b.request.name = "cpu";
  b.request.files = {{"/etc/motd", "hello", 0644}};
  REQUIRE(b.build());
  CHECK(b.debian.archives == 1);
  CHECK(b.debian.trees == 2);
  b.request.state_dir = b.dir.path("third");
  b.request.rebuild = true;
  REQUIRE(b.build());
  CHECK(b.debian.archives == 2);
  b.request.rebuild = false;

  // One that is too old, or damaged, is replaced, once for all.
  const Files cache(b.request.shared_cache);
  std::string entry;
  for (const auto& name : cache.list("/"))
    if (cache.exists("/" + name + "/packages.tar")) entry = "/" + name;
  int state = 0;
  const auto another = [&] {
    b.request.state_dir = b.dir.path("of-" + std::to_string(++state));
    b.request.files[0].content += "!";
    const auto built = b.build();
    INFO((built.ok() ? "" : built.error().message));
    REQUIRE(built);
    return b.debian.archives;
  };
  const bool old = GENERATE(true, false);
  if (old) {
    const TempDir other;
    Json record = Json::parse(cache.read(entry + "/built.json").value());
    record["built_at"] = wall_clock() - kPackagesReused;
    REQUIRE(Files("/").write(other.path("e/built.json"), record.dump()));
    REQUIRE(Files("/").write(other.path("e/packages.tar"), "packages"));
    REQUIRE(keep_build(b.request.shared_cache, entry.substr(1), other.path("e"), true).ok());
  } else {
    REQUIRE(cache.write(entry + "/packages.tar", "PACKAGES"));
  }
  CHECK(another() == 3);
  CHECK(another() == 3);
}

TEST_CASE("a system has an initrd unless its kernel has what it needs for its root", "[image]") {
  Bench b;
  const auto has_initrd = [&] {
    b.request.rebuild = true;
    const auto info = b.build();
    INFO((info.ok() ? "" : info.error().message));
    REQUIRE(info);
    const auto& files = info->manifest.files;
    return std::any_of(files.begin(), files.end(), [](const auto& file) { return file.role == "initrd"; });
  };
  CHECK_FALSE(has_initrd());
  b.request.variant = "full";  // the name decides nothing
  CHECK_FALSE(has_initrd());
  for (const char* builtin : {"", "kernel/fs/ext4/ext4.ko\n", "kernel/drivers/nvme/host/nvme.ko\n"}) {
    b.debian.builtin = builtin;
    CHECK(has_initrd());
  }
}

TEST_CASE("an image's file system is made with the settings of its own release", "[image]") {
  Bench b;
  REQUIRE(b.build());
  CHECK(b.debian.features == "of Paper 1");
}

TEST_CASE("a builder that does not know a newer release's features makes the file system with its own",
          "[image]") {
  Bench b;
  b.debian.unknown = "of Paper 1";
  REQUIRE(b.build());
  CHECK(b.debian.features == "the builder's");
}

TEST_CASE("a build says which modules the kernel lacks", "[image]") {
  Bench b;
  std::string ram;
  const auto info = build_image(b.request, b.debian, [&](const std::string& what, double) {
    if (what.starts_with("RAM system: ")) ram = what;
  });
  REQUIRE(info);
  CHECK(ram.find("megaraid_sas") != std::string::npos);
  CHECK(ram.find("nvme") == std::string::npos);
  CHECK(ram.find("ext4") == std::string::npos);  // built in
}

TEST_CASE("a tree that lacks something is refused before it is an image, with the reason", "[image][apt]") {
  Bench b;
  const auto refused = [&](const std::string& reason) {
    const auto built = b.build();
    REQUIRE_FALSE(built);
    INFO(built.error().message);
    CHECK(built.error().message.find(reason) != std::string::npos);
    CHECK(load_image(b.request.state_dir, "gpu").error().code == Code::not_found);
  };
  const std::string key = b.request.host_root + find_distribution("debian")->keyring;
  REQUIRE(std::filesystem::remove(key));
  refused("debian-archive-keyring");
  CHECK(b.debian.trees == 0);
  REQUIRE(Files("/").write(key, "key"));
  b.debian.bootstrap = {25, "", "I: x\nW: GPG error: http://m s InRelease: NO_PUBKEY 1\nE: apt-get failed\n"};
  refused("NO_PUBKEY");
  b.debian.bootstrap = {25, "", std::string(5000, 'x') + "\nE: Unable to locate package fio\nE: failed\n"};
  refused("Unable to locate package fio");
  // To apt that is a warning.
  b.debian.bootstrap = {0, "",
                        "W: Skipping acquire of configured file 'a' as repository 'http://m s InRelease' "
                        "doesn't have the component 'universe' (component misspelt in sources.list?)\n"};
  refused("component 'universe'");
  CHECK(std::count(b.debian.last.begin(), b.debian.last.end(), "--verbose") == 1);
  b.debian.bootstrap = {0, "", ""};
  b.debian.loader = "";
  b.request.recipe.suite = "bullseye";
  refused("bullseye has in the package systemd");
}

TEST_CASE("a component of this machine's sources that the recipe's release lacks is no error",
          "[image][apt]") {
  Bench b;
  b.dir.write("host/etc/os-release", "ID=debian\nVERSION_CODENAME=s\n");
  b.request.recipe.mirror = "";
  b.debian.bootstrap = {0, "", "W: Skipping acquire, as 'http://m s' doesn't have the component 'new'\n"};
  CHECK(b.build());
  CHECK(b.debian.sources.find(" s main new\n") != std::string::npos);
  b.request.recipe.components = {"main", "new"};
  CHECK_FALSE(b.build());
}

TEST_CASE("an image has its release's sources in the file where a node has them", "[image][apt]") {
  Bench b;
  b.request.recipe.suite = "bookworm";
  REQUIRE(b.build());
  CHECK(b.debian.sources.find(" http://m/debian-security bookworm-security main\n") != std::string::npos);
  CHECK(b.debian.script.find("/etc/apt/") == std::string::npos);  // the builder leaves them there
  b.request.recipe =
      parse_recipe("suite: noble\ndistribution: ubuntu\nmirror: http://m/x\nkernel: {cloud: k}\n", "r.yaml")
          .value();
  REQUIRE(b.build());
  CHECK(b.debian.sources.find(" http://m/x noble-security main universe\n") != std::string::npos);
  for (const char* file : {"/etc/apt/sources.list.d/ubuntu.sources", "/etc/apt/sources.list"})
    CHECK(b.debian.script.find("\"$1\"'" + std::string(file) + "'\n") != std::string::npos);
}

TEST_CASE("a declared key of the mirror is in the image, and its sources name it there", "[image][apt]") {
  Bench b;
  b.request.recipe.suite = "bookworm";
  b.request.recipe.key = "key\n";
  REQUIRE(b.build());
  CHECK(b.debian.sources.find("/mirror.asc] http://m/debian bookworm") != std::string::npos);
  for (const char* file : {kMirrorKey, kSourcesList})
    CHECK(b.debian.script.find("\"$1\"'" + std::string(file) + "'\n") != std::string::npos);
}

TEST_CASE("layers are stacked, kept, and only those that changed are made again") {
  Bench b;
  b.request.agent = b.dir.path("agent");
  REQUIRE(Files("/").write(b.request.agent, "program", 0755));
  const auto layer = [](const char* name, const char* step) {
    return ImageLayer{name, Json::array({Json{{"id", step}}}), {}};
  };
  b.request.layers = {layer("gpu", "a"), layer("hpc", "b")};
  const auto first = b.build();
  if (::geteuid() != 0) {  // only root may mount
    REQUIRE(!first.ok());
    CHECK(first.error().code == Code::denied);
    return;
  }
  INFO((first.ok() ? "" : first.error().message));
  REQUIRE(first.ok());
  CHECK(b.debian.layers == std::vector<std::string>{"a over 0", "b over 1"});
  CHECK(b.debian.packed == std::set<std::string>{"a", "b"});
  CHECK(b.debian.finished == 1);
  CHECK(Files(b.dir.path("state")).list("/images/gpu/.layers").size() == 3);

  b.request.layers[1] = layer("hpc", "c");
  CHECK(b.reason() == "layers: hpc");
  CHECK(b.debian.trees == 1);
  CHECK(b.debian.layers.size() == 3);
  CHECK(b.debian.layers.back() == "c over 1");
  CHECK(b.debian.packed == std::set<std::string>{"a", "c"});
  CHECK(Files(b.dir.path("state")).list("/images/gpu/.layers").size() == 3);  // the old hpc is gone

  b.request.layers[0] = layer("gpu", "d");
  CHECK(b.reason() == "layers: gpu");
  CHECK(b.debian.trees == 1);
  CHECK(b.debian.packed == std::set<std::string>{"c", "d"});
  b.request.rebuild = true;
  REQUIRE(b.build().ok());
  CHECK(b.debian.trees == 2);
}

TEST_CASE("programs keep their capabilities, from a layer below into the file system") {
  Bench b;
  b.debian.capable = true;
  b.request.agent = b.dir.path("agent");
  REQUIRE(Files("/").write(b.request.agent, "program", 0755));
  b.request.layers = {ImageLayer{"hpc", Json::array({Json{{"id", "a"}}}), {}}};
  const auto built = b.build();
  if (::geteuid() != 0 || !b.debian.capable) return;  // only root may mount and give capabilities
  INFO((built.ok() ? "" : built.error().message));
  REQUIRE(built.ok());
  CHECK(b.debian.packed_capability.find("01 00 00 02 00 20 00 00") != std::string::npos);
}

TEST_CASE("names are found while a layer is made, whatever resolver the tree has, and it keeps its own") {
  const bool resolved = GENERATE(false, true);
  Bench b;
  b.debian.resolved = resolved;
  b.request.agent = b.dir.path("agent");
  REQUIRE(Files("/").write(b.request.agent, "program", 0755));
  b.request.layers = {ImageLayer{"gpu", Json::array({Json{{"id", "a"}}}), {}}};
  const auto built = b.build();
  if (::geteuid() != 0) return;  // only root may mount
  INFO((built.ok() ? "" : built.error().message));
  REQUIRE(built.ok());
  CHECK(b.debian.resolver == Files("/").read("/etc/resolv.conf").value_or(""));
  CHECK(b.debian.packed_resolver == (resolved ? "../run/nowhere" : "none"));
}

TEST_CASE("a layer that fails names its step and its log, and what was made before it is not made again") {
  Bench b;
  if (::geteuid() != 0) {
    CHECK(in_private_mounts([]() -> Status { return Ok{}; }).error().code == Code::denied);
    return;
  }
  b.request.agent = b.dir.path("agent");
  REQUIRE(Files("/").write(b.request.agent, "program", 0755));
  b.request.layers = {ImageLayer{"gpu", Json::array({Json{{"id", "a"}}}), {}}};
  b.debian.broken = true;
  const auto failed = b.build();
  REQUIRE(!failed.ok());
  CHECK(failed.error().message.find("layer gpu: ") == 0);
  CHECK(failed.error().message.find("gpu/a: no such package") != std::string::npos);
  const std::string log = b.dir.path("state") + "/images/gpu/failed-gpu.log";
  CHECK(failed.error().message.find(log) != std::string::npos);
  CHECK(Files("/").read(log).value_or("") == "+ apt-get install\n");
  b.debian.broken = false;
  REQUIRE(b.build().ok());
  CHECK(b.debian.trees == 1);
}

TEST_CASE("a daemon that a package left in a layer's tree is ended, and holds nothing up") {
  const TempDir dir;
  const auto process = make_process();
  const Layers layers(dir.path("image"), dir.path("stage"), *process);
  pid_t left = -1;
  const auto done = in_private_mounts([&]() -> Status {
    TRY_(Files("/").write(layers.tree("below") + "/file", "x"));
    TRY_(layers.mount({"below"}, dir.path("tree")));
    int ready[2];
    if (::pipe(ready) != 0) return fail(Code::failed, "pipe");
    left = ::fork();
    if (left == 0) {
      const bool in = ::chroot(dir.path("tree").c_str()) == 0 && ::chdir("/") == 0;
      (void)!::write(ready[1], in ? "y" : "n", 1);
      for (;;) ::pause();
    }
    char is_in = 0;
    (void)!::read(ready[0], &is_in, 1);
    ::close(ready[0]), ::close(ready[1]);
    if (is_in != 'y') return fail(Code::denied, "chroot");
    return layers.unmount(dir.path("tree"));
  });
  if (::geteuid() != 0) {
    CHECK_FALSE(done.ok());
    return;
  }
  INFO((done.ok() ? "" : done.error().message));
  CHECK(done.ok());
  int status = 0;
  REQUIRE(::waitpid(left, &status, 0) == left);
  CHECK(WTERMSIG(status) == SIGKILL);
}

TEST_CASE("an image's record says when it was built, also where a rebuild gave the same image") {
  Bench b;
  const auto record = [&] { return b.dir.path("state/images/gpu/current/build.json"); };
  const auto built_at = [&] {
    return integer_at(parse_json(Files("/").read(record()).value()).value(), kBuiltAt);
  };
  REQUIRE(b.build());
  CHECK(built_at() > 0);
  REQUIRE(Files("/").write(record(), R"({"built_at": 5})"));
  b.request.rebuild = true;
  REQUIRE(b.build());
  CHECK(built_at() > 5);
}

TEST_CASE("an image whose files or record are damaged is built again") {
  Bench b;
  const auto info = b.build();
  REQUIRE(info);
  std::filesystem::resize_file(info->folder + "/frames.zst", 1);
  // The damaged folder has the name of what is built: it must not survive.
  CHECK(b.reason() == "files of the present image are missing or truncated");
  CHECK(b.reason().empty());
  REQUIRE(Files("/").write(info->folder + "/build.json", "{\"key\": \"of an older version\"}"));
  CHECK(b.reason() == "this version of muster builds images differently");
  REQUIRE(Files("/").write(info->folder + "/build.json", "nonsense"));
  CHECK(b.reason() == "the inputs of the present image are not recorded");
  CHECK(b.reason().empty());
}

TEST_CASE("another controller takes the image from the shared cache when all inputs are the same") {
  Bench b;
  b.request.shared_cache = b.dir.path("cache");
  const auto first = b.build();
  REQUIRE(first);
  b.request.state_dir = b.dir.path("other");
  const auto second = b.build();
  REQUIRE(second);
  CHECK(b.debian.trees == 1);
  CHECK(second->digest == first->digest);
  CHECK(second->folder != first->folder);
  CHECK(Files(second->folder).read("/frames.zst").value_or("1") ==
        Files(first->folder).read("/frames.zst").value_or("2"));
  CHECK(Files(second->folder).read_link("/ram/sbin").value_or("") == "usr/sbin");
  struct stat program = {};
  REQUIRE(::stat((second->folder + "/ram/usr/sbin/busybox").c_str(), &program) == 0);
  CHECK((program.st_mode & 0777) == 0755);
  CHECK(b.reason().empty());

  b.request.state_dir = b.dir.path("third");
  b.request.name = "cpu";  // the name is part of an image's digest
  REQUIRE(b.build());
  CHECK(b.debian.trees == 2);
  b.request.state_dir = b.dir.path("fourth");
  b.recipe("[ emacs ]");
  REQUIRE(b.build());
  CHECK(b.debian.trees == 3);
}

TEST_CASE("a damaged entry of the shared cache is refused, and a rebuild replaces it") {
  Bench b;
  b.request.shared_cache = b.dir.path("cache");
  REQUIRE(b.build());
  // Same length: only the content tells. Removed first: the file has another name in the state folder.
  const Files cache(b.request.shared_cache);
  const auto entries = cache.list("/");
  REQUIRE(entries.size() == 2);  // the image, and its packages
  std::string frames;
  for (const auto& entry : entries)
    if (const std::string path = "/" + entry + "/frames.zst"; cache.exists(path)) frames = path;
  std::string bytes = cache.read(frames).value_or("");
  REQUIRE_FALSE(bytes.empty());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  REQUIRE(cache.write(frames, bytes));
  b.request.state_dir = b.dir.path("other");
  const auto refused = b.build();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::corrupt);
  CHECK(load_image(b.request.state_dir, "gpu").error().code == Code::not_found);
  b.request.rebuild = true;
  REQUIRE(b.build());
  b.request.rebuild = false;
  b.request.state_dir = b.dir.path("third");
  const int trees = b.debian.trees;
  REQUIRE(b.build());
  CHECK(b.debian.trees == trees);
}

TEST_CASE("changes of inputs are given in words, long lists are cut") {
  ImageRecipe recipe;
  recipe.suite = "bookworm";
  const Json before = build_inputs(recipe, "full", 2);
  CHECK(input_changes(before, before).empty());
  recipe.suite = "trixie";
  CHECK(input_changes(before, build_inputs(recipe, "cloud", 2)) ==
        "kernel: full -> cloud; suite: bookworm -> trixie");
  recipe.suite = "bookworm";
  recipe.mask = {"a", "b", "c", "d", "e", "f", "g", "h"};
  CHECK(input_changes(before, build_inputs(recipe, "full", 2)) == "mask: +a +b +c +d +e +f and 2 more");
  CHECK(input_changes(before, build_inputs(recipe, "full", 3)) ==
        "this version of muster builds images differently");
  CHECK_FALSE(input_changes(Json("nonsense"), before).empty());
}

TEST_CASE("packed kernel modules are unpacked for the RAM system") {
  const std::pair<std::string, std::string> packers[] = {{"xz", ".xz"}, {"zstd", ".zst"}};
  for (const auto& [tool, suffix] : packers) {
    TempDir dir;
    const Files tree(dir.path("tree")), ram(dir.path("ram"));
    const std::string folder = "/usr/lib/modules/6.12-paper";
    const auto packed = run_ok(*make_process(), {.argv = {tool, "-c"}, .input = "module"});
    REQUIRE(packed);
    REQUIRE(tree.write(folder + "/kernel/nvme.ko" + suffix, *packed));
    REQUIRE(tree.write(folder + "/modules.dep", "kernel/nvme.ko" + suffix + ":\n"));
    REQUIRE(tree.write(folder + "/modules.alias", "alias pci:v1 nvme\n"));
    for (const char* name : {"busybox", "mkfs.vfat", "mkfs.ext4"})
      REQUIRE(tree.write(std::string("/usr/sbin/") + name, "#!/bin/sh\n", 0755));
    REQUIRE(collect_ram_tree(tree.root(), "6.12-paper", ram.root()));
    CHECK(ram.read(folder + "/kernel/nvme.ko").value_or("") == "module");
    CHECK(ram.read(folder + "/modules.dep").value_or("") == "kernel/nvme.ko:\n");
    CHECK(ram.read(folder + "/modules.alias").value_or("") == "alias pci:v1 nvme\n");
  }
}

TEST_CASE("a RAM system that is packed again says which program changed") {
  TempDir dir;
  const Files files(dir.path("."));
  REQUIRE(files.write("/image/vmlinuz", "kernel"));
  REQUIRE(files.write("/image/ram/etc/x", "x"));
  REQUIRE(files.write("/accept", "one"));
  // Any static program will do as the agent: a header of a 64-bit ELF file without program headers.
  std::string elf(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  elf.resize(64);
  elf[16] = 2, elf[18] = 62, elf[20] = 1, elf[52] = 64, elf[54] = 56;
  REQUIRE(files.write("/agent", elf));
  const RamRequest request{
      dir.path("image"), dir.path("agent"), {{dir.path("accept"), "/usr/lib/muster/muster-accept", 0755}}, 1};
  const auto first = build_ram_system(request);
  REQUIRE(first);
  CHECK(first->why.empty());
  CHECK(build_ram_system(request)->reused);
  REQUIRE(files.write("/accept", "two"));
  CHECK(build_ram_system(request)->why == "muster-accept changed");
  REQUIRE(files.write("/agent", elf + "newer"));
  CHECK(build_ram_system(request)->why == "muster-agent changed");
  REQUIRE(files.write("/image/ram-initrd", "damaged"));
  CHECK(build_ram_system(request)->why == "its initrd is damaged");
  CHECK(build_ram_system(request)->reused);
  REQUIRE(files.write("/image/ram-vmlinuz", "half"));
  const auto mended = build_ram_system(request);
  CHECK(mended->why == "its kernel is damaged");
  CHECK(files.read("/image/ram-vmlinuz").value_or("") == "kernel");
  CHECK(mended->kernel_sha256 == first->kernel_sha256);
  CHECK(build_ram_system(request)->reused);
}
