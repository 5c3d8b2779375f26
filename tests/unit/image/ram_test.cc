#include "controller/image/ram.h"

#include "controller/image/cpio.h"
#include "controller/image/elf.h"
#include "controller/image/ram_modules.h"
#include "sys/os.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("modules come with what they need, dependencies first, unknown names left out") {
  const ModuleIndex index(
      "kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio.ko "
      "kernel/drivers/virtio/virtio_ring.ko\n"
      "kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko\n"
      "kernel/drivers/virtio/virtio_ring.ko:\n"
      "kernel/fs/nls/nls_iso8859-1.ko:\n");
  const auto paths = index.closure({"virtio-pci", "no_such", "nls_iso8859_1", "virtio"});
  CHECK(paths ==
        std::vector<std::string>{"kernel/drivers/virtio/virtio_ring.ko", "kernel/drivers/virtio/virtio.ko",
                                 "kernel/drivers/virtio/virtio_pci.ko", "kernel/fs/nls/nls_iso8859-1.ko"});
  CHECK(index.dep_lines({"kernel/drivers/virtio/virtio.ko"}) ==
        "kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko\n");
  CHECK(alias_lines("alias pci:v1* virtio_pci\nalias pci:v2* other\nalias fs-x nls_iso8859_1\n", paths) ==
        "alias pci:v1* virtio_pci\nalias fs-x nls_iso8859_1\n");
}

TEST_CASE("what a kernel has built in is known by the names of modules") {
  const auto builtin = builtin_modules("kernel/fs/ext4/ext4.ko\nkernel/drivers/nvme/host/nvme-core.ko\n\n");
  CHECK(builtin.count("ext4") == 1);
  CHECK(builtin.count("nvme_core") == 1);
  CHECK(builtin.count("nvme") == 0);
  const ModuleIndex index("kernel/drivers/nvme/host/nvme-core.ko.zst:\nkernel/x/vmw_pvscsi.ko:\n");
  CHECK(index.has("nvme-core"));
  CHECK(index.has("vmw-pvscsi"));
  CHECK_FALSE(index.has("nvme"));
}

TEST_CASE("of what a kernel does not have, the text names the first, and counts the rest") {
  RamContents contents;
  CHECK(to_text(contents).find("mod1") == std::string::npos);
  for (int i = 1; i <= 60; ++i) contents.absent.push_back("mod" + std::to_string(i));
  const std::string text = to_text(contents);
  CHECK(text.find("mod1,") != std::string::npos);
  CHECK(text.find("mod60") == std::string::npos);
  CHECK(text.find(" 48 ") != std::string::npos);
}

TEST_CASE("this test program's libraries are read from its own ELF tables") {
  const auto self = Files("/").read("/proc/self/exe");
  REQUIRE(self);
  const auto info = read_elf(*self);
  REQUIRE(info);
  CHECK(info->is_elf);
  CHECK(info->interpreter == "/lib64/ld-linux-x86-64.so.2");
  CHECK(std::find(info->needed.begin(), info->needed.end(), "libc.so.6") != info->needed.end());
  CHECK_FALSE(read_elf("#!/bin/sh\n")->is_elf);
  CHECK(read_elf(self->substr(0, 100)).error().code == Code::corrupt);
}

TEST_CASE("a cpio archive has aligned newc entries and a trailer") {
  CpioWriter w;
  w.directory("etc");
  w.file("etc/x", "hello", 0600);
  w.symlink("bin", "usr/bin");
  const std::string a = w.finish();
  CHECK(a.size() % 512 == 0);
  CHECK(a.compare(0, 6, "070701") == 0);
  const size_t file = a.find("etc/x");
  REQUIRE(file != std::string::npos);
  CHECK(a.compare(file - 110 + 14, 8, "00008180") == 0);  // S_IFREG | 0600
  CHECK(a.compare(file + 6, 5, "hello") == 0);            // header and name end on a multiple of four
  CHECK((file + 6) % 4 == 0);
  CHECK(a.find("TRAILER!!!") != std::string::npos);
}

TEST_CASE("a RAM system needs a static agent") {
  RamRequest r;
  r.image_folder = "/nonexistent";
  r.agent = "/nonexistent/agent";
  CHECK(build_ram_system(r).error().code == Code::not_found);
  r.agent = "/proc/self/exe";  // dynamically linked
  CHECK(build_ram_system(r).error().code == Code::invalid);
}
