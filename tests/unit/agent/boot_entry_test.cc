#include "agent/image/efi_variables.h"

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr const char* kEnd = "-8be4df61-93ca-11d2-aa0d-00e098032b8c";

// EFI variables as the kernel shows them: four bytes of attributes before each value.
struct Firmware {
  TempDir dir;
  Files files{dir.path("")};
  static std::string at(const std::string& name) { return "/sys/firmware/efi/efivars/" + name + kEnd; }
  void put(const std::string& name, const std::string& value) const {
    REQUIRE(files.write(at(name), std::string("\7\0\0\0", 4) + value));
  }
  std::string get(const std::string& name) const {
    const std::string all = files.read(at(name)).value_or("");
    return all.size() < 4 ? "" : all.substr(4);
  }
};

const EspPlace kEsp = {1, 2048, 1048576, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"};
std::string order(const std::vector<int>& entries) {
  std::string out;
  for (const int e : entries) out += std::string{static_cast<char>(e), '\0'};
  return out;
}

}  // namespace

TEST_CASE("the new system is in front of the firmware's list, and nothing is lost from it", "[kexec]") {
  Firmware f;
  f.put("Boot0000", "debian");
  f.put("Boot0002", "network");
  f.put("BootOrder", order({2, 0}));
  REQUIRE(start_first(f.files, kEsp).ok());
  CHECK(f.get("BootOrder") == order({1, 2, 0}));
  CHECK(f.get("BootNext") == order({1}));
  CHECK(f.get("Boot0000") == "debian");
  CHECK(f.get("Boot0002") == "network");
  // As `efibootmgr -c -L muster -l '\EFI\BOOT\BOOTX64.EFI'` writes it.
  const std::string entry = f.get("Boot0001");
  CHECK(entry.substr(0, 6) == std::string("\1\0\0\0\x5e\0", 6));
  CHECK(entry.substr(6, 14) == std::string("m\0u\0s\0t\0e\0r\0\0\0", 14));
  const std::string path = entry.substr(20);
  REQUIRE(path.size() == 0x5e);
  CHECK(path.substr(0, 8) == std::string("\4\1\x2a\0\1\0\0\0", 8));
  CHECK(path.substr(8, 16) == std::string("\0\x08\0\0\0\0\0\0\0\0\x10\0\0\0\0\0", 16));
  CHECK(path.substr(24, 16) ==
        std::string("\x28\x73\x2a\xc1\x1f\xf8\xd2\x11\xba\x4b\x00\xa0\xc9\x3e\xc9\x3b", 16));
  CHECK(path.substr(40, 2) == "\2\2");
  CHECK(path.substr(42, 4) == std::string("\4\4\x30\0", 4));
  CHECK(path.substr(path.size() - 4) == std::string("\x7f\xff\4\0", 4));
  // Again: the same entry, and the list as it is.
  REQUIRE(start_first(f.files, kEsp).ok());
  CHECK(f.get("BootOrder") == order({1, 2, 0}));
  CHECK_FALSE(f.files.exists(Firmware::at("Boot0003")));
}

TEST_CASE("a firmware without a list gets one; a machine without UEFI is left alone", "[kexec]") {
  Firmware f;
  f.put("SecureBoot", std::string(1, '\0'));
  REQUIRE(start_first(f.files, kEsp).ok());
  CHECK(f.get("BootOrder") == order({0}));
  Firmware bios;
  CHECK(start_first(bios.files, kEsp).error().code == Code::not_found);
  EspPlace unknown = kEsp;
  unknown.guid = "none";
  CHECK(start_first(f.files, unknown).error().code == Code::invalid);
  CHECK(f.get("BootOrder") == order({0}));
}
