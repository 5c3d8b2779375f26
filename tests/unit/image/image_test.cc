#include "controller/image/image.h"

#include <stdlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "base/digest.h"
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

TEST_CASE("the recipes in the tree are valid and name both kernels") {
  for (const char* name : {"debian-12", "debian-13"}) {
    const std::string path = source_dir() + "/images/" + name + ".yaml";
    const auto r = parse_recipe(slurp(path), path);
    REQUIRE(r);
    CHECK(r->kernel.at("cloud") == "linux-image-cloud-amd64");
    CHECK(r->kernel.at("full") == "linux-image-amd64");
    CHECK_FALSE(r->packages.empty());
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

TEST_CASE("mirrors come from the host's own Debian repositories only") {
  const auto host = parse_index_targets(
      "http://mirror.example/debian/|bookworm|main|$(SIGNED_BY)\n"
      "http://mirror.example/debian/|bookworm-updates|main|/usr/share/keyrings/k.gpg\n"
      "http://sec.example/debian-security/|bookworm-security|main|\n"
      "https://vendor.example/apt|stable|main|/k.gpg\n"
      "http://mirror.example/debian/|bookworm|contrib|\n");
  REQUIRE(host.size() == 5);
  CHECK(host[0].signed_by.empty());
  const auto same = sources_for(host, "bookworm", "bookworm", "/k.gpg");
  REQUIRE(same);
  CHECK(*same ==
        "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm contrib main\n"
        "deb [signed-by=/k.gpg] http://sec.example/debian-security bookworm-security main\n"
        "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm-updates main\n");
  const auto newer = sources_for(host, "bookworm", "trixie", "");
  REQUIRE(newer);
  CHECK(newer->find("deb http://mirror.example/debian trixie contrib main\n") == 0);
  CHECK(newer->find("bookworm") == std::string::npos);
  CHECK(sources_for(host, "jammy", "bookworm", "").error().code == Code::not_found);
}

namespace {

Result<ImageRecipe> recipe_with(const std::string& keys, const std::string& suite = "bookworm") {
  return parse_recipe("suite: " + suite + "\nkernel: {full: k}\n" + keys, "x.yaml");
}

}  // namespace

TEST_CASE("an image from a mirror of one's own has the release's updates and security pockets") {
  const auto usual = recipe_with("mirror: http://m.example/debian/\n");
  REQUIRE(usual);
  CHECK(sources_of_mirror(*usual, "/k.gpg") ==
        "deb [signed-by=/k.gpg] http://m.example/debian bookworm main\n"
        "deb [signed-by=/k.gpg] http://m.example/debian bookworm-updates main\n"
        "deb [signed-by=/k.gpg] http://m.example/debian-security bookworm-security main\n");
  const auto named =
      recipe_with("mirror: http://m.example/pool/a\nsecurity_mirror: http://s.example/b/\nupdates: false\n");
  REQUIRE(named);
  CHECK(sources_of_mirror(*named, "") ==
        "deb http://m.example/pool/a bookworm main\n"
        "deb http://s.example/b bookworm-security main\n");
  const auto alone = recipe_with("mirror: file:/srv/apt\nsecurity_mirror: none\nupdates: false\n");
  REQUIRE(alone);
  CHECK(sources_of_mirror(*alone, "") == "deb file:/srv/apt bookworm main\n");
  CHECK(sources_of_mirror(*recipe_with("mirror: http://m.example/debian", "sid"), "") ==
        "deb http://m.example/debian sid main\n");
}

TEST_CASE("the mirror of the spec takes the place of the recipe's, with its pockets", "[image][apt]") {
  const AptMirror declared{"http://10.20.0.9/debian", "http://10.20.0.9/debian-security", true};
  auto plain = recipe_with(""), own = recipe_with("mirror: http://m.example/debian\nupdates: false\n");
  const std::string before = canonical(*plain);
  use_mirror(*plain, {});
  CHECK(canonical(*plain) == before);  // of a spec that declares none
  use_mirror(*plain, declared);
  use_mirror(*own, declared);
  CHECK(canonical(*plain) == canonical(*own));
  CHECK(canonical(*plain) != before);  // so the image is built again
  CHECK(sources_of_mirror(*own, "/k.gpg") ==
        "deb [signed-by=/k.gpg] http://10.20.0.9/debian bookworm main\n"
        "deb [signed-by=/k.gpg] http://10.20.0.9/debian bookworm-updates main\n"
        "deb [signed-by=/k.gpg] http://10.20.0.9/debian-security bookworm-security main\n");
  auto sid = recipe_with("mirror: http://m.example/debian", "sid");
  use_mirror(*sid, declared);
  CHECK(sources_of_mirror(*sid, "") == "deb http://10.20.0.9/debian sid main\n");
  use_mirror(*own, {"http://10.20.0.9/pool", kNoMirror, false});
  CHECK(sources_of_mirror(*own, "") == "deb http://10.20.0.9/pool bookworm main\n");
}

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
    REQUIRE(files.write("/tree/etc/resolv.conf", "nameserver 127.0.0.53\n"));
    for (const char* folder : {"/tree/var/log", "/tree/etc/ssh"}) REQUIRE(files.make_directories(folder));
    REQUIRE(files.write("/script", script, 0755));
    const auto out = process->run({.argv = {"/bin/sh", tmp.path + "/script", tmp.path + "/tree"},
                                   .env = {{"PATH", tmp.path + "/bin:/usr/bin:/bin"}}});
    REQUIRE(out);
    INFO(out->err);
    REQUIRE(out->exit_code == 0);
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

TEST_CASE("the agent's unit in images is the one that is packaged") {
  for (const auto& f : builtin_files())
    if (f.path == "/etc/systemd/system/muster-agent.service")
      CHECK(f.content == slurp(source_dir() + "/systemd/muster-agent.service"));
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
