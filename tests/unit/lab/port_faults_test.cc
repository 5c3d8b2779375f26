// Faults of ports: frames that are too long, and the script that makes a guest's kernel count a PCIe error.
#include <filesystem>

#include "lab/lab_network.h"
#include "lab/rack.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::lab;

namespace {

std::string replaced_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// A guest's files below a folder: a drive behind a port, one on the root bus, and the injector as a plain
// file that exists once its module was requested.
struct Guest {
  Guest() {
    drive("nvme0", "pci0000:00/0000:00:03.0", "LABOS0101");
    drive("nvme1", "pci0000:00/0000:00:1a.2/0000:9b:00.0", "LABFAST0101");
    REQUIRE(files.write("/run/x", "").ok());
    REQUIRE(files.write("/dev/x", "").ok());
  }
  void drive(const std::string& name, const std::string& place, const std::string& serial) {
    const std::string device = "/sys/devices/" + place;
    REQUIRE(files.write(device + "/nvme/" + name + "/serial", serial + "         \n").ok());
    std::filesystem::create_directories(dir.path("sys/class/nvme"));
    std::filesystem::create_symlink("../..", dir.path("sys/devices/" + place + "/nvme/" + name + "/device"));
    std::filesystem::create_symlink(dir.path("sys/devices/" + place + "/nvme/" + name),
                                    dir.path("sys/class/nvme/" + name));
  }
  int inject(const std::string& serial) {
    std::string script = pcie_error_script(serial);
    for (const std::string root : {"/sys/", "/run/", "/dev/"})
      script = replaced_all(script, root, dir.path(root.substr(1)));
    script = "modprobe() { [ \"$1\" = aer_inject ]; }\n" + script;
    const auto done = make_process()->run({.argv = {"sh", "-c", script}, .deadline = 20 * kSecond});
    REQUIRE(done.ok());
    return done->exit_code;
  }
  TempDir dir;
  Files files{dir.path("")};
};

}  // namespace

TEST_CASE("a giant frame goes to one adapter and is longer than any takes", "[lab]") {
  const auto frame = giant_frame("52:54:00:23:00:0a");
  REQUIRE(frame.ok());
  CHECK(frame->size() > 16384);
  CHECK(frame->substr(0, 6) == std::string("\x52\x54\x00\x23\x00\x0a", 6));
  CHECK((*frame)[6] == 0x02);  // from no real adapter: locally administered, and no group
  CHECK(frame->substr(12, 2) == "\x88\xb5");
  for (const std::string bad : {"", "52:54:00:23:00", "52:54:00:23:00:0a:0b", "52-54-00-23-00-0a", "x"})
    CHECK(giant_frame(bad).error().code == Code::invalid);
  CHECK_FALSE(send_giants("no-such-tap", "52:54:00:23:00:0a", 1).ok());
}

TEST_CASE("the port above a drive has one corrected error, as the kernel's injector reads it", "[lab]") {
  Guest guest;
  REQUIRE(guest.inject("LABFAST0101") == 0);
  const std::string said = guest.files.read("/dev/aer_inject").value_or("");
  // bus 00, device 1a, function 2; nothing uncorrected; a receiver error; no header.
  CHECK(said == std::string("\x00\x1a\x02\x00\0\0\0\0\x01\0\0\0", 12) + std::string(16, '\0'));
}

TEST_CASE("without a port above it, or without the drive, nothing is injected", "[lab]") {
  Guest guest;
  CHECK(guest.inject("LABOS0101") != 0);
  CHECK(guest.inject("LABFAST0102") != 0);
  CHECK_FALSE(guest.files.exists("/dev/aer_inject"));
}
