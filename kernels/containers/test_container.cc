#include "kernels/containers/test_container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/printable.h"
#include "base/record.h"
#include "base/split.h"
#include "base/utf8.h"

namespace muster::kernels {
namespace {

// Some hosts forbid programs in folders for temporary files (noexec); root has /var/lib then.
constexpr const char* kPlaces[] = {"/var/tmp", "/tmp", "/dev/shm", "/var/lib"};
// What engines mount over, and read of the user's account.
constexpr const char* kFolders[] = {"dev", "home", "proc", "root", "run", "sys", "tmp", "usr", "var/tmp"};
constexpr const char* kEmptyFiles[] = {"environment", "fstab",  "group",      "hosts",
                                       "localtime",   "passwd", "resolv.conf"};
constexpr size_t kLastWords = 300;

struct Opened {
  DeviceFiles devices = {};
};
MUSTER_RECORD(Opened, lenient, devices)
constexpr const char* kOpenedBegins = "{\"devices\"";

bool is_numbered(const std::string& name, const std::string& prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// As programs open them, for reading and writing; a cgroup may allow one of these. With O_NONBLOCK, NVIDIA's
// driver does not wait until the GPU is initialized.
std::string why_not_opened(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::strerror(errno);
  ::close(fd);
  return "";
}

}  // namespace

DeviceFiles open_devices(const Files& files) {
  DeviceFiles out;
  for (const auto& [folder, prefix] : {std::pair<std::string, std::string>{"/dev", "nvidia"},
                                       std::pair<std::string, std::string>{"/dev/infiniband", "uverbs"}})
    for (const auto& name : files.list(folder))
      if (const std::string path = folder + "/" + name; is_numbered(name, prefix))
        out[path] = why_not_opened(files.real(path));
  return out;
}

std::string devices_text(const DeviceFiles& devices) { return dump_json(record_json(Opened{devices})); }

std::string last_words(const Result<Output>& output) {
  if (!output.ok()) return output.error().message;
  const std::string text = trim(output->err.empty() ? output->out : output->err);
  return text.empty() ? fmt::format("it exited with status {}", output->exit_code)
                      : printable(end_of_output(text, kLastWords));
}

Result<DeviceFiles> read_devices(const Result<Output>& output) {
  if (!output.ok()) return output.error();
  if (!output->ok()) return fail(Code::failed, last_words(output));
  const size_t begin = output->out.find(kOpenedBegins);  // engines may print notes before it
  if (begin == std::string::npos) return fail(Code::failed, last_words(output));
  TRY(const Json json, parse_json(output->out.substr(begin, output->out.find('\n', begin) - begin)));
  TRY(Opened opened, read_record<Opened>(json, "container"));
  return std::move(opened.devices);
}

// A login shell, as which enroot starts it, has a '-' before its name.
bool is_containers_program(const std::string& argv0) {
  const std::string name = last_component(argv0);
  return name == "sh" || name == "-sh";
}

TestContainer::TestContainer(const Files& files, const std::string& place)
    : id_(random_hex(8)), folder_(files.real(fmt::format("{}/muster-containers-{}", place, id_))) {}

TestContainer::~TestContainer() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Status TestContainer::lay_out(const std::string& program) const {
  const Files files;
  TRY_(files.make_directories(folder_, 0700));
  for (const char* folder : kFolders) TRY_(files.make_directories(tree() + "/" + folder));
  for (const char* name : kEmptyFiles) TRY_(files.write(tree() + "/etc/" + name, ""));
  return files.write(tree() + kContainersProgram, program, 0755);
}

Result<std::unique_ptr<TestContainer>> TestContainer::make(const Files& files, Process& process,
                                                           const std::string& program) {
  TRY(const std::string content, Files().read(program));
  std::string why;
  for (const char* place : kPlaces) {
    if (!files.is_directory(place)) continue;
    std::unique_ptr<TestContainer> out(new TestContainer(files, place));
    const Status laid_out = out->lay_out(content);
    auto outside = laid_out.ok()
                       ? read_devices(process.run({.argv = {out->tree() + kContainersProgram}, .cwd = "/"}))
                       : Result<DeviceFiles>(laid_out.error());
    if (outside.ok()) {
      out->outside_ = std::move(*outside);
      return Result<std::unique_ptr<TestContainer>>(std::move(out));
    }
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", place, outside.error().message);
  }
  return fail(Code::unavailable, "a test container can be executed in no folder: " + why);
}

}  // namespace muster::kernels
