// The way into the RAM system: drivers and firmware that it has for a machine's cards, and errors of kexec
// that leave another way.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "agent/boot/kernel_modules.h"
#include "agent/boot/kexec.h"
#include "controller/image/ram.h"
#include "controller/image/recipe.h"
#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/source_dir.h"

namespace muster::tests {

namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

std::string stem_of(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.substr(0, file.find('.'));
}

// The image of a case: its modules.dep, .softdep and .alias, and a module per path that names the firmware of
// firmware.txt (which the image has) and named.txt (which it lacks).
class ImageTree {
 public:
  explicit ImageTree(const std::string& name) : name_(name) {
    for (const char* list : {"firmware.txt", "named.txt"}) {
      std::istringstream lines(optional(list));
      for (std::string module, file; lines >> module >> file;) {
        named_[module].push_back(file);
        if (list == std::string("firmware.txt")) put("/usr/lib/firmware/" + file, "bytes of " + file);
      }
    }
    for (const char* list : {"modules.dep", "modules.softdep", "modules.alias"})
      if (const std::string text = optional(list); !text.empty())
        put(kFolder + ("/" + std::string(list)), text);
    std::istringstream lines(optional("modules.dep"));
    for (std::string line; std::getline(lines, line);) put_module(line.substr(0, line.find(':')));
    for (const char* program : {"busybox", "mkfs.vfat", "mkfs.ext4"})
      REQUIRE(tree_.write(std::string("/usr/sbin/") + program, "#!/bin/sh\n", 0755));
  }

  Result<RamContents> collect() { return collect_ram_tree(tree_.root(), kRelease, ram_.root()); }
  bool has(const std::string& path) const { return ram_.exists(path); }
  bool has_module(const std::string& name) const {
    std::error_code ec;
    for (const auto& entry : fs::recursive_directory_iterator(ram_.real(kFolder), ec))
      if (entry.path().filename() == name + ".ko") return true;
    return false;
  }
  // What the agent inserts for a machine with this one card, in order.
  Names loaded_for(const std::string& modalias) const {
    TempDir machine;
    const Files files(machine.path("."));
    fs::copy(ram_.real("/usr"), files.real("/usr"),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    REQUIRE(files.write("/sys/bus/pci/devices/0000:01:00.0/modalias", modalias + "\n"));
    Names out;
    ModuleLoader loader(files, kFolder, [&](const std::string& path) -> Status {
      REQUIRE(fs::exists(path));
      out.push_back(stem_of(path));
      return Ok{};
    });
    CHECK(loader.load_for_devices().empty());
    return out;
  }
  // Lines "MODALIAS MODULE...": those modules, in this order (others may stand between them).
  int check_cards() const {
    std::istringstream lines(field_input(name_, "cards.txt"));
    int tried = 0;
    for (std::string line; std::getline(lines, line); ++tried) {
      INFO(line);
      std::istringstream words(line);
      std::string modalias;
      words >> modalias;
      const Names loaded = loaded_for(modalias);
      auto at = loaded.begin();
      for (std::string module; words >> module;) {
        INFO(module);
        at = std::find(at, loaded.end(), module);
        REQUIRE(at != loaded.end());
      }
    }
    return tried;
  }

 private:
  static constexpr const char* kRelease = "6.1-made-up";
  static constexpr const char* kFolder = "/usr/lib/modules/6.1-made-up";

  std::string optional(const std::string& file) const {
    return fs::exists(field_folder(name_) + "/" + file) ? field_input(name_, file) : "";
  }
  void put(const std::string& path, const std::string& content) { REQUIRE(tree_.write(path, content)); }
  void put_module(const std::string& path) {
    std::string content = "module";
    for (const auto& file : named_[stem_of(path)]) content += std::string(1, '\0') + "firmware=" + file;
    content += std::string(1, '\0');
    if (path.size() > 3 && path.compare(path.size() - 3, 3, ".xz") == 0) {
      const auto packed = run_ok(*make_process(), {.argv = {"xz", "-c"}, .input = content});
      REQUIRE(packed);
      content = *packed;
    }
    put(kFolder + ("/" + path), content);
  }

  std::string name_;
  TempDir dir_;
  Files tree_{dir_.path("tree")}, ram_{dir_.path("ram")};
  std::map<std::string, Names> named_ = {};
};

// Lines "NAME ERRNO denied|failed".
int check_answers(const std::string& name) {
  std::istringstream lines(field_input(name, "answers.txt"));
  int tried = 0;
  for (std::string word, error, code; lines >> word >> error >> code; ++tried) {
    INFO(word);
    const Status answer = kexec_refusal(std::stoi(error));
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code == (code == "denied" ? Code::denied : Code::failed));
  }
  return tried;
}

}  // namespace

