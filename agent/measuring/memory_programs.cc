#include "agent/measuring/memory_programs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/digest.h"
#include "base/gzip.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // since Linux 6.3
#endif

namespace muster {
namespace {

// Does not use /proc/self, because in a child process that is the child.
std::string path_of(int fd) { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd); }

std::string hex_of(const std::string& digest) { return digest.substr(digest.rfind(':') + 1); }

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

MemoryPrograms::~MemoryPrograms() {
  for (const auto& [digest, fd] : files_) ::close(fd);
}

int MemoryPrograms::make_memory_file() {
  const int fd = ::memfd_create("muster", MFD_CLOEXEC | MFD_EXEC);
  return fd < 0 && errno == EINVAL ? ::memfd_create("muster", MFD_CLOEXEC) : fd;
}

// True if the kernel executes the file at all; what the program does with the argument is irrelevant. Tried
// once: a later file may be a library, or lack one on this host.
bool MemoryPrograms::runs(int fd) {
  if (proven_) return true;
  const auto output = process_.run({.argv = {path_of(fd), "--version"}, .deadline = 20 * kSecond});
  proven_ = output.ok() ? output->exit_code != 126 && output->exit_code != 127
                        : output.error().code == Code::timeout;
  return proven_;
}

// A file that is open for writing cannot be executed, so it is opened again for reading.
Result<int> MemoryPrograms::in_memory(const std::string& content) {
  const int writer = make_memory_file();
  if (writer < 0)
    return fail(Code::denied, std::string("the kernel cannot create a file in memory: ") + strerror(errno));
  const bool written = write_all(writer, content) && ::fchmod(writer, 0500) == 0;
  const int reader = written ? ::open(path_of(writer).c_str(), O_RDONLY | O_CLOEXEC) : -1;
  const int number = errno;
  ::close(writer);
  if (reader < 0) return fail(Code::failed, std::string("opening a program in memory: ") + strerror(number));
  if (runs(reader)) return reader;
  ::close(reader);
  return fail(Code::denied, "the kernel cannot execute a file in memory");
}

Result<int> MemoryPrograms::in_folder(const std::string& content) {
  TRY(const std::string folder, ports_.folder());
  const std::string path = folder + "/program";
  const int writer = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
  if (writer < 0) return fail(Code::failed, "writing " + path + ": " + strerror(errno));
  const bool written = write_all(writer, content);
  ::close(writer);
  const int reader = written ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  const int number = errno;
  ::unlink(path.c_str());
  if (reader < 0) return fail(Code::failed, "writing " + path + ": " + strerror(number));
  if (runs(reader)) return reader;
  ::close(reader);
  return fail(Code::denied, "no program can be executed, neither from memory nor from " + folder);
}

Result<std::string> MemoryPrograms::fetched(const CarriedProgram& program,
                                            const std::function<bool()>& cancelled) {
  TRY(const PipeLink::Packed packed, ports_.fetch(hex_of(program.sha256), cancelled));
  TRY(std::string content, gunzip(packed.bytes, packed.size));
  if (hex_of(sha256(content)) != hex_of(program.sha256))
    return fail(Code::corrupt,
                program.name + ": the digest of the received program differs from the digest in the order");
  return content;
}

Result<std::map<std::string, std::string>> MemoryPrograms::ready(const std::vector<CarriedProgram>& programs,
                                                                 const std::function<bool()>& cancelled) {
  std::map<std::string, std::string> out;
  for (const CarriedProgram& program : programs) {
    const std::string digest = hex_of(program.sha256);
    if (!files_.count(digest)) {
      TRY(const std::string content, fetched(program, cancelled));
      auto fd = memory_works_ ? in_memory(content) : Result<int>(fail(Code::denied, ""));
      if (!fd.ok() && fd.error().code == Code::denied) {
        if (std::exchange(memory_works_, false) && ports_.say)
          ports_.say(fd.error().message + ": programs are executed from an unlinked file instead");
        fd = in_folder(content);
      }
      if (!fd.ok()) return fd.error();
      files_[digest] = *fd;
    }
    out[program.name] = path_of(files_[digest]);
  }
  return out;
}

}  // namespace muster
