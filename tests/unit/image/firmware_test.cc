// Firmware in the RAM system and the initrd: by what the modules name, and the processors' microcode in
// front.
#include "controller/image/firmware.h"

#include <algorithm>
#include <filesystem>

#include "controller/image/inputs.h"
#include "controller/image/recipe.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

Result<ImageRecipe> recipe_with(const std::string& keys, const std::string& suite = "bookworm") {
  return parse_recipe("suite: " + suite + "\nkernel: {full: k}\n" + keys, "x.yaml");
}

// What the linker leaves of a module's MODULE_FIRMWARE lines.
std::string module_with(const std::vector<std::string>& names) {
  std::string out(
      "\x7f"
      "ELF\0\0license=GPL",
      17);
  for (const auto& name : names) out += std::string(1, '\0') + "firmware=" + name;
  return out + std::string("\0alias=pci:x\0", 13);
}

void write(const TempDir& dir, const std::string& path, const std::string& content) {
  REQUIRE(Files(dir.path("")).write("/" + path, content).ok());
}

}  // namespace

TEST_CASE("a recipe's firmware is installed from its component, and an image without any is as it was",
          "[image][firmware]") {
  const auto with = recipe_with("firmware: [ firmware-misc-nonfree, amd64-microcode ]\n");
  REQUIRE(with);
  CHECK(with->firmware == std::vector<std::string>{"firmware-misc-nonfree", "amd64-microcode"});
  CHECK(canonical(*with).find("firmware-misc-nonfree") != std::string::npos);
  CHECK(canonical(*recipe_with("")).find("firmware") == std::string::npos);
  CHECK(canonical(*recipe_with("firmware: []\n")) == canonical(*recipe_with("")));
  CHECK_FALSE(recipe_with("firmware: firmware-misc-nonfree\n"));  // no list
  CHECK_FALSE(recipe_with("firmware: [ '; rm' ]\n"));
  CHECK_FALSE(recipe_with("firmware: [ x-firmware ]\n", "bullseye"));
  CHECK(recipe_with("firmware: [ x-firmware ]\n", "trixie"));
  CHECK(recipe_with("firmware: [ x-firmware ]\ndistribution: ubuntu\n", "jammy"));
  const auto built = build_inputs(*recipe_with(""), "full", 1, {});
  CHECK(input_changes(built, build_inputs(*with, "full", 1, {})).find("+amd64-microcode") !=
        std::string::npos);
  CHECK_FALSE(input_changes(build_inputs(*with, "full", 1, {}), built).empty());
}

TEST_CASE("the recipes for metal are the plain ones with firmware of adapters and both makers' microcode",
          "[image][firmware]") {
  const std::string folder = source_dir() + "/images";
  for (const std::string plain : {"debian-12", "debian-13"}) {
    CAPTURE(plain);
    auto metal = load_recipe(folder, plain + "-metal");
    const auto base = load_recipe(folder, plain);
    REQUIRE(metal.ok());
    REQUIRE(base.ok());
    CHECK(base->firmware.empty());
    const auto& list = metal->firmware;
    // ice's file moved to firmware-intel-misc in Debian 13; recommended packages are not installed.
    std::vector<std::string> wanted = {"intel-microcode", "amd64-microcode", "firmware-misc-nonfree",
                                       "firmware-bnx2x", "firmware-qlogic"};
    if (plain == "debian-13") wanted.push_back("firmware-intel-misc");
    for (const auto& name : wanted) {
      CAPTURE(name);
      CHECK(std::count(list.begin(), list.end(), name) == 1);
    }
    metal->firmware.clear();
    CHECK(canonical(*metal) == canonical(*base));
  }
}

TEST_CASE("a recipe made from another one adds to its lists and replaces its other keys", "[image]") {
  TempDir dir;
  const std::string folder = dir.path(".");
  write(dir, "plain.yaml",
        "suite: trixie\nmirror: http://m/pool\nsecurity_mirror: none\nkernel: { full: k, cloud: c }\n"
        "packages: [ a ]\nfirmware: [ f1 ]\nrun: [ [ one ] ]\n");
  write(dir, "more.yaml", "from: plain\nkernel: { full: k2 }\npackages: [ b ]\nfirmware: [ f2 ]\n");
  const auto more = load_recipe(folder, "more");
  REQUIRE(more.ok());
  CHECK(more->suite == "trixie");
  CHECK(more->mirror == "http://m/pool");
  CHECK(more->security_mirror == kNoMirror);
  CHECK(more->kernel == std::map<std::string, std::string>{{"full", "k2"}, {"cloud", "c"}});
  CHECK(more->packages == std::vector<std::string>{"a", "b"});
  CHECK(more->firmware == std::vector<std::string>{"f1", "f2"});
  CHECK(more->run.size() == 1);
  write(dir, "noble.yaml", "distribution: ubuntu\nsuite: noble\ncomponents: [ main ]\nkernel: { full: k }\n");
  write(dir, "metal.yaml", "from: noble\npackages: [ b ]\n");
  CHECK(load_recipe(folder, "metal")->distribution == "ubuntu");
  CHECK(load_recipe(folder, "metal")->components == std::vector<std::string>{"main"});
  write(dir, "foreign.yaml", "from: noble\nsuite: trixie\n");
  CHECK(load_recipe(folder, "foreign").error().code == Code::invalid);
  write(dir, "changed.yaml", "from: noble\ndistribution: debian\nsuite: trixie\n");
  CHECK(load_recipe(folder, "changed").error().code == Code::invalid);
  write(dir, "mirrored.yaml", "from: plain\nmirror: http://n/debian\n");
  CHECK(load_recipe(folder, "mirrored")->security_mirror == "http://n/debian-security");

  write(dir, "chain.yaml", "from: more\n");
  CHECK(load_recipe(folder, "chain").error().code == Code::invalid);
  write(dir, "itself.yaml", "from: itself\n");
  CHECK(load_recipe(folder, "itself").error().code == Code::invalid);
  write(dir, "lost.yaml", "from: nowhere\n");
  CHECK(load_recipe(folder, "lost").error().code == Code::not_found);
  CHECK(load_recipe(folder, "nowhere").error().code == Code::not_found);
  for (const std::string bad : {"../images/plain", "/etc/passwd", "[ plain ]", "''"}) {
    write(dir, "bad.yaml", "from: " + bad + "\n");
    CHECK(load_recipe(folder, "bad").error().code == Code::invalid);
  }
  write(dir, "bad.yaml", "from: plain\npackage: [ b ]\n");
  CHECK(load_recipe(folder, "bad").error().message.find("bad.yaml:2:1: package: ") != std::string::npos);
  CHECK_FALSE(parse_recipe("from: plain\n", "x.yaml"));  // beside nothing
}