FIELD_CASE("ram-drivers") {
  ImageTree image("ram-drivers");
  const auto contents = image.collect();
  REQUIRE(contents.ok());
  CHECK(image.check_cards() == 9);
  // A port has its PHY's driver; radios and cards of notebooks are no way into the RAM system.
  CHECK(image.has_module("realtek"));
  CHECK_FALSE(image.has_module("some_radio"));
  CHECK_FALSE(image.has_module("3c589_cs"));
  CHECK(contents->modules == 16);
  CHECK(contents->module_bytes > 0);
}

FIELD_CASE("ram-drivers: the recipes for servers bring the firmware of Debian's network drivers") {
  for (const char* recipe : {"debian-12-metal", "debian-13-metal"}) {
    INFO(recipe);
    const auto metal = load_recipe(source_dir() + "/images", recipe);
    REQUIRE(metal.ok());
    for (const char* package :
         {"firmware-misc-nonfree", "firmware-bnx2", "firmware-bnx2x", "firmware-qlogic", "firmware-realtek",
          "firmware-cavium", "firmware-myricom", "firmware-netxen"}) {
      INFO(package);
      CHECK(std::count(metal->firmware.begin(), metal->firmware.end(), package) == 1);
    }
  }
}

FIELD_CASE("ram-drivers: no firmware beyond the size that is printed, the smallest files first") {
  const TempDir dir;
  const Files files(dir.path("."));
  const std::string folder = "/usr/lib/modules/6.1";
  const std::string mark = std::string(1, '\0') + "firmware=";
  REQUIRE(files.write("/out" + folder + "/a.ko", "x" + mark + "large.fw" + mark + "small.fw" + '\0'));
  REQUIRE(files.write("/tree/usr/lib/firmware/large.fw", std::string(100, 'l')));
  REQUIRE(files.write("/tree/usr/lib/firmware/small.fw", std::string(10, 's')));
  const auto taken = collect_firmware(dir.path("tree"), dir.path("out"), folder, {"a.ko"}, 99);
  REQUIRE(taken.ok());
  CHECK(taken->files == 1);
  CHECK(taken->bytes == 10);
  CHECK(taken->too_large == Names{"large.fw"});
  CHECK(files.exists("/out/usr/lib/firmware/small.fw"));
  CHECK_FALSE(files.exists("/out/usr/lib/firmware/large.fw"));
}

FIELD_CASE("ram-soft-dependency") {
  ImageTree image("ram-soft-dependency");
  REQUIRE(image.collect().ok());  // also where two name each other, as realtek does here
  CHECK(image.check_cards() == 1);
}

FIELD_CASE("bnx2-is-there") {
  ImageTree image("bnx2-is-there");
  REQUIRE(image.collect().ok());
  CHECK(image.check_cards() == 1);
  CHECK(image.has("/usr/lib/firmware/bnx2/bnx2-mips-09-6.2.1b.fw"));
}

FIELD_CASE("ram-firmware-of-bnx2x") {
  ImageTree image("ram-firmware-of-bnx2x");
  const auto contents = image.collect();
  REQUIRE(contents.ok());
  CHECK(contents->firmware.files == 2);
  CHECK(contents->firmware.lacking.empty());
  CHECK(image.has("/usr/lib/firmware/bnx2x/bnx2x-e2-7.13.21.0.fw"));
  CHECK(image.has("/lib/firmware/bnx2x/bnx2x-e1h-7.13.21.0.fw"));  // where the kernel looks
}

FIELD_CASE("ram-shared-storage-adapter") {
  ImageTree image("ram-shared-storage-adapter");
  const auto contents = image.collect();
  REQUIRE(contents.ok());
  CHECK(image.has_module("mpt3sas"));
  CHECK_FALSE(image.has_module("qla2xxx"));
  CHECK_FALSE(image.has_module("bfa"));
  CHECK(image.loaded_for("pci:v00001077d00002532sv00001077sd0000015Cbc0Csc04i00").empty());
}

FIELD_CASE("ram-firmware-not-in-image") {
  ImageTree image("ram-firmware-not-in-image");
  const auto contents = image.collect();
  REQUIRE(contents.ok());
  CHECK(contents->firmware.lacking == Names{"r8169"});
  CHECK(to_text(*contents).find("r8169") != std::string::npos);
}

FIELD_CASE("ram-driver-and-its-parents") {
  ImageTree image("ram-driver-and-its-parents");
  REQUIRE(image.collect().ok());
  CHECK(image.check_cards() == 1);
}

FIELD_CASE("kexec-address-not-available") { CHECK(check_answers("kexec-address-not-available") == 3); }
FIELD_CASE("kexec-invalid-argument") { CHECK(check_answers("kexec-invalid-argument") == 3); }
FIELD_CASE("kexec-no-file-load") { CHECK(check_answers("kexec-no-file-load") == 2); }
FIELD_CASE("kexec-not-implemented") { CHECK(check_answers("kexec-not-implemented") == 3); }

}  // namespace muster::tests
