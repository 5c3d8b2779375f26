#include "controller/image/image.h"

#include <stdlib.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/split.h"
#include "controller/image/customize.h"
#include "controller/image/recipe.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

struct TempFolder {
  std::string path;
  TempFolder() {
    char name[] = "/tmp/muster-image-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
};

std::string slurp(const std::string& path) { return Files("/").read(path).value_or("?"); }

}  // namespace

TEST_CASE("the recipes in the tree are valid", "[image][recipe]") {
  const std::string folder = source_dir() + "/images";
  size_t found = 0;
  for (const auto& file : Files("/").list(folder)) {
    CAPTURE(file);
    REQUIRE(file.ends_with(".yaml"));
    const auto r = load_recipe(folder, file.substr(0, file.size() - 5));
    INFO((r.ok() ? "" : r.error().message));
    REQUIRE(r);
    ++found;
    REQUIRE(find_release(r->suite) != nullptr);
    CHECK(find_release(r->suite)->supported);
    CHECK(file.starts_with(r->distribution + "-" + find_release(r->suite)->version));
    CHECK(r->kernel.count("full") == 1);
    CHECK_FALSE(r->packages.empty());
    if (find_release(r->suite)->loader_package != "systemd")
      CHECK(std::count(r->packages.begin(), r->packages.end(), find_release(r->suite)->loader_package) == 1);
    // muster's units belong to ssh.service, and this release, as installed, has a socket start another one.
    const bool held = std::count(r->disable.begin(), r->disable.end(), "ssh.socket") == 1 &&
                      std::count(r->enable.begin(), r->enable.end(), "ssh.service") == 1;
    CHECK(held == (r->suite == "noble"));
  }
  CHECK(found == 8);
  CHECK(load_recipe(folder, default_recipe()).ok());
}

// Images that were built before there was a second distribution must not be built again.
TEST_CASE("the shipped recipes of the first distribution have the keys that they always had",
          "[image][recipe]") {
  for (const std::string name : {"debian-12", "debian-12-metal", "debian-13", "debian-13-metal"}) {
    CAPTURE(name);
    const auto recipe = load_recipe(source_dir() + "/images", name);
    REQUIRE(recipe);
    const std::string path = source_dir() + "/tests/golden/recipes/" + name + ".json";
    const std::string now = canonical(*recipe) + "\n";
    if (::getenv("MUSTER_ACCEPT")) std::ofstream(path, std::ios::binary) << now;
    INFO("with another text every image of this recipe is built again; MUSTER_ACCEPT=1 takes it");
    CHECK(slurp(path) == now);
  }
  const auto plain = parse_recipe("suite: bookworm\nkernel: {full: k}\n", "x"),
             named = parse_recipe(
                 "distribution: debian\ncomponents: [main]\nsuite: bookworm\nkernel: {full: k}\n", "x");
  REQUIRE((plain && named));
  CHECK(canonical(*plain) == canonical(*named));
}

TEST_CASE("a recipe's distribution, suite and components fit each other", "[image][recipe]") {
  const auto with = [](const std::string& keys) {
    return parse_recipe(keys + "kernel: {full: k}\n", "x.yaml");
  };
  const auto ubuntu = with("distribution: ubuntu\nsuite: noble\n");
  REQUIRE(ubuntu);
  CHECK(ubuntu->distribution == "ubuntu");
  CHECK(canonical(*ubuntu).find("\"distribution\":\"ubuntu\"") != std::string::npos);
  CHECK(canonical(*ubuntu).find("components") == std::string::npos);
  const auto less = with("distribution: ubuntu\nsuite: noble\ncomponents: [ main ]\n");
  REQUIRE(less);
  CHECK(canonical(*less).find("\"components\":[\"main\"]") != std::string::npos);
  CHECK(with("suite: sid\n"));  // not every suite is a release that is known
  CHECK(with("distribution: ubuntu\nsuite: plucky\n"));
  const std::pair<std::string, std::string> refused[] = {
      {"distribution: mint\nsuite: x\n", "x.yaml:1:15: distribution: "},
      {"distribution: Debian\nsuite: x\n", "x.yaml:1:15: distribution: "},
      {"suite: noble\n", "x.yaml:1:8: suite: "},
      {"distribution: ubuntu\nsuite: trixie\n", "x.yaml:2:8: suite: "},
      {"suite: trixie\ncomponents: [ main, 'non free' ]\n", "x.yaml:2:21: components[1]: "},
      {"suite: trixie\ncomponents: [ contrib, main ]\n", "x.yaml:2:13: components: "},
      {"suite: trixie\ncomponents: []\n", "x.yaml:2:13: components: "},
      {"suite: trixie\ncomponents: [ main, main ]\n", "x.yaml:2:"},
      {"suite: trixie\nmirror: http://m/ubuntu\nsecurity_mirror: none\n", "x.yaml:2:9: mirror: "},
      {"distribution: ubuntu\nsuite: noble\nmirror: http://m/debian/\n", "x.yaml:3:9: mirror: "}};
  for (const auto& [text, where] : refused) {
    CAPTURE(text);
    const auto r = with(text);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Code::invalid);
    CHECK(r.error().message.find(where) != std::string::npos);
  }
}