TEST_CASE("a module says which firmware it may ask for", "[image][firmware]") {
  CHECK(firmware_named_by(module_with({"intel/ice/ddp/ice.pkg", "b.bin", "b.bin"})) ==
        std::vector<std::string>{"intel/ice/ddp/ice.pkg", "b.bin"});
  CHECK(firmware_named_by(module_with({})).empty());
  CHECK(firmware_named_by("").empty());
  CHECK(firmware_named_by(module_with({"../../etc/shadow", "/etc/shadow", ""})).empty());
  CHECK(firmware_named_by("text about firmware=x without a zero before").empty());
  CHECK(firmware_named_by(std::string("\0firmware=cut-off", 17)) == std::vector<std::string>{"cut-off"});
}

TEST_CASE("the RAM system gets the firmware its modules name, as far as the image has it",
          "[image][firmware]") {
  const TempDir dir;
  const std::string folder = "/usr/lib/modules/6.1";
  write(dir, "out" + folder + "/kernel/ice.ko", module_with({"intel/ice.pkg", "absent.bin"}));
  write(dir, "out" + folder + "/kernel/bnxt.ko", module_with({"packed.bin", "stolen.bin"}));
  write(dir, "secret", "s");
  write(dir, "tree/usr/lib/firmware/intel/ice-1.3.30.pkg", "ddp");
  write(dir, "tree/usr/lib/firmware/packed.bin.xz", "xz");
  write(dir, "tree/usr/lib/firmware/nobody.bin", "unasked");
  std::filesystem::create_symlink("ice-1.3.30.pkg", dir.path("tree/usr/lib/firmware/intel/ice.pkg"));
  std::filesystem::create_symlink(dir.path("secret"), dir.path("tree/usr/lib/firmware/stolen.bin"));
  REQUIRE(
      collect_firmware(dir.path("tree"), dir.path("out"), folder, {"kernel/ice.ko", "kernel/bnxt.ko"}).ok());
  CHECK(dir.read("out/usr/lib/firmware/intel/ice.pkg") == "ddp");
  CHECK(dir.read("out/usr/lib/firmware/packed.bin.xz") == "xz");
  const Files out(dir.path("out"));
  CHECK(out.list("/usr/lib/firmware") == std::vector<std::string>{"intel", "packed.bin.xz"});
  CHECK_FALSE(collect_firmware(dir.path("tree"), dir.path("out"), folder, {"kernel/none.ko"}).ok());
}

TEST_CASE("microcode stands in front of the initrd, where the kernel looks for it", "[image][firmware]") {
  const TempDir dir;
  std::filesystem::create_directories(dir.path("bare"));
  CHECK(early_microcode(dir.path("bare")).value() == "");
  write(dir, "tree/usr/lib/firmware/amd-ucode/microcode_amd_fam19h.bin", "AMD19");
  write(dir, "tree/usr/lib/firmware/amd-ucode/microcode_amd.bin", "AMD10");
  write(dir, "tree/usr/lib/firmware/amd-ucode/microcode_amd.bin.asc", "signature");
  write(dir, "tree/usr/lib/firmware/intel-ucode/06-8f-08", "INTEL");
  write(dir, "tree/usr/lib/firmware/intel-ucode/README", "text");
  REQUIRE(collect_microcode(dir.path("tree"), dir.path("ram")).ok());
  const std::string early = early_microcode(dir.path("ram")).value();
  CHECK(early == early_microcode(dir.path("tree")).value());
  CHECK(early.compare(0, 6, "070701") == 0);
  CHECK(early.size() % 512 == 0);  // what follows is found on a multiple of four
  CHECK(early.find("kernel/x86/microcode/AuthenticAMD.bin") < early.find("AMD10AMD19"));
  CHECK(early.find("AMD10AMD19") != std::string::npos);
  CHECK(early.find("kernel/x86/microcode/GenuineIntel.bin") < early.find("INTEL"));
  CHECK(early.find("signature") == std::string::npos);
  CHECK(early.find("text") == std::string::npos);
}
