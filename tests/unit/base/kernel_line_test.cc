#include "base/kernel_line.h"

#include "tests/catch.h"

using namespace muster;

TEST_CASE("the last kernel argument of a key counts, whole words only") {
  CHECK(kernel_argument("quiet panic=0 iommu=pt panic=5", "panic") == "panic=5");
  CHECK(kernel_argument("quiet panic_on_oops=1", "panic").empty());
  CHECK(kernel_argument("", "panic").empty());
  CHECK(kernel_argument("no_timer_check", "no_timer_check") == "no_timer_check");
}

TEST_CASE(
    "a system restarts after a panic unless an argument says otherwise, in words that fit a kernel line") {
  CHECK(panic_argument("iommu=pt") == "panic=30");
  CHECK(panic_argument("iommu=pt panic=0") == "panic=0");
  CHECK(panic_argument("panic=\"1") == "panic=30");
}

TEST_CASE("kernel options that decide what boots, or cannot stand on a kernel line, are refused") {
  for (const char* bad : {"root=/dev/sda1", "ro", "init=/bin/sh", "rdinit=/bin/sh", "muster.token=1",
                          "a=\"b\"", "a\nb", "${x}", "a\\b"}) {
    INFO(bad);
    CHECK_FALSE(wrong_kernel_options(bad).empty());
  }
  CHECK(wrong_kernel_options("no_timer_check console=ttyS0,115200 pci=realloc").empty());
  CHECK(wrong_kernel_options("").empty());
}
