// FakeMachine's MooseFS master as a program: `mfsmaster start`, which comes back when its metadata is loaded,
// and `stop`, which comes back when it is written. As the real one it begins without an image only with an
// error, holds a lock while it runs, and keeps the image it began with beside the one it writes. systemd's
// start and restart are not seen here: a process that is ended before it has loaded anything writes nothing.
// State is in the files of the master's folder and in /mfs/daemon.
#include <algorithm>

#include "agent/storage/metadata.h"
#include "tests/fakes/fake_machine.h"

namespace muster::tests {

namespace {

// Of a whole image; 0 of anything else.
uint64_t version_of(const std::string& image) {
  const std::string mark = "[MFS EOF MARKER]";
  if (image.size() < 16 + mark.size() || image.substr(image.size() - mark.size()) != mark) return 0;
  uint64_t out = 0;
  for (size_t i = 8; i < 16; ++i) out = out << 8 | static_cast<unsigned char>(image[i]);
  return out;
}

}  // namespace

std::string moosefs_image(uint64_t version) {
  std::string out = "MFSM 2.0";
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(version >> shift & 0xff);
  return out + "the identity, sections" + "[MFS EOF MARKER]";
}

Output FakeMachine::mfsmaster(const std::vector<std::string>& argv) {
  const std::string folder = moosefs_folder(files()) + "/master";
  const std::string written = folder + "/metadata.mfs", before = written + ".back";
  const bool by_systemd = units["moosefs-master.service"].active, runs = files().exists("/mfs/daemon");
  if (argv.back() == "stop") {
    if (by_systemd) units["moosefs-master.service"].active = false;
    if (!by_systemd && !runs) return {0, "", "can't find process to terminate"};
    (void)files().remove("/mfs/daemon");
    if (files().exists(before)) {
      put(before + ".1", get(before));
      (void)files().remove(before);
    }
    put(written, moosefs_image(loaded_version_ + 1));
    return {0, "", "waiting for termination terminated"};
  }
  if (argv.back() != "start") return {1, "", "usage: mfsmaster [-c CFG] [-a] {start|stop}"};
  if (by_systemd || runs) return {1, "", "can't start: lockfile is already locked by another process"};
  uint64_t version = 0;
  bool empty = false;
  for (const auto& name : files().list(folder)) {
    if (!name.starts_with("metadata")) continue;
    version = std::max(version, version_of(get(folder + "/" + name)));
    empty = empty || get(folder + "/" + name).starts_with("MFSM NEW");
  }
  if (version == 0 && !empty) return {1, "", "can't find valid metadata file"};
  loaded_version_ = version;
  if (files().exists(written)) {
    put(before, get(written));
    (void)files().remove(written);
  }
  put("/mfs/daemon", "");
  return {0, "", "mfsmaster daemon initialized properly"};
}

}  // namespace muster::tests
