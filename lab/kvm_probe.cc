#include "lab/kvm_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "lab/child.h"
#include "sys/os.h"

namespace muster::lab {

KvmProbe probe_kvm(const LabDir& dir, const QemuHost& host, DurationMs deadline) {
  const int device = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (device < 0) return {Accel::tcg, "/dev/kvm cannot be opened"};
  close(device);
  const auto variables = dir.path("kvm-probe.fd"), console = dir.path("kvm-probe.log");
  std::error_code error;
  std::filesystem::copy_file(host.variables, variables, std::filesystem::copy_options::overwrite_existing,
                             error);
  Spawn qemu;
  qemu.argv = {"qemu-system-x86_64",
               "-machine",
               "q35",
               "-accel",
               "kvm",
               "-cpu",
               "host",
               "-m",
               "256",
               "-nodefaults",
               "-display",
               "none",
               "-vga",
               "none",
               "-serial",
               "file:" + console,
               "-drive",
               "if=pflash,format=raw,readonly=on,file=" + host.firmware,
               "-drive",
               "if=pflash,format=raw,file=" + variables};
  qemu.log = dir.path("kvm-probe.err");
  qemu.mark = console;
  KvmProbe probe{Accel::tcg, fmt::format("the firmware was not up within {}", to_human(deadline))};
  auto child = spawn(qemu);
  if (!child) return {Accel::tcg, child.error().message};
  for (DurationMs waited = 0; waited < deadline; waited += 100) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    auto text = Files("/").read(console);
    if (text &&
        text->find("Bds") != std::string::npos) {  // output of the boot manager: every earlier phase has run
      probe = {Accel::kvm, fmt::format("firmware up in {:.1f} s", static_cast<double>(waited + 100) / 1000)};
      break;
    }
    if (!alive(*child)) {
      const auto words = Files("/").read_line(qemu.log);
      probe.reason = "QEMU ended: " + words.substr(0, words.find('\n'));
      break;
    }
  }
  if (auto ended = terminate(*child, 0); !ended) probe = {Accel::tcg, ended.error().message};
  for (const auto& file : {variables, console, qemu.log}) std::filesystem::remove(file, error);
  return probe;
}

}  // namespace muster::lab