TEST_CASE("a recipe with several mistakes reports all of them with their lines") {
  const auto r = parse_recipe(
      "suite: bookworm\n"
      "kernel: {cloud: k}\n"
      "pakages: [a]\n"
      "files:\n"
      "  - {path: etc/x, mode: '9'}\n"
      "run: [[]]\n",
      "x.yaml");
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Code::invalid);
  const std::string& m = r.error().message;
  CHECK(m.find("x.yaml:3:1: pakages: ") != std::string::npos);
  CHECK(m.find("x.yaml:5:25: files[0].mode: ") != std::string::npos);
  CHECK(m.find("x.yaml:5:5: files[0].path: ") != std::string::npos);
  CHECK(m.find("x.yaml:6:7: run[0]: ") != std::string::npos);
}

TEST_CASE("what each machine makes for itself is refused in a recipe") {
  for (const char* path : {"/etc/munge/munge.key", "/etc/ssh/ssh_host_rsa_key", "/etc/machine-id"}) {
    CAPTURE(path);
    const auto r = parse_recipe(
        "suite: bookworm\nkernel: {cloud: k}\nfiles:\n  - {path: " + std::string(path) + ", content: x}\n",
        "x.yaml");
    REQUIRE_FALSE(r);
    CHECK(r.error().message.find("x.yaml:4:5: files[0].path: ") != std::string::npos);
  }
}

TEST_CASE("broken YAML and a missing suite are invalid") {
  CHECK(parse_recipe("a: [", "x").error().code == Code::invalid);
  CHECK(parse_recipe("[]", "x").error().code == Code::invalid);
  const auto r = parse_recipe("kernel: {full: k}", "x");
  REQUIRE_FALSE(r);
  CHECK(r.error().message.find("'suite'") != std::string::npos);
  CHECK_FALSE(parse_recipe("suite: s\nkernel: {full: k}\nsuite: t\n", "x"));
}

TEST_CASE("the cache key of a recipe follows its content") {
  const auto a = parse_recipe("suite: s\nkernel: {full: k}\npackages: [a, b]", "x");
  const auto b = parse_recipe("packages: [a, b]   # other order of keys\nkernel: {full: k}\nsuite: s\n", "y");
  const auto c = parse_recipe("suite: s\nkernel: {full: k}\npackages: [a, c]", "x");
  REQUIRE((a && b && c));
  CHECK(canonical(*a) == canonical(*b));
  CHECK(canonical(*a) != canonical(*c));
}

namespace {

Result<ImageRecipe> recipe_with(const std::string& keys, const std::string& suite = "bookworm") {
  return parse_recipe("suite: " + suite + "\nkernel: {full: k}\n" + keys, "x.yaml");
}

}  // namespace

TEST_CASE("a mirror whose security pocket cannot be found is refused until the recipe says where it is") {
  const auto refused = recipe_with("mirror: http://m.example/private\n");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("x.yaml:3:9: mirror: ") == 0);
  CHECK(refused.error().message.find("security_mirror") != std::string::npos);
  CHECK_FALSE(recipe_with("security_mirror: none\n"));  // of nothing
  CHECK_FALSE(recipe_with("updates: false\n"));
  CHECK_FALSE(recipe_with("mirror: http://m/debian\nupdates: perhaps\n"));
  CHECK_FALSE(recipe_with("mirror: http://m/debian\nsecurity_mirror: ''\n"));
}

TEST_CASE("an image that was built without its pockets is built again, others are not") {
  const auto with = recipe_with("mirror: http://m.example/debian"),
             without = recipe_with("mirror: http://m.example/debian\nsecurity_mirror: none");
  REQUIRE((with && without));
  CHECK(canonical(*with) != canonical(*without));
  CHECK(canonical(*with).find("pockets") != std::string::npos);  // which no record of an older build has
  CHECK(canonical(*recipe_with("")).find("pockets") == std::string::npos);
}

TEST_CASE("the customize script masks, installs and runs what the recipe says, quoted") {
  ImageRecipe r;
  r.mask = {"apt-daily.timer"};
  r.files = {{"/etc/it's", "x", 0600}};
  r.run = {{"echo", "a b; rm -rf /"}};
  const std::string s = customize_script(r, "/o");
  CHECK(s.find("ln -sf /dev/null \"$1\"'/etc/systemd/system/apt-daily.timer'") != std::string::npos);
  CHECK(s.find("install -D -m 0600 '/o/0' \"$1\"'/etc/it'\\''s'") != std::string::npos);
  CHECK(s.find("chroot \"$1\" 'echo' 'a b; rm -rf /'\n") != std::string::npos);
  CHECK(s.find("passwd -q -l root") != std::string::npos);
  CHECK(s.find("rm -f \"$1\"/etc/ssh/ssh_host_*") != std::string::npos);
}

TEST_CASE("an image does not carry the resolver of the host that built it") {
  TempFolder tmp;
  const Files files(tmp.path);
  // Of the tree only this is read: whether systemd-resolved is enabled in it.
  REQUIRE(files.write(
      "/bin/chroot",
      "#!/bin/sh\ncase \"$*\" in *is-enabled*systemd-resolved*) test -e \"$1/resolved\";; esac\n", 0755));
  const auto process = make_process();
  const auto left = [&](const std::string& script) {
    for (const char* name : {"/tree/etc/resolv.conf", "/tree/etc/.resolv.conf.systemd-resolved.bak"})
      REQUIRE(files.write(name, "nameserver 127.0.0.53\n"));
    for (const char* folder : {"/tree/var/log", "/tree/etc/ssh"}) REQUIRE(files.make_directories(folder));
    REQUIRE(files.write("/script", script, 0755));
    const auto out = process->run({.argv = {"/bin/sh", tmp.path + "/script", tmp.path + "/tree"},
                                   .env = {{"PATH", tmp.path + "/bin:/usr/bin:/bin"}}});
    REQUIRE(out);
    INFO(out->err);
    REQUIRE(out->exit_code == 0);
    CHECK_FALSE(files.exists("/tree/etc/.resolv.conf.systemd-resolved.bak"));
    if (const auto link = files.read_link("/tree/etc/resolv.conf"); link.ok()) return "-> " + *link;
    return files.read("/tree/etc/resolv.conf").value_or("nothing");
  };
  CHECK(left(customize_script({}, "/o")) == "nothing");
  CHECK(left(finish_script({}, {})) == "nothing");
  ImageRecipe own;
  own.files = {{"/etc/resolv.conf", "nameserver 10.0.0.53\n"}};
  CHECK(left(finish_script(own, {})) == "nameserver 127.0.0.53\n");  // what the recipe brought is its own
  REQUIRE(files.write("/tree/resolved", ""));
  CHECK(left(customize_script({}, "/o")) == "-> ../run/systemd/resolve/stub-resolv.conf");
}

TEST_CASE("the agent's unit in images has the settings of the one that is packaged") {
  const auto settings = [](const std::string& unit) {
    std::string out;
    for (const auto& line : split_lines(unit))
      if (!line.starts_with("#")) out += line + "\n";
    return out;
  };
  for (const auto& f : builtin_files())
    if (f.path == "/etc/systemd/system/muster-agent.service")
      CHECK(settings(f.content) == settings(slurp(source_dir() + "/systemd/muster-agent.service")));
  CHECK(customize_script({}, "/o").find("'muster-agent.service'") != std::string::npos);
}

TEST_CASE("frames hold exactly the raw image, zero frames are not stored") {
  TempFolder tmp;
  std::string raw(2 * kFrameSize + 12345, '\0');
  for (size_t i = 0; i < 100000; ++i) raw[i] = static_cast<char>(i * 7);
  for (size_t i = 2 * kFrameSize; i < raw.size(); ++i) raw[i] = static_cast<char>(i * 13 + i / 256);
  std::ofstream(tmp.path + "/raw", std::ios::binary) << raw;
  auto m = write_frames(tmp.path + "/raw", tmp.path + "/frames", 3);
  REQUIRE(m);
  REQUIRE(m->frames.size() == 3);
  CHECK_FALSE(m->frames[0].zero);
  CHECK(m->frames[1].zero);
  CHECK(m->frames[2].raw_bytes == 12345);
  const std::string stored = slurp(tmp.path + "/frames");
  CHECK(stored.size() == m->stored_size());
  std::string back;
  for (const auto& f : m->frames) {
    std::string piece(f.raw_bytes, '\0');
    if (!f.zero) {
      const std::string bytes = stored.substr(f.offset, f.stored_bytes);
      REQUIRE(check_stored_frame(f, bytes));
      REQUIRE(ZSTD_decompress(piece.data(), piece.size(), bytes.data(), bytes.size()) == f.raw_bytes);
      CHECK(sha256(piece) == f.raw_sha256);
    }
    back += piece;
  }
  CHECK(back == raw);
  // What was written is a manifest the agent accepts.
  m->name = "x";
  m->digest = manifest_digest(*m);
  CHECK(manifest_from_text(to_text(*m)));
}

TEST_CASE("an image that was never built is not found, a bad name is refused") {
  TempFolder tmp;
  CHECK(load_image(tmp.path, "nothing").error().code == Code::not_found);
  CHECK(load_image(tmp.path, "../etc").error().code == Code::invalid);
  CHECK(list_images(tmp.path).empty());
}
